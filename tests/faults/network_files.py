"""Runs on file systems that have no locks, tell sizes and pages late, forget open files, or are copies that a program like rsync renews: played
by tests/faults/network_files.cpp. What commands bring about must be the same; a second writer is refused; a reader must never see damage, a
crash or fewer steps where there is none."""

import errno
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

import scenarios
from company import Checks, wait_for
from program import Figures, Program, is_one_line, tiny_config
from scenarios import MUST_BE_ZERO, steps_recorded

NO_LOCKS = {"ENOSYS": errno.ENOSYS, "ENOTSUPP": 524, "ENOLCK": errno.ENOLCK, "EOPNOTSUPP": errno.EOPNOTSUPP}
SILENT = 200  # seconds, more than after which a lease may be stale
IN_USE = 5


def network(program, **settings):
    """The environment of a process whose files lie on the network."""
    env = program.environment() | program.preloading(program.network) | {"NET_UNDER": str(program.folder)}
    return env | {"NET_" + key: str(value) for key, value in settings.items()}


class OnTheNetwork:
    """A program whose every command has its files there, in the form that scenarios use."""

    def __init__(self, program, **settings):
        self.program, self.settings = program, settings

    def __getattr__(self, name):
        return getattr(self.program, name)

    def at(self, folder):
        return OnTheNetwork(self.program.at(folder), **self.settings)

    def environment(self, faults=None):
        return network(self.program, **self.settings)

    def start(self, arguments, faults=None, **options):
        command = [str(self.binary), "-q", *map(str, arguments)]
        return subprocess.Popen(command, env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def run(self, arguments, faults=None, seconds=120, **options):
        return type(self.program).run(self, arguments, seconds=seconds, **options)

    def good(self, arguments, **options):
        return type(self.program).good(self, arguments, **options)

    def import_corpus(self, name="mine"):
        type(self.program).import_corpus(self, name)


def same_results(program, trials, seed):
    """Every command that writes, undisturbed but for locks that are not there: the same result as with them, and no lease is left."""
    kinds = scenarios.KILLED
    chance, good = random.Random(seed), True
    figures = Figures("commands without locks", (*MUST_BE_ZERO, "that failed"))
    count = min(trials, len(kinds)) if trials < 50 else trials
    chosen = [kinds[i % len(kinds)] for i in range(count)] if trials >= len(kinds) else chance.sample(kinds, count)
    made = {}
    for i, kind in enumerate(chosen):
        scenario = made.setdefault(kind, kind(program)) if kind in made else made.setdefault(kind, kind(program))
        name = list(NO_LOCKS)[(seed + i) % len(NO_LOCKS)]
        fresh = OnTheNetwork(scenario.fresh(f"net{i}"), LOCKS=NO_LOCKS[name])
        result = fresh.run(scenario.command())
        scenario.settle(fresh)
        figures.trials += 1
        if result.code != 0:
            figures.fail("that failed", f"{scenario.name}, {name}: exit {result.code}: {result.err}")
            continue
        scenario.problems(fresh, lambda what, story: figures.fail(what, f"{scenario.name}, {name}: {story}"))
        leases = [path for path in pathlib.Path(fresh.folder).rglob("*") if path.name == "lease" or path.name.endswith(".lease")]
        if leases:
            figures.fail("with files left over", f"{scenario.name}, {name}: {leases}")
        shutil.rmtree(fresh.folder, ignore_errors=True)
    good = figures.ended() and good
    return good


def ready(program):
    program.import_corpus()
    program.path("config.json").write_text(json.dumps(tiny_config()))
    long = dict(steps=10**9, evaluate_every=10**6, probe_every=10**6, checkpoint_every=500)
    program.path("long.json").write_text(json.dumps(tiny_config(**long)))


def make_silent(lease):
    past = time.time() - SILENT
    os.utime(lease, (past, past))


def as_held_elsewhere(lease, silent):
    """As if its holder were on another machine, of which nothing is known here."""
    holder = json.loads(lease.read_text())
    lease.write_text(json.dumps(holder | {"host": "node17", "boot": "another", "token": "0" * 32}) + "\n")
    if silent:
        make_silent(lease)


def leases(program, name):
    """One writer at a time where only the lease says so."""
    checks = Checks(f"leases, {name}")
    number = NO_LOCKS[name]
    there = OnTheNetwork(program, LOCKS=number)
    clock = program.path("clock")
    clock.write_text("0")
    sleeper = OnTheNetwork(program, LOCKS=number, CLOCK=clock)
    run, lease, journal = program.path("held"), program.path("held", "lease"), program.path("held", "journal.jsonl")
    holder = sleeper.start(["train", "long.json", "--out", "held"])
    checks.that(wait_for(lambda: steps_recorded(run) > 600, 120), "it does not train without locks")
    checks.that("has no locks" in (run / "log.txt").read_text(), "log.txt does not say that there are no locks")
    for command in (["resume", "held"], ["train", "config.json", "--out", "held"], ["resume", "held", "--take-over"]):
        result = there.run(command)
        told = result.code == IN_USE and is_one_line(result.err) and f"process {holder.pid} on" in result.err
        checks.that(told, f"{command}: {result.code} {result.err}")
    result = there.run(["compare", "held"])
    checks.that(result.code == 0, f"compare of a live run: {result.err}")

    # It is stopped, as a machine that sleeps; a user says that it is gone; it wakes up and must not write.
    holder.send_signal(signal.SIGSTOP)
    make_silent(lease)
    result = there.run(["resume", "held"])
    checks.that(result.code == IN_USE and "--take-over" in result.err and is_one_line(result.err), f"silent: {result.code} {result.err}")
    other = there.start(["resume", "held", "--take-over"])
    before = json.loads(lease.read_text())["process"] if lease.exists() else 0
    checks.that(wait_for(lambda: lease.exists() and lease.stat().st_size > 0 and json.loads(lease.read_text())["process"] == other.pid, 60),
                f"not taken over from {before}: {other.poll()} {other.stderr.read() if other.poll() is not None else ''}")
    grown = journal.stat().st_size
    checks.that(wait_for(lambda: journal.stat().st_size > grown, 60), "who took it over does not train")
    clock.write_text(str(SILENT))
    holder.send_signal(signal.SIGCONT)
    try:
        _, err = holder.communicate(timeout=120 * Program.patience)
        err = err.decode(errors="replace")
        checks.that(holder.returncode == IN_USE and f"taken over by process {other.pid} on" in err, f"it woke up: {holder.returncode} {err}")
    except subprocess.TimeoutExpired:
        holder.kill()
        checks.that(False, "who lost its lease goes on")
    other.terminate()
    other.communicate(timeout=60 * Program.patience)
    state = program.run_state(run)
    good = "error" not in state and not state["lost"] and not state["damage"]
    checks.that(good, f"the journal after both: {state}")
    checks.that(not lease.exists(), "the lease is left")

    # Killed: the process is gone, but only time tells that for sure.
    holder = there.start(["resume", "held"])
    recorded = steps_recorded(run)
    wait_for(lambda: steps_recorded(run) > recorded, 60)
    holder.kill()
    holder.communicate()
    waiting = there.start(["resume", "held"])
    checks.that(not wait_for(lambda: waiting.poll() is not None or json.loads(lease.read_text())["process"] == waiting.pid, 1.5),
                f"it did not wait for 180 s: {waiting.poll()}")
    told = time.monotonic()
    waiting.terminate()
    _, err = waiting.communicate(timeout=30 * Program.patience)
    checks.that(waiting.returncode in (IN_USE, 130) and time.monotonic() - told < 10 * Program.patience, f"SIGTERM while waiting: {waiting.returncode} {err.decode()}")
    make_silent(lease)
    result = there.run(["evaluate", "held", "--task", "none-such"])
    again = there.start(["resume", "held"])
    checks.that(wait_for(lambda: lease.exists() and json.loads(lease.read_text() or "{}").get("process") == again.pid, 60), "not taken up")
    again.kill()
    again.communicate()

    # A holder on another machine.
    as_held_elsewhere(lease, silent=False)
    for command in (["resume", "held"], ["resume", "held", "--take-over"]):
        result = there.run(command)
        checks.that(result.code == IN_USE and "on node17" in result.err and is_one_line(result.err), f"{command}: {result.code} {result.err}")
    with_locks = program.run(["resume", "held"])
    checks.that(with_locks.code == IN_USE and "on node17" in with_locks.err, f"locks of one machine: {with_locks.code} {with_locks.err}")
    result = there.run(["stop", "held"])
    checks.that(result.code == 3 and "stop it there" in result.err, f"stop of another machine's: {result.code} {result.err}")
    as_held_elsewhere(lease, silent=True)
    result = there.run(["resume", "held"])
    checks.that(result.code == IN_USE and "--take-over" in result.err, f"silent elsewhere: {result.code} {result.err}")
    last = there.start(["resume", "held", "--take-over"])
    checks.that(wait_for(lambda: lease.exists() and json.loads(lease.read_text() or "{}").get("process") == last.pid, 60), "not taken over")
    last.terminate()
    last.communicate(timeout=60 * Program.patience)
    shutil.rmtree(run)
    return checks.figures.ended()


class Follower:
    """tests/faults/run_follow.cpp on a run."""

    def __init__(self, program, run, outline, environment):
        self.process = subprocess.Popen([program.run_follow_program, run, "outline" if outline else "whole"], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.thread = threading.Thread(target=lambda: self.lines.extend(json.loads(line) for line in self.process.stdout))
        self.thread.start()

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=300 * Program.patience)
        self.thread.join()
        return self.lines


def judge(figures, what, lines, expected, outline, code):
    """`expected`: what run_state says of the run itself."""
    told = lambda line: f"{what}: {json.dumps(line)[:300]}"
    if code != 0:
        return figures.fail("followers that ended by a signal", f"{what}: {code}")
    steps = 0
    for line in lines:
        if "end" in line:
            continue
        if "error" in line:
            figures.fail("told an error", told(line))
            continue
        if line["damage"] or line["lost"]:
            figures.fail("told damage", told(line))
        if line["state"] == "crashed":
            figures.fail("told a crash", told(line))
        if line["steps"] < steps:
            figures.fail("lost steps that it had shown", told(line))
        steps = line["steps"]
    end = lines[-1].get("end") if lines else None
    whole = end and end["state"] == expected["state"] and end["last"] == expected["last_step"]
    if not whole or (not outline and end["steps"] != expected["steps"]):
        figures.fail("did not end with the whole run", f"{what}: {end}, expected {expected['steps']} steps to {expected['last_step']}")


READING_WRONG = ("told damage", "told a crash", "told an error", "lost steps that it had shown", "did not end with the whole run",
                 "followers that ended by a signal")


def late_bytes(program, trials, seed):
    """A run at work is followed by processes that are told its size and its last page late, and whose open files are forgotten."""
    figures = Figures("a run at work read late", READING_WRONG)
    chance = random.Random(seed)
    for i in range(trials):
        run = program.path(f"late{i}")
        config = tiny_config(steps=chance.choice((200, 400)), checkpoint_every=50, evaluate_every=50, probe_every=50)
        program.path("late.json").write_text(json.dumps(config))
        writer = program.start(["train", "late.json", "--out", run])
        wait_for(lambda: (run / "journal.jsonl").exists() or writer.poll() is not None, 60)
        followers = []
        for outline in (False, True):
            settings = {"HOST": "another", "LAG": chance.choice((5, 20, 80, 200)), "ZEROS": chance.randrange(2), "STALE": chance.choice((0, 7, 23))}
            followers.append((Follower(program, run, outline, network(program, **settings)), outline, settings))
        _, err = writer.communicate(timeout=300 * Program.patience)
        if writer.returncode != 0:
            raise SystemExit(f"train: {writer.returncode} {err.decode()}")
        expected = program.run_state(run)
        for follower, outline, settings in followers:
            figures.trials += 1
            lines = follower.end()
            figures.count("changes seen", len(lines))
            judge(figures, f"{run.name} {settings}", lines, expected, outline, follower.process.returncode)
        shutil.rmtree(run)
    return figures.ended()


class Mirror(threading.Thread):
    """Copies a run again and again, each file beside its place and renamed, in an order of its own, as rsync does."""

    def __init__(self, source, target, pause, order, without):
        super().__init__()
        self.source, self.target, self.pause, self.order, self.without = source, target, pause, order, without
        self.stopping = threading.Event()
        self.rounds = 0

    def copy(self, name):
        try:
            content = (self.source / name).read_bytes()
            times = (self.source / name).stat()
        except FileNotFoundError:
            return
        aside = self.target / f".{name}.XXXX"
        aside.write_bytes(content)
        os.utime(aside, ns=(times.st_atime_ns, times.st_mtime_ns))
        aside.rename(self.target / name)

    def round(self):
        names = ["journal.jsonl", "lease", "lock", "log.txt", "run.json"]  # as rsync goes
        if self.order == "reversed":
            names.reverse()
        for name in names:
            if name not in self.without:
                self.copy(name)
                time.sleep(self.pause / 5)
        self.rounds += 1

    def run(self):
        while not self.stopping.is_set():
            self.round()
        self.round()


def mirrors(program, trials, seed):
    """A copy of a run at work that is renewed again and again, file by file: the journal replaced under its reader, run.json before or behind it."""
    figures = Figures("a copy that is renewed", READING_WRONG)
    chance = random.Random(seed)
    for i in range(trials):
        run, copy = program.path(f"source{i}"), program.path(f"copy{i}")
        copy.mkdir()
        program.path("late.json").write_text(json.dumps(tiny_config(steps=300, checkpoint_every=20, evaluate_every=50, probe_every=50)))
        writer = program.start(["train", "late.json", "--out", run])
        wait_for(lambda: steps_recorded(run) > 3 or writer.poll() is not None, 60)
        without = chance.choice(((), ("lock", "lease")))
        mirror = Mirror(run, copy, chance.choice((0.01, 0.05, 0.1)), chance.choice(("rsync", "reversed")), without)
        mirror.start()
        wait_for(lambda: (copy / "run.json").exists(), 60)
        outline = bool(chance.randrange(2))
        follower = Follower(program, copy, outline, program.environment())
        _, err = writer.communicate(timeout=300 * Program.patience)
        mirror.stopping.set()
        mirror.join()
        figures.trials += 1
        figures.count("copies made", mirror.rounds)
        if writer.returncode != 0:
            raise SystemExit(f"train: {writer.returncode} {err.decode()}")
        lines = follower.end()
        judge(figures, f"{copy.name} without {without}, {mirror.order}", lines, program.run_state(run), outline, follower.process.returncode)
        shutil.rmtree(run)
        shutil.rmtree(copy)
    return figures.ended()


def run(program, trials, seed):
    folder = program.folder
    good = same_results(program.at(folder / "commands"), max(3, trials // 3), seed)
    company = program.at(folder / "company")
    ready(company)
    names = list(NO_LOCKS)
    for i in range(1 if trials < 20 else 4):
        good = leases(company, names[(seed + i) % 4]) and good
    good = late_bytes(company, max(2, trials // 4), seed) and good
    return mirrors(company, max(2, trials // 4), seed) and good
