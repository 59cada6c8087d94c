"""Files that somebody made to do harm, or that went bad at many places: mutated HDF5 files, JSON and text at the edges of what parsers bear.
Every command ends by itself, within 10 s and 1 GiB, with one line for what is wrong; nothing outside the run is written or reached."""

import gzip
import json
import os
import random
import resource
import shutil

from program import (HANG, TOKENIZER_JSON, Figures, contents_below, copy_folder, is_one_line, tiny_config, write_shards, write_table,
                     write_task)

SIGNALS, SLOW, MEMORY, LINES, ESCAPED = ("ended by a signal", "that took 10 s or more", "that took 1 GiB or more", "without one line that says why",
                                         "that wrote elsewhere")
GIB = 1 << 30
HDF5_WORDS = ("unreadable", "memory allocation failed for")  # said by HDF5 within the helper, whose limit is a quarter of a GiB


def limited(memory):
    """Memory of the program and, by inheritance, of each helper: nothing may need more. Two threads, whose stacks count too."""
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])


def trial(program, figures, command, story, seconds=10):
    figures.trials += 1
    memory = None if program.sanitizer else GIB  # a sanitizer's own memory is terabytes, most of it never touched
    result = program.run(command, seconds=seconds, preexec_fn=lambda: limited(memory))
    told = f"{story}: {' '.join(command)}: exit {result.code} after {result.seconds:.1f} s: {result.err[:300]}"
    if result.code == HANG:
        figures.fail(SLOW, told)
    elif not result.is_answer() or "internal error" in result.err:
        figures.fail(SIGNALS, told)
    elif "emory" in result.err and not any(word in result.err for word in HDF5_WORDS):
        figures.fail(MEMORY, told)
    elif result.code != 0 and not is_one_line(result.err):
        figures.fail(LINES, told)
    figures.count("accepted" if result.code == 0 else "refused")
    return result


# ---- HDF5

INTERESTING = (b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7, b"\xff\xff\xff\x7f\0\0\0\0", b"\0\0\0\x80\0\0\0\0", b"\1\0\0\0\0\0\0\0")


def mutate(content, chance):
    """A few changes of the kinds that fuzzers make."""
    content = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at, kind = chance.randrange(len(content)), chance.randrange(6)
        if kind == 0:
            content[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            content[at] = chance.randrange(256)
        elif kind == 2:
            value = chance.choice(INTERESTING)[: chance.choice((1, 2, 4, 8))]
            content[at : at + len(value)] = value
        elif kind == 3:
            length = chance.randrange(1, 64)
            source = chance.randrange(len(content))
            content[at : at + length] = content[source : source + length]
        elif kind == 4 and len(content) > 100:
            del content[max(50, at) :]
        else:
            signatures = [i for i in range(len(content) - 4) if content[i : i + 4] in (b"OHDR", b"FRHP", b"BTHD", b"FHDB", b"BTLF", b"FADB")]
            if signatures:  # metadata, where one byte decides most
                at = chance.choice(signatures) + chance.randrange(4, 40)
                if at < len(content):
                    content[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    return bytes(content)


COMMANDS = {
    "captures/step-12.h5": (["inspect", "run"], ["export", "selection", "run", "--out", "map.csv"]),
    "checkpoints/step-12.h5": (["evaluate", "run"], ["generate", "run", "--tokens", "4"], ["fork", "run", "--out", "fork", "--set", "training.steps=13"]),
    "results.h5": (["resume", "run"],),
}


def without_checksums(content, chance):
    """HDF5 checks most of its metadata by a sum behind it (Jenkins' lookup3), which hides what is behind the check: sums are made right."""
    content = bytearray(content)
    begins = [i for i in range(len(content) - 16) if content[i : i + 4] == b"OHDR"]
    chosen = chance.choice(begins)
    flags = content[chosen + 5]
    at = chosen + 6 + (16 if flags & 32 else 0) + (4 if flags & 16 else 0)
    width = 1 << (flags & 3)
    end = at + width + int.from_bytes(content[at : at + width], "little")
    if end + 4 > len(content):
        return bytes(content)
    for _ in range(chance.choice((1, 1, 2, 3))):
        place = chance.randrange(at + width, end)
        content[place] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    content[end : end + 4] = lookup3(bytes(content[chosen:end])).to_bytes(4, "little")
    return bytes(content)


def lookup3(data):
    """H5_checksum_lookup3 with an initial value of 0 (Bob Jenkins, 2006, public domain), by its definition."""
    mask = 0xFFFFFFFF

    def rotated(x, k):
        return ((x << k) | (x >> (32 - k))) & mask

    a = b = c = (0xDEADBEEF + len(data)) & mask
    at = 0
    while len(data) - at > 12:
        a, b, c = ((x + int.from_bytes(data[at + i : at + i + 4], "little")) & mask for x, i in ((a, 0), (b, 4), (c, 8)))
        for k in (4, 6, 8, 16, 19, 4):
            a = ((a - c) & mask) ^ rotated(c, k)
            c = (c + b) & mask
            a, b, c = b, c, a
        at += 12
    rest = data[at:]
    if not rest:
        return c
    rest += bytes(12 - len(rest))
    a, b, c = ((x + int.from_bytes(rest[i : i + 4], "little")) & mask for x, i in ((a, 0), (b, 4), (c, 8)))
    for k in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - rotated(b, k)) & mask
        a, b, c = b, c, a
    # seven steps turn the letters once and a third: what was made last stands in b
    return b


def mutated_hdf5(program, trials, seed):
    figures = Figures("mutated HDF5 files", (SIGNALS, SLOW, MEMORY, LINES))
    chance = random.Random(seed)
    kept = {name: program.path("run", name).read_bytes() for name in COMMANDS}
    text = program.path("run", "run.json").read_text()
    for i in range(trials):
        name = list(COMMANDS)[i % len(COMMANDS)]
        change = without_checksums if i // len(COMMANDS) % 2 else mutate
        program.path("run", name).write_bytes(change(kept[name], chance))
        trial(program, figures, COMMANDS[name][i // 6 % len(COMMANDS[name])], f"{change.__name__}, trial {i} of {name}")
        program.path("run", name).write_bytes(kept[name])
        program.path("run", "run.json").write_text(text)
        shutil.rmtree(program.path("fork"), ignore_errors=True)
    return figures.ended()


# ---- text

def odd_texts():
    """Name and bytes of what no JSON parser should stumble over."""
    nested = 200_000
    yield "deep arrays", b"[" * nested + b"]" * nested
    yield "deep objects", b'{"a":' * nested + b"1" + b"}" * nested
    yield "unclosed arrays", b"[" * nested
    yield "a huge integer", b'{"format_version": ' + b"9" * 100_000 + b"}"
    yield "a huge exponent", b'{"format_version": 1e999999999}'
    yield "a long string", b'{"name": "' + b"x" * (1 << 24) + b'"}'
    yield "duplicate keys", b'{"format_version": 1, "format_version": 2}'
    yield "NUL bytes", b'{"name": "a\0b"}\0\0'
    yield "an escaped NUL", b'{"name": "a\\u0000b"}'
    yield "invalid UTF-8", b'{"name": "\xff\xfe\xc0\x80"}'
    yield "a lone surrogate", b'{"name": "\\ud800"}'
    yield "a byte-order mark", b"\xef\xbb\xbf[]"
    yield "nothing", b""
    yield "only spaces", b" " * 1000
    yield "one long line", b"x" * (1 << 24)
    yield "other bytes", bytes(range(256)) * 64
    yield "not a number", b'{"a": NaN, "b": Infinity}'


def prepare_tasks_and_tokenizers(program, config):
    """What other programs write and this one reads: tokenizers, token shards, tasks and their items."""
    write_table(program.path("text.csv"))
    write_task(program.folder)
    program.good(["evaluate", "run", "--task", "task.json", "--data", "items.csv"])
    write_shards(program.path("shards"))
    shutil.copy(TOKENIZER_JSON, program.path("tokenizer.json"))
    program.path("vocabulary").mkdir()
    program.path("vocabulary/vocab.json").write_text(json.dumps({"<|endoftext|>": 0, "a": 1, "b": 2, "ab": 3}))
    program.path("vocabulary/merges.txt").write_text("#version: 0.2\na b\n")
    for name, tokenizer in (("tokenizer_json", "tokenizer.json"), ("merges", "vocabulary/vocab.json"), ("ranks", "cl100k_base.tiktoken")):
        config["data"]["tokenizer"] = str(program.path(tokenizer))
        program.path(name + ".json").write_text(json.dumps(config))
    config["data"] |= {"tokenizer": "bytes", "corpus": str(program.path("shards"))}
    program.path("shards.json").write_text(json.dumps(config))


def hostile_texts(program, every):
    """In the place of every text file that is read; in short, an `every`-th of the texts at each place."""
    figures = Figures("odd text in the place of every text file", (SIGNALS, SLOW, MEMORY, LINES))
    places = [("run/run.json", ["compare", "run"]), ("run/run.json", ["resume", "run"]), ("run/journal.jsonl", ["compare", "run"]),
              ("run/journal.jsonl", ["resume", "run"]), ("run/notes.json", ["compare", "run"]), ("config.json", ["plan", "config.json"]),
              ("config.json", ["train", "config.json", "--out", "new"]), ("widths.json", ["study", "plan", "widths.json"]),
              ("data/corpora/mine/corpus.json", ["corpus", "show", "mine"]), ("data/corpora/mine/prose.train.ends", ["corpus", "samples", "mine"]),
              ("data/corpora/mine/prose.train.text", ["corpus", "samples", "mine"]), ("model.model", ["plan", "sentencepiece.json"]),
              ("tokenizer.json", ["plan", "tokenizer_json.json"]), ("vocabulary/merges.txt", ["plan", "merges.json"]),
              ("cl100k_base.tiktoken", ["plan", "ranks.json"]), ("shards/prose_train_000001.bin", ["plan", "shards.json"]),
              ("run/tasks/choices-step-12.json", ["evaluate", "run", "--task", "task.json", "--data", "items.csv"]),
              ("items.csv", ["evaluate", "run", "--task", "task.json", "--data", "items.csv"]),
              ("items.jsonl", ["evaluate", "run", "--task", "task.json", "--data", "items.jsonl"]),
              ("task.json", ["evaluate", "run", "--task", "task.json", "--data", "items.csv"]),
              ("text.csv", ["corpus", "import", "odd", "text.csv"]), ("text.tsv.gz", ["corpus", "import", "odd", "text.tsv.gz"]),
              ("text.jsonl", ["corpus", "import", "odd", "text.jsonl"]), ("text.txt", ["corpus", "import", "odd", "text.txt"]),
              ("text.jsonl.gz", ["corpus", "import", "odd", "text.jsonl.gz"]), ("text.jsonl.zst", ["corpus", "import", "odd", "text.jsonl.zst"])]
    config = tiny_config()
    config["data"]["tokenizer"] = "sentencepiece:" + str(program.path("model.model"))
    program.path("sentencepiece.json").write_text(json.dumps(config))
    prepare_tasks_and_tokenizers(program, config)
    for number, (place, command) in enumerate(places):
        kept = program.path(place).read_bytes() if program.path(place).exists() else None
        run = contents_below(program.path("run"))
        for name, content in list(odd_texts())[number % every :: every]:
            program.path(place).write_bytes(content)
            trial(program, figures, command, f"{name} as {place}", seconds=30)
            for left in ("new", "data/corpora/odd"):
                shutil.rmtree(program.path(left), ignore_errors=True)
            for path, bytes_of in run.items():
                program.path("run", path).write_bytes(bytes_of)
            if kept is None:
                program.path(place).unlink()
            else:
                program.path(place).write_bytes(kept)
    return figures.ended()


def bombs(program):
    """What a few bytes unpack to is bounded, and links and names lead nowhere else."""
    figures = Figures("bombs, links and names that lead elsewhere", (SIGNALS, SLOW, MEMORY, LINES, ESCAPED))
    with gzip.open(program.path("bomb.jsonl.gz"), "wb", 9) as file:
        for _ in range(2048):
            file.write(bytes(1 << 20))
    result = trial(program, figures, ["corpus", "import", "bomb", "bomb.jsonl.gz"], "2 GiB of zeros in one line of a 2 MB file", seconds=60)
    if result.code == 0:
        figures.fail(LINES, "a bomb was imported")
    for name, byte in (("spaces.jsonl.gz", b" "), ("commas.csv.gz", b","), ("quotes.csv.gz", b'"'), ("braces.jsonl.gz", b"[")):
        with gzip.open(program.path(name), "wb", 9) as file:
            for _ in range(512):
                file.write(byte * (1 << 20))
        for command in (["corpus", "import", "bomb", name], ["evaluate", "run", "--task", "task.json", "--data", name]):
            if trial(program, figures, command, f"512 MiB of {byte!r} in a packed file", seconds=60).code == 0:
                figures.fail(LINES, f"{name} was accepted")
    for place, commands in {"run/run.json": (["compare", "run"], ["resume", "run"]), "run/notes.json": (["compare", "run"],), "config.json": (["plan", "config.json"],)}.items():
        kept = program.path(place).read_bytes() if program.path(place).exists() else b"{}"
        for command in commands:
            with open(program.path(place), "wb") as file:
                file.truncate(3 * GIB)
            trial(program, figures, command, f"3 GiB of zeros as {place}", seconds=60)
            program.path(place).write_bytes(kept)
    outside = program.folder.parent / "outside"
    shutil.rmtree(outside, ignore_errors=True)
    outside.mkdir()
    (outside / "secret.txt").write_text("a secret of somebody else " * 200)
    folder = program.path("source")
    folder.mkdir()
    (folder / "text.txt").write_text("text of our own, and enough of it to be taken " * 200)
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "folder").symlink_to(outside, target_is_directory=True)
    os.mkfifo(folder / "pipe.txt")
    trial(program, figures, ["corpus", "import", "linked", "source"], "links and a pipe in a source folder")
    texts = b"".join(path.read_bytes() for path in program.path("data/corpora").rglob("linked/*.text"))
    if b"secret" in texts:
        figures.fail(ESCAPED, "a link of the source folder was followed")
    for name in ("../../escaped", "/tmp/escaped", "a/b", "..", ".", "", "x" * 300, "a\0b".replace("\0", "\n")):
        trial(program, figures, ["corpus", "import", name, "text.jsonl"], f"a corpus called {name[:20]!r}")
    for field in ("name", "corpus"):
        config = tiny_config(steps=1, warmup_steps=0)
        (config if field == "name" else config["data"])[field] = "../../../escaped"
        program.path("escape.json").write_text(json.dumps(config))
        trial(program, figures, ["train", "escape.json", "--out", "escape"], f"{field} ../../../escaped")
    with open(program.path("domains.jsonl"), "w") as file:
        for i in range(40):
            file.write(json.dumps({"text": f"text {i} " * 100, "meta": {"redpajama_set_name": "../../../../escaped"}}) + "\n")
    trial(program, figures, ["corpus", "import", "domains", "domains.jsonl"], "a domain called ../../../../escaped")
    for place in (program.folder.parent, program.folder, program.path("data")):
        for path in place.glob("*escaped*"):
            figures.fail(ESCAPED, str(path))
    if contents_below(outside) != {"secret.txt": b"a secret of somebody else " * 200}:
        figures.fail(ESCAPED, "the folder outside was changed")
    return figures.ended()


def over_four_gib(program, places):
    """Files of a run with zeros behind what they hold, further than 32 bits count: read without taking memory for them."""
    figures = Figures("files of a run that go on with zeros to 5 GiB", (SIGNALS, SLOW, MEMORY, LINES))
    for place in places:
        for command in (["compare", "run"], ["inspect", "run"], ["evaluate", "run"], ["resume", "run"]):
            copy_folder(program.path("run"), program.path("kept"))
            os.truncate(program.path("run", place), 5 * GIB)
            trial(program, figures, command, f"{place} of 5 GiB", seconds=60)
            shutil.rmtree(program.path("run"))
            program.path("kept").rename(program.path("run"))
    return figures.ended()


def run(program, trials, seed):
    program = program.at(program.folder / "machine")
    program.import_corpus()
    program.path("config.json").write_text(json.dumps(tiny_config()))
    program.path("widths.json").write_text(json.dumps({"question": "?", "base": tiny_config(), "seeds": [1], "axes": [
        {"setting": "architecture.width", "values": [8, 16]}]}))
    program.good(["train", "config.json", "--out", "run"])
    places = ["journal.jsonl", "results.h5", "checkpoints/step-12.h5", "captures/step-12.h5", "log.txt", "lock"]
    good = [over_four_gib(program, places if trials >= 200 else places[1:]), mutated_hdf5(program, trials, seed), hostile_texts(program, 1 if trials >= 200 else 5), bombs(program)]
    return all(good)
