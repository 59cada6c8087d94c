"""Others on the same run, locks of all kinds, signals in every long phase, odd names and large numbers."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from program import Figures, Program, is_one_line, tiny_config
from scenarios import steps_recorded

WRONG = "that did not do what they should"
LONG_NAME = "a" * 196 + ".run"
NAMES = ["two words", "it's", 'say "run"', "line\nbreak", "Läufe-訓練-🚀", LONG_NAME, "-dash", "tab\tand\\backslash", "a:b*c?", "…/inner"]


class Checks:
    def __init__(self, title):
        self.figures = Figures(title, (WRONG,))

    def that(self, condition, story):
        self.figures.trials += 1
        if not condition:
            self.figures.fail(WRONG, story)


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds * Program.patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def ready(program):
    program.import_corpus()
    program.path("config.json").write_text(json.dumps(tiny_config()))
    program.path("long.json").write_text(json.dumps(tiny_config(steps=10**9, evaluate_every=10**6, probe_every=10**6, checkpoint_every=10**6)))
    program.good(["train", "config.json", "--out", "finished"])


def two_at_a_time(program):
    checks = Checks("two processes on one run")
    holder = program.start(["train", "long.json", "--out", "held"])
    checks.that(wait_for(lambda: steps_recorded(program.path("held")) > 20), "it does not train")
    for command in (["resume", "held"], ["train", "config.json", "--out", "held"], ["resume", "held/."]):
        result = program.run(command)
        checks.that(result.code == 5 and is_one_line(result.err) and str(holder.pid) in result.err, f"{command}: {result.code} {result.err}")
    program.path("held", "lock").unlink()
    checks.that(program.run(["resume", "held"]).code == 5, "a deleted lock let a second process in")
    for command in (["compare", "held"], ["export", "loss", "held", "--out", "held.csv"]):
        checks.that(program.run(command).code == 0, f"{command} of a live run")
    holder.kill()
    holder.communicate()

    both = [program.start(["resume", "held", ]) for _ in range(2)]
    checks.that(wait_for(lambda: any(p.poll() is not None for p in both)), "two that start at once: both train")
    codes = sorted(str(p.poll()) for p in both)
    checks.that(codes == ["5", "None"], f"two that start at once: {codes}")
    for process in both:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=20 * Program.patience)
    return checks.figures.ended()


def locks(program):
    checks = Checks("stale, missing and odd locks")
    states = {
        "of a process that is gone": lambda lock: lock.write_text("999999999 elsewhere\n"),
        "with no text": lambda lock: lock.write_text(""),
        "with other text": lambda lock: lock.write_bytes(b"\xff\x00{" * 1000),
        "missing": lambda lock: lock.unlink(),
        "a link": lambda lock: (lock.unlink(), lock.symlink_to(program.path("victim"))),
        "a link to nothing": lambda lock: (lock.unlink(), lock.symlink_to("nowhere")),
        "a folder": lambda lock: (lock.unlink(), lock.mkdir()),
        "a pipe": lambda lock: (lock.unlink(), os.mkfifo(lock)),
    }
    program.path("victim").write_text("precious")
    for name, make in states.items():
        shutil.rmtree(program.path("run"), ignore_errors=True)
        shutil.copytree(program.path("finished"), program.path("run"))
        info = json.loads(program.path("run", "run.json").read_text())
        program.path("run", "run.json").write_text(json.dumps(info | {"state": "running"}))
        make(program.path("run", "lock"))
        result = program.run(["resume", "run"], seconds=20)
        odd = name.startswith("a ")
        checks.that(result.code == (3 if odd else 0) and (not odd or is_one_line(result.err)), f"lock {name}: {result.code} {result.err}")
        result = program.run(["compare", "run"], seconds=20)
        told = result.code == 3 and is_one_line(result.err) and "run" in result.err
        checks.that(result.code == 0 or (odd and told), f"compare with a lock {name}: {result.code} {result.err}")
    checks.that(program.path("victim").read_text() == "precious", "a link was written through")
    return checks.figures.ended()


def ends_in_time(checks, name, process, begun, limit=2.0, codes=(130,)):
    # What is done before it was seen to begin is judged by its exit. A busy disk can hold a new run's files back for many seconds.
    if not wait_for(lambda: begun() or process.poll() is not None, seconds=120):
        where = waits_in(process.pid)
        process.kill()
        out, err = process.communicate()
        checks.that(False, f"{name} does not begin, {where}: {err.decode(errors='replace')}")
        return
    told = time.monotonic()
    process.terminate()
    try:
        _, err = process.communicate(timeout=30 * Program.patience)
        seconds = time.monotonic() - told
        checks.slowest = max(checks.slowest, seconds)
        checks.that(seconds <= limit * Program.patience and process.returncode in codes, f"{name}: {seconds:.1f} s, exit {process.returncode}: {err.decode()}")
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        checks.that(False, f"{name} did not heed SIGTERM")


def signals(program, size):
    """SIGTERM while a corpus is imported and local text gathered, a tokenizer is trained, text is tokenized, a model trains, evaluates."""
    checks = Checks("SIGTERM in every long phase")
    checks.slowest = 0.0
    long_text = program.path("long.jsonl")
    with open(long_text, "w") as file:
        for i in range(size):
            words = " ".join(f"{chr(97 + i % 26)}{(i * 7919 + j * 104729) % 99991:x}" for j in range(60))
            file.write(json.dumps({"text": words, "meta": {"redpajama_set_name": "prose" if i % 10 else "code"}}) + "\n")
    aside = lambda: any(path.name.startswith(".large") for path in program.path("data", "corpora").iterdir())
    ends_in_time(checks, "importing", program.start(["corpus", "import", "large", "long.jsonl"]), aside)
    checks.that(not aside(), "importing left files")
    program.good(["corpus", "import", "large", "long.jsonl"], seconds=300)
    config = tiny_config(steps=10**6, evaluate_every=10**5, probe_every=10**5, checkpoint_every=10**5)
    config["data"] |= {"corpus": "large", "tokenizer": "bpe:4000"}
    program.path("bpe.json").write_text(json.dumps(config))
    busy = lambda process, seconds: (lambda: cpu_seconds(process.pid) > seconds)
    for name, seconds in (("training a tokenizer, early", 0.3), ("training a tokenizer, later", 1.5)):
        process = program.start(["train", "bpe.json", "--out", "bpe"])
        ends_in_time(checks, name, process, busy(process, seconds))
    config["data"]["tokenizer"] = "bytes"
    program.path("bytes.json").write_text(json.dumps(config))
    process = program.start(["train", "bytes.json", "--out", "bytes"])
    ends_in_time(checks, "tokenizing or training", process, busy(process, 0.2))
    process = program.start(["train", "long.json", "--out", "stopped"])
    ends_in_time(checks, "training", process, lambda: steps_recorded(program.path("stopped")) > 50)
    slow = tiny_config(steps=10**6, evaluate_every=1, evaluation_tokens=10**7, checkpoint_every=10**5)
    slow["data"]["corpus"] = "large"
    program.path("slow.json").write_text(json.dumps(slow))
    process = program.start(["train", "slow.json", "--out", "evaluating"])
    ends_in_time(checks, "evaluating while training", process, lambda: steps_recorded(program.path("evaluating")) > 0)
    process = program.start(["evaluate", "finished", "--tokens", str(10**9), "--corpus", "large", "--split", "validation", "--length", "64"])
    ends_in_time(checks, "evaluating", process, busy(process, 0.1), codes=(130, -signal.SIGTERM, 0))
    process = program.start(["bench", "--preset", "2m-cpu", "--repeats", "1000"])
    ends_in_time(checks, "bench", process, busy(process, 0.5), codes=(130, -signal.SIGTERM))
    process = program.start(["corpus", "show", "local-text"])
    ends_in_time(checks, "gathering local text", process, busy(process, 0.1), codes=(130, -signal.SIGTERM))
    checks.figures.title += f" (at most {checks.slowest:.2f} s until the end)"
    return checks.figures.ended()


def waits_in(pid):
    """What the kernel says of every thread: its state and the call that it waits in."""
    told = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            state = (task / "stat").read_text().rsplit(")", 1)[1].split()[0]
            told.append(f"{state} {(task / 'wchan').read_text() or '-'}")
        except OSError:
            pass
    return ", ".join(told)


def cpu_seconds(pid):
    try:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        return 1e9
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def names(program):
    checks = Checks("odd names of runs, figures and paths to them")
    for name in NAMES:
        run = "./" + name if name.startswith("-") else name
        result = program.run(["train", "config.json", "--out", run])
        checks.that(result.code == 0, f"train {name!r}: {result.err}")
        for command in (["resume", run], ["compare", run, "finished"], ["inspect", run], ["evaluate", run],
                        ["export", "loss", run, "--out", run + "/loss.csv"], ["stop", run]):
            result = program.run(command)
            checks.that(result.code == 0, f"{command[0]} {name!r}: {result.err}")
        result = program.run(["resume", run + "/missing"])
        checks.that(result.code != 0 and is_one_line(result.err), f"{name!r}: {result.err!r}")
    program.path("alias").symlink_to(program.path("finished"), target_is_directory=True)
    program.path("inner").mkdir(exist_ok=True)
    for run in ("alias", "alias/", "./finished", "inner/../finished", str(program.path("finished")), "finished//"):
        for command in ("resume", "compare", "inspect"):
            result = program.run([command, run])
            checks.that(result.code == 0, f"{command} {run}: {result.err}")
    return checks.figures.ended()


def large_numbers(program):
    """Counts of 2^32 steps and more are read and shown as they are."""
    checks = Checks("steps over 2^32")
    large = 2**32 + 5
    crc = crc32c_table()
    lines, n = [], 0
    for record in ({"type": "state", "state": "running", "step": 0, "message": ""},
                   *({"type": "step", "step": large + i, "tokens": 128 * (large + i), "flops": 1e6 * (large + i), "seconds": 1.0 + i, "loss": 3.0,
                      "learning_rate": 0.001, "gradient_norm": 1.0, "tokens_per_second": 100.0} for i in range(3))):
        text = json.dumps({"n": n} | record, separators=(",", ":"))[:-1]
        lines.append(f'{text},"crc32c":"{crc(text.encode()):08x}"}}\n')
        n += 1
    shutil.copytree(program.path("finished"), program.path("large"))
    program.path("large", "journal.jsonl").write_text("".join(lines))
    info = json.loads(program.path("large", "run.json").read_text())
    info |= {"step": large + 2, "steps": large + 10, "state": "stopped", "records": len(lines)}
    program.path("large", "run.json").write_text(json.dumps(info))
    result = program.run(["export", "loss", "large", "--out", "large.csv", "--x", "step"])
    written = program.path("large.csv").read_text() if result.code == 0 else result.err
    checks.that(f"{large}," in written and f"{large + 2}," in written, written[:400])
    result = program.run(["export", "loss", "large", "--out", "tokens.csv", "--x", "tokens"])
    written = program.path("tokens.csv").read_text() if result.code == 0 else result.err
    checks.that(f"{128 * (large + 2)}," in written, written[:400])
    result = program.run(["compare", "large"])
    checks.that(result.code in (0, 3) and result.err.count("\n") <= 2, f"{result.code} {result.err}")
    return checks.figures.ended()


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)

    def crc(data):
        value = 0xFFFFFFFF
        for byte in data:
            value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
        return value ^ 0xFFFFFFFF

    return crc


def run(program, trials, seed):
    ready(program)
    good = [two_at_a_time(program), locks(program), signals(program, 60000 if trials else 8000), names(program), large_numbers(program)]
    return all(good)
