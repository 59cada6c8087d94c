"""Commands that write, each with the state that it starts from, what a user does when it was cut short, and what must then be there."""

import json
import shutil
import time

from program import TOKENIZER_JSON, contents_below, copy_folder, files_below, tiny_config, write_corpus, write_shards, write_table, write_task

UNREADABLE, LOST, LEFT, OTHER = ("that cannot be opened or gone on with", "with acknowledged steps lost", "with files left over",
                                 "with another result")
SILENT, HANG_OR_SIGNAL = "silently accepted with other values", "that ended by a signal or hung"
MUST_BE_ZERO = (UNREADABLE, LOST, LEFT, OTHER)


def steps_recorded(run):
    """The largest training step of a whole line in a journal, read without the program."""
    try:
        lines = (run / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return 0
    steps = [0]
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:  # behind a power cut: a page that was never written
            continue
        if record["type"] == "step":
            steps.append(record["step"])
    return max(steps)


class Scenario:
    """`prepare` fills a folder, once; `command` is what is disturbed; `go_on` what a user does next; `problems` what is then wrong."""

    name = ""
    slow = False
    results = (OTHER,)  # what a command that exits with 0 must have brought about

    def __init__(self, program):
        self.root = program.folder
        self.template = program.at(self.root / "templates" / self.name)
        shutil.rmtree(self.template.folder, ignore_errors=True)
        self.template.folder.mkdir(parents=True)
        self.prepare(self.template)
        self.reference = self.fresh("reference")
        began = time.monotonic()
        self.reference.good(self.command(), seconds=120)
        self.settle(self.reference)
        self.seconds = time.monotonic() - began
        self.expected = self.look(self.reference)
        self.calls = {}

    def fresh(self, trial):
        program = self.template.at(self.root / "trials" / f"{self.name}-{trial}")
        copy_folder(self.template.folder, program.folder)
        return program

    def number_of_calls(self, calls=None):
        if calls not in self.calls:
            program = self.fresh("count")
            self.calls[calls] = program.calls_of(self.command(), calls)
            self.settle(program)
            shutil.rmtree(program.folder, ignore_errors=True)
        return self.calls[calls]

    def prepare(self, program):
        program.import_corpus()
        program.path("config.json").write_text(json.dumps(self.config()))

    def config(self):
        return tiny_config()

    def settle(self, program):
        """Waits for what the command left at work."""

    def before_going_on(self, program, note):
        """What must hold although nothing was mended yet; `note(kind, story)`."""

    def problems(self, program, note):
        """Goes on as a user would and compares with the reference."""
        self.before_going_on(program, note)
        result = self.go_on(program)
        if result.code != 0:
            note(UNREADABLE, f"{program.folder}: going on: exit {result.code}: {result.err}")
            return
        found = self.look(program)
        for kind, expected in self.expected.items():
            if found[kind] != expected:
                note(kind, f"{program.folder}: {difference(expected, found[kind])}")


def difference(expected, found):
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
        return "; ".join(f"{key}: {str(found.get(key))[:80]}, expected {str(expected.get(key))[:80]}" for key in keys)
    if isinstance(expected, list):
        return f"too much: {sorted(set(found) - set(expected))}, missing: {sorted(set(expected) - set(found))}"
    return f"{found}, expected {expected}"


class Training(Scenario):
    name = "training"
    run = "run"

    def command(self):
        return ["train", "config.json", "--out", self.run]

    def before_going_on(self, program, note):
        run = program.path(self.run)
        recorded = steps_recorded(run)
        if recorded == 0:
            return
        state = program.run_state(run)
        if "error" in state:
            note(UNREADABLE, f"{run}: {state['error']}")
        elif state["last_step"] < recorded or state["lost"]:
            note(LOST, f"{run}: {state['last_step']} of {recorded} {state['lost']}")

    def go_on(self, program):
        if program.path(self.run, "run.json").exists():
            return program.run(["resume", self.run])
        return program.run(self.command())

    def look(self, program):
        state = program.run_state(program.path(self.run))
        return {OTHER: state, LEFT: files_below(program.path(self.run))}


class WritingCheckpoints(Training):
    name = "writing checkpoints"

    def config(self):
        return tiny_config(checkpoint_every=1, evaluate_every=8, probe_every=8, steps=8)


class BuildingResults(Training):
    """results.h5 alone: a run that finished without it."""

    name = "building results.h5"

    def prepare(self, program):
        super().prepare(program)
        program.good(super().command())
        program.path(self.run, "results.h5").unlink()

    def command(self):
        return ["resume", self.run]


class Importing(Scenario):
    name = "importing"

    def prepare(self, program):
        write_corpus(program.path("text.jsonl"))

    def command(self):
        return ["corpus", "import", "other", "text.jsonl", "--validation-share", "0.3"]

    def go_on(self, program):
        if program.path("data/corpora/other").exists():
            return program.run(["corpus", "import", "--replace", *self.command()[2:]])
        return program.run(self.command())

    def before_going_on(self, program, note):
        """A corpus that is there under its name is whole."""
        if not program.path("data/corpora/other").exists():
            return
        result = program.run(["--json", "corpus", "show", "other"])
        if result.code != 0:
            note(UNREADABLE, f"{program.folder}: {result.err}")
        elif result.json()["hash"] != self.expected[OTHER]["hash"]:
            note(OTHER, f"{program.folder}: a corpus of another hash")

    def look(self, program):
        shown = program.good(["--json", "corpus", "show", "other"]).json()
        del shown["directory"]
        return {OTHER: shown, LEFT: files_below(program.path("data"))}


class ImportingTables(Importing):
    """Comma-separated values with a quote and a line end in each row."""

    name = "importing tables"

    def prepare(self, program):
        write_table(program.path("text.csv"))

    def command(self):
        return ["corpus", "import", "other", "text.csv", "--validation-share", "0.3"]


class TrainingOnShards(Training):
    """Tokens as llm.c writes them; nothing is imported."""

    name = "training on token shards"

    def prepare(self, program):
        super().prepare(program)
        write_shards(program.path("shards"))
        program.path("config.json").write_text(json.dumps(self.config() | {"data": self.config()["data"] | {"corpus": str(program.path("shards"))}}))

class TokenizerFile(Training):
    """The tokenizer comes as somebody's tokenizer.json."""

    name = "tokenizing by a tokenizer.json"

    def prepare(self, program):
        super().prepare(program)
        shutil.copy(TOKENIZER_JSON, program.path("tokenizer.json"))
        config = tiny_config(steps=2, warmup_steps=1)
        config["data"]["tokenizer"] = str(program.path("tokenizer.json"))
        program.path("config.json").write_text(json.dumps(config))

    def look(self, program):
        found = super().look(program)
        return {OTHER: found[OTHER], LEFT: found[LEFT] + files_below(program.path("cache"))}


class ScoringTask(Scenario):
    """A task of choices, whose scores go into a file of the run, its journal and results.h5."""

    name = "scoring a task"

    def prepare(self, program):
        super().prepare(program)
        program.good(["train", "config.json", "--out", "run"])
        write_task(program.folder)

    def command(self):
        return ["evaluate", "run", "--task", "task.json", "--data", "items.csv"]

    def go_on(self, program):
        return program.run(self.command())

    def look(self, program):
        text = program.path("run/tasks/choices-step-12.json").read_text()
        scores = json.loads(text.replace(str(program.folder), "FOLDER"))  # it names the task's files
        del scores["crc32c"]
        return {OTHER: program.run_state(program.path("run")) | {"scores": scores}, LEFT: files_below(program.path("run"))}


class Tokenizing(Training):
    """Nothing is cached, so that the tokenizer is trained and every text tokenized."""

    name = "tokenizing"

    def config(self):
        config = tiny_config(steps=2, warmup_steps=1)
        config["data"]["tokenizer"] = "bpe:300"
        return config

    def look(self, program):
        found = super().look(program)
        return {OTHER: found[OTHER], LEFT: found[LEFT] + files_below(program.path("cache")) + files_below(program.path("data"))}


class Queue(Scenario):
    """One run through the queue: the command, the worker and the trainer are all disturbed."""

    name = "queue"
    slow = True

    def command(self):
        return ["queue", "add", "config.json", "--out", "run"]

    def settle(self, program):
        """Until nobody works the queue: at once when it is empty, else a second, in which a worker that was started shows itself."""
        rest = 0
        for _ in range(1200):
            queues = program.run(["--json", "queue", "list"])
            if queues.code != 0 or all(queue["worker"] is None for queue in queues.json()):
                rest += 1
                if rest == 20 or (queues.code == 0 and all(queue["entries"] == [] for queue in queues.json())):
                    return
            else:
                rest = 0
            time.sleep(0.05)
        raise SystemExit(f"{program.folder}: the queue does not come to rest: {queues.out} {self.said(program)}")

    def said(self, program):
        """What the worker and the trainers wrote, for the story of a trial that ends badly."""
        texts = [log for log in program.folder.rglob("*.txt") if log.name == "log.txt" or log.parent.name == "logs" or log.name.startswith("run-")]
        return "; ".join(f"{log.relative_to(program.folder)}: {log.read_text(errors='replace')[-1000:]}" for log in texts)

    def go_on(self, program):
        listed = program.run(["--json", "queue", "list"])
        if listed.code != 0:
            return listed
        if any(queue["entries"] for queue in listed.json()):
            result = program.run(["queue", "go-on"])
        elif program.path("run", "run.json").exists():
            result = program.run(["queue", "add", "run"])
        else:
            result = program.run(self.command())
        self.settle(program)
        return result

    def look(self, program):
        entries = [queue["entries"] for queue in program.good(["--json", "queue", "list"]).json()]
        names = [name for name in files_below(program.path("data")) + files_below(program.path("run"))]
        return {OTHER: {"entries": entries} | program.run_state(program.path("run")), LEFT: names}


def write_study(program):
    study = {"question": "Which width?", "base": tiny_config(steps=6), "seeds": [1],
             "axes": [{"setting": "architecture.width", "values": [8, 16]}]}
    program.path("widths.json").write_text(json.dumps(study))


class Study(Queue):
    name = "study"

    def prepare(self, program):
        super().prepare(program)
        write_study(program)

    def command(self):
        return ["study", "start", "widths.json", "--out", "study"]

    def go_on(self, program):
        if program.path("study", "study.json").exists() and program.path("study", "state.json").exists():
            result = program.run(["study", "resume", "study", "--wait"])
        else:
            result = program.run([*self.command(), "--wait"])
        self.settle(program)
        return result

    def look(self, program):
        status = program.good(["--json", "study", "status", "study"]).json()
        runs = {run.name: program.run_state(run) for run in sorted(program.path("study", "runs").iterdir())}
        names = [name for name in files_below(program.path("study")) if not name.startswith("logs/") and name != "index.json"]
        return {OTHER: {"complete": status["complete"]} | runs, LEFT: names + files_below(program.path("data"))}


class Forking(Training):
    """A fork; the parent stays as it is."""

    name = "forking"
    run = "fork"

    def prepare(self, program):
        super().prepare(program)
        program.good(["train", "config.json", "--out", "parent"])
        self.parent = contents_below(program.path("parent"))

    def command(self):
        return ["fork", "parent", "--step", "8", "--out", "fork", "--set", "training.steps=14"]

    def go_on(self, program):
        """A fork that has not begun is made again."""
        result = super().go_on(program)
        return program.run(self.command()) if result.code == 3 and "make it again with saccade fork" in result.err else result

    def before_going_on(self, program, note):
        super().before_going_on(program, note)
        if contents_below(program.path("parent")) != self.parent:
            note(OTHER, f"{program.folder}: the parent was changed")


class Exporting(Scenario):
    """A figure's data over an older file, which stays when the new one cannot be written."""

    name = "exporting"
    file = "loss.csv"

    def prepare(self, program):
        super().prepare(program)
        program.good(["train", "config.json", "--out", "run"])
        program.path(self.file).write_text("older\n")

    def command(self):
        return ["export", "loss", "run", "--out", self.file]

    def before_going_on(self, program, note):
        content = program.path(self.file).read_bytes() if program.path(self.file).exists() else b""
        if content not in (b"older\n", self.expected[OTHER]):
            note(OTHER, f"{program.folder}: half a figure of {len(content)} bytes")

    def go_on(self, program):
        return program.run(self.command())

    def look(self, program):
        return {OTHER: program.path(self.file).read_bytes(), LEFT: sorted(path.name for path in program.folder.iterdir())}


class ExportingJson(Exporting):
    name = "exporting JSON"
    file = "loss.json"


class Reporting(Queue):
    """The report of a study that is complete, with the worker gone: it removes the last run's log after `--wait` has answered."""

    name = "reporting a study"
    slow = False

    def prepare(self, program):
        super().prepare(program)
        write_study(program)
        program.good(["study", "start", "widths.json", "--out", "study", "--wait"])
        super().settle(program)

    def settle(self, program):
        """The report leaves nothing at work."""

    def command(self):
        return ["study", "report", "study"]

    def go_on(self, program):
        return program.run(self.command())

    def look(self, program):
        tables = {name: text for name, text in contents_below(program.path("study/report")).items() if name.endswith((".csv", ".tex", ".svg"))}
        return {OTHER: tables, LEFT: files_below(program.path("study"))}


KILLED = [Training, WritingCheckpoints, BuildingResults, Importing, ImportingTables, Tokenizing, TokenizerFile, TrainingOnShards, ScoringTask,
          Forking, Exporting, Queue, Study]
FAILING = [*KILLED, ExportingJson, Reporting]
