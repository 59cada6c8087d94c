"""Single bits of every kind of file are turned over. Whoever reads it says so, or gives what he gave before: never another value in silence."""

import json
import random
import shutil
import socket

from program import Figures, tiny_config, write_task
from scenarios import HANG_OR_SIGNAL, SILENT

# what says that something is not as it was
WORDS = ("damage", "lost", "missing", "unusable", "not JSON", "differ", "was changed", "is not", "cannot", "written again", "made again",
         "no readable", "expected", "unreadable", "was changed since")


class Kind:
    """`file` is damaged in a copy of a folder; `read` gives what is shown of it."""

    def __init__(self, name, files, read):
        self.name, self.files, self.read = name, files, read


def shown(*commands):
    """Standard output of some commands that only read, and all they said."""

    def read(program):
        outs, said, codes = [], "", []
        for command in commands:
            result = program.run(command, seconds=30)
            outs.append(result.out)
            said += result.err
            codes.append(result.code)
        return outs, said, codes

    return read


def exported(program):
    outs, said, codes = shown(["--json", "compare", "run"], ["export", "loss", "run", "--out", "loss.json"])(program)
    figure = program.path("loss.json")
    outs.append(figure.read_text() if figure.exists() else "")
    figure.unlink(missing_ok=True)
    return outs, said, codes


def trained(program):
    """What a short run on these tokens records."""
    shutil.rmtree(program.path("short"), ignore_errors=True)
    result = program.run(["train", program.config_file, "--out", "short"], seconds=60)
    if result.code != 0:
        return [], result.err, [result.code]
    state = program.run_state(program.path("short"))
    return [state["records"], state["checkpoints"]], result.err, [0]


def results(program):
    """Resuming a finished run writes results.h5 again when it is not the journal's."""
    result = program.run(["resume", "run"], seconds=30)
    said = program.path("run", "log.txt").read_text()[-400:]
    return [program.run_state(program.path("run"))["results_current"]], result.err + said, [result.code]


def prepare(program):
    program.import_corpus()
    for seed, run in enumerate(("run", "other")):
        program.path("config.json").write_text(json.dumps(tiny_config(seed=1 + seed, final_evaluation_tokens=1000)))
        program.good(["train", "config.json", "--out", run])
    write_task(program.folder)
    program.good(["evaluate", "run", "--task", "task.json", "--data", "items.csv"])
    program.good(["queue", "pause"])
    program.good(["queue", "add", "config.json", "--out", "later"])
    short = tiny_config(steps=4, evaluate_every=2, probe_every=4)
    program.path("short.json").write_text(json.dumps(short))
    short["data"]["tokenizer"] = "bpe:300"
    program.path("bpe.json").write_text(json.dumps(short))
    for name in ("short.json", "bpe.json"):
        program.good(["train", name, "--out", "first-" + name])


def kinds(program):
    cache, data = program.path("cache"), program.path("data")
    token_files = sorted(path.relative_to(program.folder) for path in cache.rglob("*.tokens"))
    models = sorted(path.relative_to(program.folder) for path in [*cache.rglob("*"), *data.rglob("*")] if path.is_file() and "bpe" in str(path)
                    and path.suffix != ".tokens")
    corpus = sorted(path.relative_to(program.folder) for path in data.rglob("mine/*"))
    return [Kind("run.json", ["run/run.json"], exported),
            Kind("journal", ["run/journal.jsonl"], exported),
            Kind("checkpoint", ["run/checkpoints/step-12.h5"], shown(["--json", "evaluate", "run", "--checkpoint", "12"])),
            Kind("capture", ["run/captures/step-12.h5"], shown(["--json", "inspect", "run", "--step", "12"])),
            Kind("results.h5", ["run/results.h5"], results),
            Kind("task scores", ["run/tasks/choices-step-12.json"],
                 shown(["--json", "evaluate", "run", "--task", "task.json", "--data", "items.csv"])),
            Kind("evaluation at the end", ["run/evaluations/step-12.validation.json"], shown(["--json", "compare", "run", "other"])),
            Kind("queue", ["data/queue/" + socket.gethostname() + "/cpu/queue.json"], shown(["--json", "queue", "list"])),
            Kind("token store", token_files, trained),
            Kind("tokenizer", models, trained),
            Kind("corpus", corpus, trained)]


def flip(path, chance):
    content = bytearray(path.read_bytes())
    bit = chance.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    return f"{path.name}, bit {bit % 8} of byte {bit // 8} of {len(content)}"


def run(program, trials, seed):
    prepare(program)
    good = True
    for kind in kinds(program):
        chance = random.Random(seed)
        figures = Figures(f"single bits of {kind.name}", (SILENT, HANG_OR_SIGNAL))
        program.config_file = "bpe.json" if kind.name == "tokenizer" else "short.json"
        if kind.name == "corpus":
            shutil.rmtree(program.path("cache"))
        expected, _, codes = kind.read(program)
        if any(codes) or not expected or not kind.files:
            raise SystemExit(f"{kind.name}: cannot be read undamaged: {codes}, {kind.files}")
        kept = {name: program.path(name).read_bytes() for name in ["run/run.json", "run/log.txt", "run/results.h5", *kind.files]}
        for _ in range(trials):
            name = chance.choice(kind.files)
            if kind.name == "corpus":
                shutil.rmtree(program.path("cache"), ignore_errors=True)
            story = flip(program.path(name), chance)
            outs, said, codes = kind.read(program)
            figures.trials += 1
            if any(code not in (0, 1, 2, 3) for code in codes):
                figures.fail(HANG_OR_SIGNAL, f"{story}: exit {codes}: {said}")
            elif any(codes):
                figures.count("refused")
            elif outs == expected and not any(word in said for word in WORDS):
                figures.count("without a meaning")
            elif any(word in said + "".join(map(str, outs)) for word in WORDS):
                figures.count("told")
            else:
                figures.fail(SILENT, f"{story}: {said}{difference(expected, outs)}")
            for path, content in kept.items():
                program.path(path).parent.mkdir(parents=True, exist_ok=True)
                program.path(path).write_bytes(content)
        good = figures.ended() and good
    return good


def difference(expected, found):
    for a, b in zip(expected, found):
        if a != b:
            a, b = str(a), str(b)
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            return f"{b[max(0, at - 60) : at + 40]!r}, expected {a[max(0, at - 60) : at + 40]!r}"
    return ""
