"""kill -9 of the window at random instants, while it starts runs and studies here and on a host, orders queues, keeps a mirror and remembers what
was looked at; then it is started again. Runs go on, nothing that was begun is lost, what it remembers can be read and is where it was, and
when all is done there are no files but those that a window leaves that nobody killed, and no processes."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

from program import Figures, Program, copy_folder, tiny_config

RUNS_LOST, RUNS_ENDED, STUDIES = "runs lost", "runs that did not go on", "studies or queue entries lost"
SESSION, FILES, PROCESSES, MIRROR = "sessions that cannot be read or gone on with", "kinds of files left", "processes left", "mirrors that are not as the host"
MUST_BE_ZERO = (RUNS_LOST, RUNS_ENDED, STUDIES, SESSION, FILES, PROCESSES, MIRROR)
LANDMARKS = {"configure": "Start run", "studies": "Study to begin", "live": "What the x axis shows", "runs": "All runs"}
PATIENCE = 600  # seconds for all runs to end


def key(keys):
    return {"do": "key", "keys": keys}


def press(name):
    return {"do": "press", "name": name}


def write(name, text):
    return {"do": "write", "name": name, "text": text}


def choose(name, text):
    return {"do": "choose", "name": name, "text": text}


class Life:
    """One window, from its start to its end."""

    def __init__(self, world):
        self.world, self.fifo, self.orders = world, world.path("hand"), []
        for name in ("hand", "hand.did"):
            world.path(name).unlink(missing_ok=True)
        os.mkfifo(self.fifo)
        self.process = subprocess.Popen([world.workbench], env=world.environment(), cwd=world.folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=open(world.path("..", world.folder.name + ".window"), "w"))
        self.pipe = os.open(self.fifo, os.O_RDWR)

    def order(self, *orders):
        self.orders += orders
        os.write(self.pipe, "".join(json.dumps(each) + "\n" for each in orders).encode())

    def did(self):
        """Whether each of the first orders could be done."""
        file = self.world.path("hand.did")
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [" done " in line for line in lines if line.endswith("\n")]

    def wait(self, seconds=60):
        end = time.monotonic() + seconds * Program.patience
        while len(self.did()) < len(self.orders) and time.monotonic() < end and self.process.poll() is None:
            time.sleep(0.02)
        return len(self.did()) == len(self.orders)

    def close(self):
        os.close(self.pipe)
        for name in ("hand", "hand.did"):
            self.world.path(name).unlink(missing_ok=True)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def quit(self):
        self.order(key("Ctrl+Q"))
        try:
            return self.process.wait(20) == 0
        except subprocess.TimeoutExpired:
            self.kill()
            return False


class World:
    """A machine with a window, and a host that a script stands in for: it starts the agent here, in folders of its own."""

    def __init__(self, program, tools, folder, chance):
        self.program, self.tools, self.chance = program.at(folder), tools, chance
        self.folder, self.workbench = self.program.folder, tools["workbench"]
        self.number, self.started = 0, {}
        self.program.import_corpus()
        there = self.path("there")
        for name in ("runs", "runtime"):
            (there / name).mkdir(parents=True)
        self.path("runs").mkdir(exist_ok=True)
        copy_folder(self.path("data"), there / "data")
        self.there = {"SACCADE_DATA": str(there / "data"), "SACCADE_RUNS": str(there / "runs"), "HOME": str(there)}
        variables = " ".join(f"{name}='{value}'" for name, value in self.there.items())
        self.path("ssh").write_text(f'#!/bin/sh\nexport {variables} PATH="{self.program.binary.parent}:/usr/bin:/bin"\nexec sh -c "$3"\n')
        self.path("ssh").chmod(0o755)
        self.run("host", "add", "server", "--ssh", "alias")

    def path(self, *names):
        return self.folder.joinpath(*names)

    def environment(self):
        mine = {"SACCADE_CONFIG": self.path("config"), "XDG_STATE_HOME": self.path("state"), "XDG_CONFIG_HOME": self.path("xdg"),
                "XDG_RUNTIME_DIR": self.path("there", "runtime"), "SACCADE_SSH": self.path("ssh"), "SACCADE_BINARY": self.program.binary,
                "QT_PLUGIN_PATH": self.tools["plugins"], "QT_QPA_GENERIC_PLUGINS": f"window_hand:{self.path('hand')}", "LC_ALL": "C.UTF-8"}
        return self.program.environment() | {name: str(value) for name, value in mine.items()}

    def run(self, *arguments, there=False):
        result = subprocess.run([self.program.binary, "-q", *map(str, arguments)], env=self.environment() | (self.there if there else {}),
                                cwd=self.folder, capture_output=True, text=True, timeout=120 * Program.patience)
        return result

    def queues(self, there):
        """Entries of all queues; nothing where they cannot be read."""
        result = self.run("--json", "queue", "list", there=there)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def begins_run(self, host, steps=None):
        """A run from the page Configure; of the longer ones the end is evaluated on more text, which leaves a file."""
        self.number += 1
        name = f"run-{self.number}"
        config = tiny_config(steps=steps or self.chance.choice((100, 1500)), evaluate_every=500, probe_every=500, checkpoint_every=50)
        begin = press("Start run") | {"run": name} | ({"host": True} if host else {})
        return [key("Ctrl+N"), press("Show the config as JSON"), write("Config as JSON", json.dumps(config | {"name": name})),
                choose("Where its runs go", "on server" if host else "on this machine"), begin, {"do": "see", "name": LANDMARKS["live"]}]

    def queues_study(self):
        self.number += 1
        file = self.path("studies", f"study-{self.number}.json")
        file.parent.mkdir(exist_ok=True)
        base = tiny_config(steps=150, evaluate_every=150, probe_every=150, checkpoint_every=50)
        file.write_text(json.dumps({"question": "Which width?", "base": base, "axes": [{"setting": "architecture.width", "values": [8, 16]}], "seeds": [1]}))
        return [key("Ctrl+7"), write("Study to begin", str(file)), press("Queue it")]

    def orders_queue(self, host):
        what = self.chance.choice(([press("Pause")], [press("Go on with the queue")], [{"do": "mark", "name": "Queue", "row": 1}, key("Alt+Up")]))
        return [key("Ctrl+7"), choose("Whose queue it is", "on server" if host else "on this machine"), *what]

    def changes_what_is_remembered(self):
        return [key("Ctrl+K"), {"do": "type", "text": self.chance.choice(("dark", "light"))}, key("Return"),
                key(f"Ctrl+{self.chance.choice((1, 2, 3, 4, 5, 7))}")]

    def some_orders(self):
        kinds = [lambda: self.begins_run(False), lambda: self.begins_run(False), lambda: self.begins_run(True), self.queues_study,
                 lambda: self.orders_queue(False), lambda: self.orders_queue(True), self.changes_what_is_remembered]
        return [order for kind in self.chance.sample(kinds, k=3) for order in kind()]

    def every_order(self):
        queue = [order for host in (False, True) for order in (key("Ctrl+7"), choose("Whose queue it is", "on server" if host else "on this machine"))]
        return (self.begins_run(False, 1500) + self.begins_run(True, 1500) + self.queues_study() + self.changes_what_is_remembered() + queue
                + [key(f"Ctrl+{page}") for page in (1, 2, 3, 4, 5, 6, 7)])

    def processes(self, *words):
        """Ids and command lines of processes that belong to this folder."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ") if entry.name.isdigit() else ""
                mine = line and f"={self.folder}/".encode() in (entry / "environ").read_bytes()
            except OSError:
                continue
            if mine and int(entry.name) != os.getpid() and (not words or any(word in line for word in words)):
                found[int(entry.name)] = line
        return found

    def trainers(self):
        return self.processes(" train ", " resume ")

    def remembered(self):
        """What workbench.ini says, by name; None where it is no such file."""
        file = self.path("state", "saccade", "workbench.ini")
        if not file.exists():
            return {}
        lines = file.read_text(encoding="utf-8", errors="strict").splitlines()
        good = all(not line or re.fullmatch(r"\[.+\]|[^=]+=.*", line) for line in lines) and lines
        return dict(line.split("=", 1) for line in lines if "=" in line) if good else None

    def runs_of(self, folder):
        """Run directories, those of studies among them."""
        return sorted(file.parent for pattern in ("*/run.json", "*/runs/*/run.json") for file in folder.glob(pattern) if "server" != file.relative_to(folder).parts[0])

    def kinds_of_files(self):
        """What files there are, without the names of runs and the numbers in theirs."""
        kinds = set()
        for file in self.folder.rglob("*"):
            if file.is_dir() and not file.is_symlink():
                continue
            parts = list(file.relative_to(self.folder).parts)
            for i, part in enumerate(parts):
                parts[i] = re.sub(r"(tiny|run|study|early|width)[-_a-z0-9]*", "NAME", re.sub(r"\d{8}-\d{6}", "TIME", part))
            kinds.add(re.sub(r"\d+", "#", "/".join(parts)))
        return kinds


def readable(world, figures, story):
    """What the window, the queues and the command line keep."""
    if world.remembered() is None:
        figures.fail(SESSION, f"{story}: workbench.ini")
    for file in world.folder.rglob("*.json"):
        try:
            json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            pass  # renamed meanwhile
        except ValueError as error:
            figures.fail(SESSION, f"{story}: {file}: {error}")
    for there in (False, True):
        if world.queues(there) is None:
            figures.fail(STUDIES, f"{story}: the queue {'there' if there else 'here'} cannot be read")


def state_of(run):
    try:
        return json.loads((run / "run.json").read_text())["state"]
    except (OSError, ValueError, KeyError):
        return ""


def wait_for_instant(life, chance, longest):
    """At random: by the clock, or shortly behind one of the orders. Seconds since the start."""
    began, order = time.monotonic(), chance.randint(1, len(life.orders))
    by_clock, instant, behind = chance.random() < 0.3, chance.uniform(0.02, longest), chance.uniform(0, 0.4)
    while life.process.poll() is None and time.monotonic() - began < (instant if by_clock else 30 * Program.patience):
        if not by_clock and len(life.did()) >= order:
            time.sleep(behind)
            break
        time.sleep(0.005)
    return time.monotonic() - began


def trial(world, figures, longest):
    """A window that is killed; what was begun before goes on."""
    life = Life(world)
    page = (world.remembered() or {}).get("page", "")
    if page in LANDMARKS:
        life.order({"do": "see", "name": LANDMARKS[page]})
    life.order(*world.some_orders())
    instant = wait_for_instant(life, world.chance, longest)
    if life.process.poll() is not None:
        figures.fail(SESSION, f"the window ended by itself with {life.process.returncode}")
    before = world.trainers()
    life.kill()
    figures.trials += 1
    figures.count("windows killed")
    figures.count("runs at work then", len(before))
    did = life.did()
    if page in LANDMARKS and did and not did[0]:
        figures.fail(SESSION, f"the page {page} did not come back")
    for done, order in zip(did, life.orders):
        if done and "run" in order:
            world.started[order["run"]] = order.get("host", False)
            figures.count("runs begun")
    figures.count("orders done", sum(did))
    life.close()
    time.sleep(0.1)
    after = world.processes()
    for pid, line in before.items():
        out = re.search(r"(?:--out|resume) (\S+)", line)
        if pid not in after and out and not until(lambda: state_of(pathlib.Path(out[1])) == "finished", 5) and "--on" not in line:
            figures.fail(RUNS_ENDED, f"killed after {instant:.2f} s: {line}: {state_of(pathlib.Path(out[1]))}")
    readable(world, figures, f"killed after {instant:.2f} s")


def until(done, seconds):
    end = time.monotonic() + seconds * Program.patience
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def undisturbed_life(world, figures, orders=()):
    """From start to quitting; how long it took."""
    life, began = Life(world), time.monotonic()
    life.order(*orders)
    if not life.wait() or not all(life.did()):
        figures.fail(SESSION, f"not done: {[order for order, done in zip(life.orders, life.did() + [False] * 99) if not done][:2]}")
    took = time.monotonic() - began
    world.started |= {order["run"]: order.get("host", False) for order in life.orders if "run" in order}
    until(lambda: not world.processes(" --on server"), 60)  # what goes on in other processes
    if not life.quit():
        figures.fail(SESSION, "the window did not quit")
    life.close()
    return took


def work_off(world, figures):
    """All that was begun goes to its end."""
    for there in (False, True):
        for queue in world.queues(there) or []:
            world.run("queue", "go-on", "--device", queue["device"], there=there)
    rests = lambda: not world.trainers() and all(not queue["entries"] for there in (False, True) for queue in world.queues(there) or [])
    if not until(rests, PATIENCE):
        figures.fail(STUDIES, f"not worked off: {world.trainers()} {world.queues(False)} {world.queues(True)}")
    synced = world.run("host", "sync", "server")
    if synced.returncode != 0:
        figures.fail(MIRROR, synced.stderr)


def check_runs(world, figures):
    here, there = world.runs_of(world.path("runs")), world.runs_of(world.path("there", "runs"))
    for run in here + there:
        state = world.program.run_state(run)
        records = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
        whole = state.get("state") == "finished" and not state.get("damage") and not state.get("lost")
        if not whole or [r["n"] for r in records] != list(range(len(records))):
            figures.fail(RUNS_LOST, f"{run}: {state}")
        elif any(r["type"] == "resume" for r in records):
            figures.fail(RUNS_ENDED, f"{run} was taken up again")
    named = {run_name(run) for run in here}, {run_name(run) for run in there}
    for name, host in world.started.items():
        if name not in named[0] and not host:
            figures.fail(RUNS_LOST, f"{name} was begun and is not there")
    for folder in (world.path("runs"), world.path("there", "runs")):
        for study in folder.glob("*/study.json"):
            status = world.run("--json", "study", "status", study.parent)
            figures.count("studies")
            if status.returncode != 0 or not json.loads(status.stdout)["complete"]:
                figures.fail(STUDIES, f"{study}: {status.stderr}{status.stdout[:300]}")
    for run in there:
        mirror = world.path("runs", "server", run.relative_to(world.path("there", "runs")))
        figures.count("runs mirrored")
        if not mirror.exists() or any((mirror / file).read_bytes() != (run / file).read_bytes() for file in ("journal.jsonl", "run.json")):
            figures.fail(MIRROR, str(mirror))
    figures.count("runs finished", len(here) + len(there))


def run_name(run):
    try:
        return json.loads((run / "run.json").read_text())["config"]["name"]
    except (OSError, ValueError, KeyError):
        return ""


def check_left(world, figures, usual):
    if not until(lambda: not world.processes(), 30):
        figures.fail(PROCESSES, str(world.processes()))
    for kind in sorted(world.kinds_of_files() - usual):
        figures.fail(FILES, kind)


def run(program, trials, seed):
    figures = Figures("the window killed with SIGKILL", MUST_BE_ZERO)
    chance = random.Random(seed)
    calm = World(program, program.window, program.path("calm"), chance)
    longest, usual = 0, set()
    try:
        longest = undisturbed_life(calm, figures, calm.every_order())
        undisturbed_life(calm, figures)
        work_off(calm, figures)
        check_runs(calm, figures)
        check_left(calm, figures, calm.kinds_of_files())
        usual = calm.kinds_of_files()
        figures.also.clear()
        world = World(program, program.window, program.path("killed"), chance)
        for _ in range(trials):
            trial(world, figures, longest)
        undisturbed_life(world, figures, [key(f"Ctrl+{page}") for page in (1, 2, 3, 7)])
        work_off(world, figures)
        undisturbed_life(world, figures, world.begins_run(False))  # which also tidies up
        work_off(world, figures)
        check_runs(world, figures)
        check_left(world, figures, usual)
    finally:
        for each in (program.path("calm"), program.path("killed")):
            if each.exists():
                end_processes(each)
    return figures.ended()


def end_processes(folder):
    """What is left where something went wrong."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"={folder}/".encode() in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue
    shutil.rmtree(folder / "there" / "runtime", ignore_errors=True)
