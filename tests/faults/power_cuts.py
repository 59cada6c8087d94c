"""Power cuts, played: the file calls of a command are recorded, and disks are made as a cut at a random point may leave them. What was synced
is there. Of what was not, every page of a file is as it was at some moment since, its length that of some moment, and of the changes of
names in each folder only the first few were done. On every such disk the next command works, and nothing acknowledged is lost."""

import json
import pathlib
import random
import re
import shutil
import struct

from program import Figures
from scenarios import LEFT, LOST, MUST_BE_ZERO, OTHER, UNREADABLE, Importing, Scenario, Training, WritingCheckpoints, files_below

HEADER = struct.Struct("<IIIIQ")  # `Entry` of faulty_calls.cpp
PAGE = 4096


def read_record(path, root):
    """(kind, names of the path below root, names of the other path, offset, data)."""
    content, at, entries = path.read_bytes(), 0, []

    def names(text):
        return tuple(pathlib.Path(text).relative_to(root).parts) if text else ()

    while at < len(content):
        kind, *lengths, offset = HEADER.unpack_from(content, at)
        at += HEADER.size
        parts = []
        for length in lengths:
            parts.append(content[at : at + length])
            at += length
        entries.append((chr(kind), names(parts[0].decode()), names(parts[1].decode()), offset, parts[2]))
    return entries


class File:
    def __init__(self, synced=b""):
        self.synced, self.changes = synced, []  # (offset, data), or (length, None)

    def after(self, changes):
        content = bytearray(self.synced)
        for offset, data in changes:
            if data is None:
                content = content[:offset] + bytes(max(0, offset - len(content)))
            else:
                content += bytes(max(0, offset - len(content)))
                content[offset : offset + len(data)] = data
        return bytes(content)

    def sync(self):
        self.synced, self.changes = self.after(self.changes), []

    def left(self, chance):
        if not self.changes:
            return self.synced
        states = [self.after(self.changes[:k]) for k in range(len(self.changes) + 1)]
        content = bytearray()
        for begin in range(0, max(map(len, states)), PAGE):
            page = chance.choice(states)[begin : begin + PAGE]
            content += bytes(begin - len(content)) + page
        length = len(chance.choice(states))
        return bytes(content[:length]) + bytes(max(0, length - len(content)))


class Folder:
    def __init__(self):
        self.synced, self.now, self.changes = {}, {}, []  # names to files and folders; a change is a dict of such, None for gone

    def change(self, names):
        self.changes.append(names)
        apply(self.now, names)

    def sync(self):
        self.synced, self.changes = dict(self.now), []

    def left(self, chance):
        names = dict(self.synced)
        for change in self.changes[: chance.randint(0, len(self.changes))]:
            apply(names, change)
        return names


def apply(names, change):
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    def __init__(self, folder):
        self.root = self.load(folder)

    def load(self, folder):
        node = Folder()
        for path in folder.iterdir():
            node.now[path.name] = self.load(path) if path.is_dir() else File(path.read_bytes())
        node.sync()
        return node

    def find(self, names):
        node = self.root
        for name in names:
            node = node.now.get(name) if isinstance(node, Folder) else None
        return node

    def do(self, entry):
        kind, names, other, offset, data = entry
        folder, name = self.find(names[:-1]), names[-1] if names else ""
        if kind == "C":
            folder.change({name: File()})
        elif kind == "D":
            folder.change({name: Folder()})
        elif kind == "U":
            folder.change({name: None})
        elif kind == "M":
            self.move(names, other)
        elif kind == "S":
            if node := self.find(names):
                node.sync()
        elif kind != "A" and (node := self.find(names)):  # what was deleted may still be written
            node.changes.append((offset, data) if kind == "W" else (0 if kind == "T" else offset, None))

    def move(self, names, other):
        node, source, target = self.find(names), self.find(names[:-1]), self.find(other[:-1])
        if source is target:
            source.change({names[-1]: None, other[-1]: node})
        else:
            target.change({other[-1]: node})
            source.change({names[-1]: None})

    def write(self, folder, chance, node=None):
        folder.mkdir(exist_ok=True)
        for name, child in (node or self.root).left(chance).items():
            if isinstance(child, Folder):
                self.write(folder / name, chance, child)
            else:
                (folder / name).write_bytes(child.left(chance))


def without_older_checkpoints(kind):
    """A checkpoint that was deleted may be there again: that its name is gone was not promised."""

    class Tolerant(kind):
        def look(self, program):
            found = super().look(program)
            newest = sorted(found[OTHER]["checkpoints"].items(), key=lambda item: int(item[0]))[-2:]
            found[OTHER]["checkpoints"] = dict(newest)
            kept = [f"checkpoints/step-{step}.h5" for step, _ in newest]
            found[LEFT] = [name for name in found[LEFT] if name in kept or not name.startswith("checkpoints/step-")]
            return found

    return Tolerant


class Adding(Scenario):
    """To a queue that is paused, so that nothing starts."""

    name = "adding to the queue"

    def prepare(self, program):
        super().prepare(program)
        program.good(["queue", "pause", "--device", "cpu"])
        program.good(["queue", "add", "config.json", "--out", "before"])

    def command(self):
        return ["queue", "add", "config.json", "--out", "run"]

    def entries(self, program):
        listed = program.run(["--json", "queue", "list"])
        return [entry["directory"].rsplit("/")[-1] for entry in listed.json()[0]["entries"]] if listed.code == 0 else listed.err

    def before_going_on(self, program, note):
        if self.entries(program) not in (["before"], ["before", "run"]):
            note(LOST, f"{program.folder}: the queue has {self.entries(program)}")

    def go_on(self, program):
        return program.run(["queue", "move", "run", "2"] if "run" in self.entries(program) else self.command())

    def look(self, program):
        return {OTHER: self.entries(program), LEFT: files_below(program.path("data"))}


class FirstUse(Adding):
    """The same before there is a queue; a worker finds nothing to do, for it is told of no entry before the cut."""

    name = "using the queue for the first time"

    def prepare(self, program):
        Scenario.prepare(self, program)

    def command(self):
        return ["queue", "pause", "--device", "cpu"]

    def entries(self, program):
        listed = program.run(["--json", "queue", "list"])
        return [queue["paused"] for queue in listed.json()] if listed.code == 0 else listed.err

    def before_going_on(self, program, note):
        if self.entries(program) not in ([], [True], [False]):
            note(UNREADABLE, f"{program.folder}: {self.entries(program)}")

    def go_on(self, program):
        return program.run(self.command())


def acknowledged(scenario, entries):
    """What was promised behind each entry: the largest step synced to the journal, checkpoints renamed and synced, and whether the
    command has ended."""
    written = synced = 0
    named, kept, ended = set(), set(), False
    for kind, names, other, _, data in entries:
        if kind == "W" and names[-1:] == ("journal.jsonl",):
            for line in data.splitlines():
                record = json.loads(line)
                written = max(written, record["step"] if record["type"] == "step" else 0)
        elif kind == "S" and names[-1:] == ("journal.jsonl",):
            synced = written
        elif kind == "M" and other[-2:-1] == ("checkpoints",):
            named.add(other[-1])
        elif kind == "S" and names[-1:] == ("checkpoints",):
            kept |= named
        elif kind == "U" and names[-2:-1] == ("checkpoints",):
            kept.discard(names[-1])
            named.discard(names[-1])
        elif kind == "A":
            ended = True
        yield synced, frozenset(kept), ended


def known_too_early(entries):
    """Versions of run.json that know of more records than the journal has on the disk when they get their name."""
    written = synced = 0
    content, found = {}, []
    for number, (kind, names, other, offset, data) in enumerate(entries):
        if kind == "W" and names[-1:] == ("journal.jsonl",):
            written += data.count(b"\n")
        elif kind == "S" and names[-1:] == ("journal.jsonl",):
            synced = written
        elif kind == "C":
            content[names] = b""
        elif kind == "W" and offset == len(content.get(names, b"")):
            content[names] = content.get(names, b"") + data
        elif kind == "M" and other[-1:] == ("run.json",):
            known = json.loads(content[names]).get("records", 0)
            if known > synced:
                found.append(f"call {number + 1}: run.json knows {known} records, {synced} are synced")
    return found


def holes(lost):
    """Behind which steps records are lost, by what a run says: of those that were not synced some may be, in the middle too."""
    return [int(step) for step in re.findall(r"behind step (\d+)", lost)]


def check_promises(scenario, program, promise, note):
    steps, checkpoints, ended = promise
    if isinstance(scenario, Training):
        run = program.path(scenario.run)
        missing = [name for name in checkpoints if not (run / "checkpoints" / name).exists()]
        if missing:
            note(LOST, f"{program.folder}: {missing}")
        if steps > 0:
            state = program.run_state(run)
            if "error" in state:
                note(UNREADABLE, f"{program.folder}: {state['error']}")
            elif state["last_step"] < steps or min(holes(state["lost"]), default=steps) < steps:
                note(LOST, f"{program.folder}: step {state['last_step']} of {steps} {state['lost']}")
    if ended:
        found = scenario.look(program)
        for kind, expected in scenario.expected.items():
            if found[kind] != expected:
                note(LOST, f"{program.folder}: the command had ended with 0")


def images(scenario, figures, count, seed):
    chance = random.Random(seed)
    scenario.before_going_on = lambda program, note: None  # what must be there is what was synced: check_promises
    source = scenario.fresh("recorded")
    record = source.folder.parent / "record"
    record.unlink(missing_ok=True)
    before = Disk(source.folder)
    source.good(scenario.command(), faults={"RECORD": record})
    entries = read_record(record, source.folder)
    promises = list(acknowledged(scenario, entries))
    figures.calls = len(entries)
    for story in known_too_early(entries) if isinstance(scenario, Training) else []:
        figures.fail(LOST, story)
    points = sorted([chance.randrange(len(entries)) for _ in range(count - 1)] + [len(entries) - 1])  # the last: it has ended
    done = 0
    for number, point in enumerate(points):
        for entry in entries[done : point + 1]:
            before.do(entry)
        done = point + 1
        program = source.at(source.folder.parent / f"{scenario.name}-{number}")
        shutil.rmtree(program.folder, ignore_errors=True)
        before.write(program.folder, chance)
        figures.trials += 1

        def note(kind, story):
            figures.fail(kind, f"cut behind call {point + 1} ({entries[point][0]} {'/'.join(entries[point][1])}): {story}")

        try:
            check_promises(scenario, program, promises[point], note)
            scenario.problems(program, note)
        except SystemExit as error:
            note(UNREADABLE, str(error))
        shutil.rmtree(program.folder, ignore_errors=True)


def run(program, trials, seed):
    good = True
    kinds = (without_older_checkpoints(Training), without_older_checkpoints(WritingCheckpoints), Importing, Adding, FirstUse)
    for kind in kinds:
        figures = Figures(f"power cut while {kind.name}", MUST_BE_ZERO)
        images(kind(program), figures, max(2, trials // len(kinds)), seed)
        good = figures.ended() and good
    return good
