#!/usr/bin/env python3
"""Encodes the same text with Saccade, Hugging Face's tokenizers and tiktoken: every token has to be the same one.

Tokenizers are trained here by PyPI's `tokenizers`, with the cutting of GPT-2, Llama 3, Qwen 2.5 and GPT-NeoX and as Llama 2 and T5 have it;
rank files are made of their merges and cut as tiktoken publishes it. The text is made of this machine's message catalogues (gettext) and of
generated letters of many scripts, with what the tokenizers have of their own among it.

  tokenizer_agreement.py PROGRAM                     PROGRAM is encode_strings; skipped (77) without tokenizers and tiktoken from PyPI
  tokenizer_agreement.py PROGRAM --text FILE         this text, in UTF-8, in place of that
  tokenizer_agreement.py PROGRAM --files FOLDER      these tokenizer.json (*.json) and rank files (NAME.tiktoken) too
  tokenizer_agreement.py PROGRAM --megabytes 10 --fuzzed 10000 --vocabulary 4000
  tokenizer_agreement.py --write tests/fixtures/tokenizers      small tokenizers and what these programs make of some texts

Special tokens that text spells are text in Saccade, so the others are told to take them so; a Unigram model of Hugging Face takes them for
tokens nevertheless, so its texts spell none. Letters that Unicode got after version 14 are not
among the text: which of the programs knows them depends on how old its tables are. Prints the speed of each on one thread, by the processor's time.
"""
import argparse
import base64
import gettext
import glob
import hashlib
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import tiktoken
    from tiktoken_ext import openai_public
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
except ImportError as missing:
    print(f"skipped: {missing}; pip install tokenizers tiktoken")
    sys.exit(77)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
SCRIPTS = ((0x20, 0x7F), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x530, 0x6FF), (0x900, 0xDFF), (0xE00, 0xFFF), (0x10A0, 0x11FF),
           (0x1800, 0x18AA), (0x1E00, 0x1FFF), (0x2000, 0x2BFF), (0x3040, 0x30FF), (0x4E00, 0x9FFC), (0xAC00, 0xD7A3), (0x1F300, 0x1F6FF))
JOINTS = (" ", " ", " ", "  ", "    ", "\n", "\n\n", "\r\n", "\t", "\u3000", "\u00a0", "\u180e", "\u0085", "\u2028", ", ", ". ", "'s ", "'LL ", "'\u017f ",
          "n't ", " 1234567 ", " \u0663\u0664 ", "\u2581", " \u2581", "\ufeff", "\u200d", "<|endoftext|>", "</s>", "<unk>", "<0x41>", "<tool_call>", "<strip>",
          " word ", "sword ", "e\u0301", "\u1100\u1161\u11a8", "\u212b")


def letters(draw, count):
    low, high = draw.choice(SCRIPTS)
    drawn = (chr(draw.randint(low, high)) for _ in range(count))
    return "".join(c for c in drawn if unicodedata.category(c) not in ("Cn", "Cs", "Co"))


def generated(draw, size):
    parts, bytes_made = [], 0
    while bytes_made < size:
        parts += [letters(draw, draw.randint(1, 12)), draw.choice(JOINTS)]
        bytes_made += len(parts[-2].encode()) + len(parts[-1].encode())
    return "".join(parts)


def any_characters(draw, count):
    """Of all that Unicode 14 has; Python's tables may be older or newer, so by what both know."""
    drawn = (chr(draw.choice((draw.randrange(0x80), draw.randrange(0x3000), draw.randrange(0x20000)))) for _ in range(count))
    return "".join(c for c in drawn if unicodedata.category(c) not in ("Cn", "Cs") and len(c.encode("utf-8", "ignore")))


def fuzzed(draw):
    text = draw.choice((lambda: generated(draw, draw.randint(0, 200)), lambda: any_characters(draw, draw.randint(0, 60)),
                        lambda: "".join(draw.choice(" \n\r\ta'1.,") for _ in range(draw.randint(0, 80))),
                        lambda: draw.choice(JOINTS) * draw.randint(1, 400)))()
    return text


def catalogues(limit):
    """Messages of this machine's programs in their languages, the same share of each."""
    texts = {}
    for path in sorted(glob.glob("/usr/share/locale/*/LC_MESSAGES/*.mo")):
        try:
            with open(path, "rb") as file:
                messages = gettext.GNUTranslations(file)._catalog.values()
        except (OSError, ValueError, LookupError):  # not as gettext wants it
            continue
        texts.setdefault(path.split("/")[4], []).extend(m for m in messages if isinstance(m, str))
    share = limit // max(1, len(texts))
    return ["\n".join(messages)[:share] for _, messages in sorted(texts.items())]


def multilingual(megabytes):
    draw = random.Random(17)
    size = megabytes * 1_000_000
    parts = catalogues(size // 2)
    parts = [part[at:at + 20_000] for part in parts for at in range(0, len(part), 20_000)]
    while sum(len(part.encode()) for part in parts) < size:
        parts += [generated(draw, 50_000) for _ in range(20)]
    draw.shuffle(parts)
    return parts


# ---- tokenizers

def train(tokenizer, parts, vocabulary, specials, **more):
    tokenizer.train_from_iterator(parts, trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=specials, show_progress=False, **more))
    return tokenizer


def byte_level(name, parts, vocabulary):
    cutting = pre_tokenizers.ByteLevel(add_prefix_space=name == "prefix", use_regex=name not in ("llama3", "qwen2.5"))
    tokenizer = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    if name in ("llama3", "qwen2.5"):
        cutting = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3 if name == "llama3" else QWEN), "isolated"), cutting])
    if name in ("qwen2.5", "neox"):
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = cutting
    end = "<|end_of_text|>" if name == "llama3" else "<|endoftext|>"
    train(tokenizer, parts, vocabulary, [end, "<|other|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    if name == "qwen2.5":
        tokenizer.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("</tool_call>", normalized=False)])
    if name == "neox":
        tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    return json.loads(tokenizer.to_str())


def llama2(parts, vocabulary):
    """Its three forms: normalizers, Metaspace, and Metaspace that cuts, with added tokens of every kind."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["<unk>", "<s>", "</s>"]
    train(tokenizer, parts, vocabulary, specials + [f"<0x{b:02X}>" for b in range(256)], limit_alphabet=300)
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = [token for token in file["added_tokens"] if token["content"] in specials]
    mark = "\u2581"
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": mark}
    first = dict(file, pre_tokenizer=None, normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": mark}, replace]})
    second = dict(file, pre_tokenizer={"type": "Metaspace", "replacement": mark, "prepend_scheme": "first", "split": False})
    third = json.loads(json.dumps(file))
    free = max(third["model"]["vocab"].values()) + 1
    for number, (content, more) in enumerate((("<strip>", {"lstrip": True, "rstrip": True}), ("word", {"single_word": True}))):
        entry = {"id": third["model"]["vocab"].get(content, free + number), "content": content, "single_word": False, "lstrip": False,
                 "rstrip": False, "normalized": False, "special": False}
        third["added_tokens"].append(dict(entry, **more))
    return {"llama2": first, "llama2-metaspace": second, "llama2-added": third}


def unigram(parts, vocabulary):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(parts, trainers.UnigramTrainer(vocab_size=vocabulary, special_tokens=["<unk>", "</s>"], unk_token="<unk>",
                                                                 show_progress=False))
    plain = json.loads(tokenizer.to_str())
    with_bytes = json.loads(json.dumps(plain))
    pieces = [piece for piece in plain["model"]["vocab"] if len(piece[0]) > 1 or ord(piece[0]) < 0x600]  # so that there are unknown letters
    of_bytes = [[f"<0x{b:02X}>", -20.0] for b in range(256)]
    pieces = [piece for piece in pieces if piece[0] not in {name for name, _ in of_bytes}]  # which the text may spell
    with_bytes["model"].update(byte_fallback=True, vocab=pieces + of_bytes)
    return {"unigram": plain, "unigram-bytes": with_bytes}


def rank_file(file):
    letters_of_bytes, high = {}, 256
    for byte in range(256):
        seen = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        letters_of_bytes[chr(byte if seen else high)] = byte
        high += not seen
    tokens = [bytes([byte]) for byte in range(256)]
    for merge in file["model"]["merges"]:
        tokens.append(bytes(letters_of_bytes[c] for c in "".join(merge if isinstance(merge, list) else merge.split(" "))))
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(dict.fromkeys(tokens)))


def write_tokenizers(folder, parts, vocabulary):
    made = {name: byte_level(name, parts, vocabulary) for name in ("gpt2", "prefix", "llama3", "qwen2.5", "neox")}
    made.update(llama2(parts, vocabulary))
    some = [spelling_none(part) for part in parts[::8]]  # else its pieces would have "</s>" a second time
    made.update(unigram(some, vocabulary // 2 + len(set("".join(some)))))
    for name, file in made.items():
        (folder / f"{name}.json").write_text(json.dumps(file, ensure_ascii=False), encoding="utf-8")
    for name, source in (("r50k_base", "gpt2"), ("p50k_base", "gpt2"), ("cl100k_base", "llama3"), ("o200k_base", "llama3")):
        (folder / f"{name}.tiktoken").write_bytes(rank_file(made[source]))
    pair = folder / "pair"
    pair.mkdir(exist_ok=True)
    (pair / "vocab.json").write_text(json.dumps(made["gpt2"]["model"]["vocab"]), encoding="utf-8")
    merges = (" ".join(m) if isinstance(m, list) else m for m in made["gpt2"]["model"]["merges"])
    (pair / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")


# ---- comparison

def patterns_of_tiktoken():
    """As its package has them, without the rank files, which it would fetch."""
    openai_public.load_tiktoken_bpe = lambda *_, **__: {}
    openai_public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: {}
    return {name: getattr(openai_public, name)() for name in ("gpt2", "r50k_base", "p50k_base", "cl100k_base", "o200k_base")}


def reference(path):
    """A function from text to tokens."""
    if path.suffix == ".tiktoken":
        known = patterns_of_tiktoken()[path.stem]
        ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in path.read_bytes().splitlines())}
        encoding = tiktoken.Encoding(path.stem, pat_str=known["pat_str"], mergeable_ranks=ranks, special_tokens=known["special_tokens"])
        return encoding.encode_ordinary
    if path.name == "vocab.json":
        path = path.parent.parent / "gpt2.json"
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.encode_special_tokens = True
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def encode(program, tokenizer, strings, folder):
    given, made = folder / "strings", folder / "tokens"
    given.write_bytes(b"".join(struct.pack("<I", len(data)) + data for data in (text.encode() for text in strings)))
    done = subprocess.run([program, str(tokenizer), str(given), str(made)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tokenizer.name}: {done.stderr}")
    data, at, all_tokens = made.read_bytes(), 0, []
    while at < len(data):
        count = struct.unpack_from("<I", data, at)[0]
        all_tokens.append(list(struct.unpack_from(f"<{count}i", data, at + 4)))
        at += 4 + 4 * count
    return json.loads(done.stdout), all_tokens


def published(program, folder):
    """Numbers of p50k_base that are known, where tiktoken has its rank file in its cache; whether one is wrong."""
    name = hashlib.sha1(b"https://openaipublic.blob.core.windows.net/encodings/p50k_base.tiktoken").hexdigest()
    caches = [os.environ.get("TIKTOKEN_CACHE_DIR"), os.environ.get("DATA_GYM_CACHE_DIR"), os.path.join(tempfile.gettempdir(), "data-gym-cache")]
    found = [pathlib.Path(cache) / name for cache in caches if cache and (pathlib.Path(cache) / name).is_file()]
    if not found:
        print("p50k_base as published: skipped, for its rank file is not in tiktoken's cache (it may not be shipped here)")
        return False
    ranks = folder / "published" / "p50k_base.tiktoken"
    ranks.parent.mkdir()
    ranks.write_bytes(found[0].read_bytes())
    _, tokens = encode(program, ranks, ["hello world"], folder)
    print(f"p50k_base as published: \"hello world\" is {tokens[0]}, expected [31373, 995]")
    return tokens[0] != [31373, 995]


def spelling_none(text):
    while "</s>" in text or "<unk>" in text:
        text = text.replace("</s>", "").replace("<unk>", "")
    return text


def without_specials(path, text):
    return spelling_none(text) if "unigram" in path.name else text


def compare(program, tokenizer, strings, folder):
    """(strings with other tokens, strings decoded otherwise, MB/s here, MB/s there)"""
    strings = [without_specials(tokenizer, text) for text in strings]
    here, tokens = encode(program, tokenizer, strings, folder)
    other = reference(tokenizer)
    start = time.process_time()
    expected = [other(text) for text in strings]
    there = time.process_time() - start
    differing = [i for i in range(len(strings)) if tokens[i] != expected[i]]
    for i in differing[:2]:
        at = next((k for k, pair in enumerate(zip(tokens[i], expected[i])) if pair[0] != pair[1]), min(len(tokens[i]), len(expected[i])))
        print(f"  {tokenizer.name}: string {i} ({strings[i][:60]!r}…) from token {at} on: {tokens[i][at:at + 6]}, expected {expected[i][at:at + 6]}")
    size = sum(len(text.encode()) for text in strings) / 1e6
    return len(differing), here["decoded_otherwise"], size / max(here["seconds"], 1e-9), size / max(there, 1e-9)


def write_fixtures(folder):
    draw = random.Random(19)
    words = "the a river stone walks over under light and dark houses near water old naïve tree sings his dog runs slow because größer жизнь".split()
    parts = [" ".join(draw.choice(words) for _ in range(200)) + ".\n  It's 1234 and we'll see,\n\n\tdon't you? 你好 世界\n" for _ in range(20)]
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizers(folder, parts, 330)
    for name in ("o200k_base.tiktoken", "prefix.json", "llama2-metaspace.json"):
        (folder / name).unlink()
    texts = ["", "a", "the river's stone", "  two  spaces \n\n\n", "It'S 1234567 WE'LL don't", "größer naïve жизнь 你好 世界", "e\u0301 \u212b \u1100\u1161\u11a8 a\u1dfa\u0323",
             "\U0001F600\u200d\ufeff\u180ex", "\u2581under\u2581 \u2581", "<|endoftext|></s><unk><0x41>", "a word, sword <strip>  b", "<tool_call>x</tool_call>",
             "\u0663\u0664 \u00bd\u2163 \u3000\u00a0\u0085\t\r\n x", "\0nul\u0001", " the" * 40] + [fuzzed(draw)[:60] for _ in range(15)]
    expected = {}
    for path in sorted(folder.glob("*.json")) + sorted(folder.glob("*.tiktoken")) + [folder / "pair" / "vocab.json"]:
        if path.name != "expected.json":
            encode_reference = reference(path)
            expected[str(path.relative_to(folder))] = [encode_reference(t) if t == without_specials(path, t) else None for t in texts]
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(tokens, separators=(',', ':'))}" for name, tokens in expected.items())
    (folder / "expected.json").write_text(f'{{"texts": {json.dumps(texts)},\n"tokens": {{\n{lines}\n}}}}\n')


def decodes_exactly(path):
    """Not what NFC changed, what has unknown letters, or what writes a space like something else."""
    return path.suffix == ".tiktoken" or path.stem in ("gpt2", "llama3", "vocab")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--files", type=pathlib.Path)
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--fuzzed", type=int, default=10_000)
    parser.add_argument("--vocabulary", type=int, default=4000)
    options = parser.parse_args()
    if options.write:
        return write_fixtures(options.write)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if options.text:
            text = options.text.read_bytes()[:options.megabytes * 1_000_000].decode(errors="ignore")
            parts = [text[at:at + 20_000] for at in range(0, len(text), 20_000)]
        else:
            parts = multilingual(options.megabytes)
        draw = random.Random(18)
        strings = [fuzzed(draw) for _ in range(options.fuzzed)]
        write_tokenizers(folder, parts[:60], options.vocabulary)
        files = sorted(folder.glob("*.json")) + sorted(folder.glob("*.tiktoken")) + [folder / "pair" / "vocab.json"]
        if options.files:
            files += sorted(options.files.glob("*.json")) + sorted(options.files.glob("*.tiktoken"))
        size = sum(len(part.encode()) for part in parts) / 1e6
        print(f"{size:.1f} MB of text in {len(parts)} parts, {len(strings)} fuzzed strings; one thread each")
        print(f"{'tokenizer':28} {'text':>6} {'fuzzed':>7} {'decoded otherwise':>18} {'MB/s':>8} {'MB/s there':>11}")
        wrong = int(published(options.program, folder))
        for path in files:
            text_differs, text_lost, speed, speed_there = compare(options.program, path, parts, folder)
            fuzz_differs, fuzz_lost, _, _ = compare(options.program, path, strings, folder)
            lost = text_lost + fuzz_lost
            wrong += text_differs + fuzz_differs + (lost if decodes_exactly(path) else 0)
            print(f"{path.name:28} {text_differs:6} {fuzz_differs:7} {lost:18} {speed:8.1f} {speed_there:11.1f}", flush=True)
        print(f"{wrong} differences")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
