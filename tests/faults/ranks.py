"""A rank of a run of two to four, or the process that started them, is killed, stopped or hangs at a random instant: all end within 30 s, the
rank is named, and the run goes on with another number of ranks to the bytes of a run that nothing disturbed."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

from program import Figures, Program, tiny_config
from same_run import equal

NOT_ENDED, NOT_NAMED, REFUSED, OTHER = "not ended within 30 s", "ended without the rank's name", "that could not be gone on with", "that ended with other bytes"
MUST_BE_ZERO = (NOT_ENDED, NOT_NAMED, REFUSED, OTHER)
LIMIT = 30  # seconds


def children(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False


def steps(program):
    journal = program.path("parts", "journal.jsonl")
    return journal.read_text(errors="replace").count('"type":"step"') if journal.exists() else 0


def disturb(program, process, chance, count, what, begun):
    """The rank that it was, −1: the process that started them; None where the run had ended."""
    at = chance.uniform(0, 300)  # steps; what is behind the end is at the clock's mercy
    wanted = max(at, 4) if "hangs" in what else at
    instant = begun + chance.uniform(0, 1)
    while process.poll() is None and (steps(program) < wanted if wanted >= 4 else time.monotonic() < instant or len(children(process.pid)) < count):
        time.sleep(0.002)
    ranks = children(process.pid)
    if process.poll() is not None or len(ranks) < count:
        return None
    rank = {"rank 0 hangs in a call": 0, "parent killed": -1}.get(what, chance.randrange(1 if what == "hangs" else 0, count))
    number = {"killed": signal.SIGKILL, "parent killed": signal.SIGKILL, "stopped": signal.SIGSTOP}.get(what, signal.SIGUSR1)
    try:
        os.kill(process.pid if rank < 0 else ranks[rank], number)
    except ProcessLookupError:
        return None
    return rank, ranks


def trial(program, figures, chance, expected):
    shutil.rmtree(program.path("parts"), ignore_errors=True)
    count, what = chance.choice((2, 3, 4)), chance.choice(("killed", "killed", "parent killed", "stopped", "hangs", "rank 0 hangs in a call"))
    env = program.environment() | (program.preloading(program.hang) | {"HANG_AT": "poll" if "call" in what else "anywhere"} if "hangs" in what else {})
    command = [program.binary, "-q", "train", "case.json", "--out", "parts", "--ranks", str(count), "--rank-timeout", "2"]
    begun = time.monotonic()
    process = subprocess.Popen(command, env=env, cwd=program.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    found = disturb(program, process, chance, count, what, begun)
    figures.trials += 1
    story = f"{what}, {count} ranks, at step {steps(program)}"
    if found is None:
        process.communicate()
        figures.count("ended before")
    else:
        rank, ranks = found
        figures.count(what)
        ended_within(program, process, ranks, figures, f"{story}, rank {rank}", f"rank {rank} (process {ranks[rank]} on " if rank >= 0 else "")
    resumed = program.run(["resume", "parts", "--ranks", str(chance.choice((1, 2, 3, 4, 6)))] if program.path("parts", "run.json").exists()
                          else ["train", "case.json", "--out", "parts"], seconds=120)
    if resumed.code != 0:
        figures.fail(REFUSED, f"{story}: {resumed.code} {resumed.err}")
    elif not equal(program.run_state(program.path("parts")), expected):
        figures.fail(OTHER, story)


def ended_within(program, process, ranks, figures, story, name):
    began = time.monotonic()
    try:
        error = process.communicate(timeout=LIMIT * Program.patience)[1]
    except subprocess.TimeoutExpired:
        figures.fail(NOT_ENDED, story)
        process.kill()
        error = process.communicate()[1]
    while any(map(lives, ranks)) and time.monotonic() - began < LIMIT * Program.patience:
        time.sleep(0.02)
    took = time.monotonic() - began
    if any(map(lives, ranks)):
        figures.fail(NOT_ENDED, story)
        for pid in filter(lives, ranks):
            os.kill(pid, signal.SIGKILL)
    figures.longest = max(figures.longest, took)
    if process.returncode == 0:
        figures.count("done all the same")
    elif name and name not in error and '"state": "finished"' not in program.path("parts", "run.json").read_text():
        figures.fail(NOT_NAMED, f"{story}: {error}")
    elif name:
        figures.count("ranks named")


def run(program, trials, seed):
    program.import_corpus()
    figures, chance = Figures("a rank killed, stopped or hung", MUST_BE_ZERO), random.Random(seed)
    figures.longest = 0
    config = tiny_config(steps=300, evaluate_every=100, probe_every=100, checkpoint_every=23, gradient_accumulation=12, batch_tokens=768)
    program.path("case.json").write_text(json.dumps(config))
    program.good(["train", "case.json", "--out", "whole"])
    expected = program.run_state(program.path("whole"))
    for _ in range(trials):
        trial(program, figures, chance, expected)
    figures.count("s at most until all had ended", round(figures.longest, 1))
    return figures.ended()
