"""The real program with folders of its own, and what every battery needs: commands with a time limit, the library that makes file calls
fail, what a run holds, and figures to print."""

import copy
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

HANG = 1000  # instead of an exit code
ANSWERS = (0, 1, 2, 3, 4, 5, 75, 130)  # exit codes that the program may end with


@dataclasses.dataclass
class Result:
    code: int  # negative: the signal that ended it; HANG
    out: str
    err: str
    seconds: float

    def json(self):
        return json.loads(self.out)

    def is_answer(self):
        """Ended by itself, with at most one line for a failure."""
        return self.code in ANSWERS


class Figures:
    """Counts by name; what must be 0 is told with the trial that broke it."""

    def __init__(self, title, must_be_zero):
        self.title, self.trials, self.began = title, 0, time.monotonic()
        self.wrong = {name: 0 for name in must_be_zero}
        self.also, self.stories, self.calls = {}, [], 0  # file calls of the command when nothing disturbs it

    def count(self, name, number=1):
        self.also[name] = self.also.get(name, 0) + number

    def fail(self, name, story):
        self.wrong[name] += 1
        self.stories.append(f"{name}: {story}")

    def ended(self):
        parts = [f"{self.trials} trials" + (f" over {self.calls} file calls" if self.calls else "")] + [f"{n} {name}" for name, n in self.also.items()]
        parts += [f"{n} {name}" for name, n in self.wrong.items()]
        print(f"{self.title}: {', '.join(parts)} ({time.monotonic() - self.began:.0f} s)", flush=True)
        for story in self.stories[:10]:
            print("    " + story[:600].replace("\n", "\n    "), flush=True)
        return not self.stories


class Program:
    sanitizer, patience = None, 1  # the runtime of instrumented programs; all time limits are so many times as long

    def __init__(self, binary, library, run_state, folder):
        self.binary, self.library, self.run_state_program = binary, library, run_state
        self.run_follow_program, self.network = None, None  # what network_files needs
        self.device, self.part = "cpu", (0, 1)
        self.folder = pathlib.Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, *names):
        return self.folder.joinpath(*names)

    def at(self, folder):
        """The same program with other folders."""
        other = copy.copy(self)
        other.folder = pathlib.Path(folder).resolve()
        other.folder.mkdir(parents=True, exist_ok=True)
        return other

    def preloading(self, library):
        """Variables that put a library before the C library's calls; a sanitizer's runtime wants to stand first."""
        return {"LD_PRELOAD": ":".join(str(each) for each in (self.sanitizer, library) if each)}

    def environment(self, faults=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SACCADE_", "XDG_", "FAULT_", "HDF5_"))}
        env |= {"SACCADE_DATA": str(self.path("data")), "SACCADE_CACHE": str(self.path("cache")), "SACCADE_RUNS": str(self.path("runs")),
                "PATH": "/usr/bin:/bin", "HOME": str(self.folder), "QT_QPA_PLATFORM": "offscreen"}
        if self.sanitizer:  # a finding ends the process by a signal, which no battery takes for an answer
            env |= {name: ":".join(filter(None, (env.get(name), "abort_on_error=1"))) for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")}
        if faults is not None:
            env |= self.preloading(self.library) | {"FAULT_UNDER": str(self.folder)}
            env |= {"FAULT_" + key: str(value) for key, value in faults.items()}
        return env

    def start(self, arguments, faults=None, **options):
        command = [str(self.binary), "-q", *map(str, arguments)]
        return subprocess.Popen(command, env=self.environment(faults), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def run(self, arguments, faults=None, seconds=60, kill_after=None, **options):
        began = time.monotonic()
        process = self.start(arguments, faults, **options)
        try:
            out, err = process.communicate(timeout=kill_after if kill_after is not None else seconds * self.patience)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            code = -signal.SIGKILL if kill_after is not None else HANG
        return Result(code, out.decode(errors="replace"), err.decode(errors="replace"), time.monotonic() - began)

    def good(self, arguments, **options):
        result = self.run(arguments, **options)
        if result.code != 0:
            raise SystemExit(f"{arguments}: exit {result.code}: {result.err}")
        return result

    def run_state(self, run):
        """What tests/faults/run_state.cpp says of a run; {"error": …} when it cannot be read."""
        result = subprocess.run([self.run_state_program, run], capture_output=True, env=self.environment(), timeout=120 * self.patience)
        if result.returncode not in (0, 3):
            return {"error": f"exit {result.returncode} {result.stderr.decode(errors='replace')}"}
        return json.loads(result.stdout)

    def calls_of(self, arguments, calls=None):
        """How many file calls a command makes, in the process that makes most."""
        count = self.folder.parent / (self.folder.name + ".calls")
        count.unlink(missing_ok=True)
        self.good(arguments, faults={"COUNT": count} | ({"CALLS": calls} if calls else {}))
        numbers = [int(line) for line in count.read_text().splitlines()]
        count.unlink()
        return max(numbers)

    def import_corpus(self, name="mine"):
        write_corpus(self.path("text.jsonl"))
        self.good(["corpus", "import", name, self.path("text.jsonl"), "--validation-share", "0.3"])


def write_corpus(path):
    with open(path, "w") as file:
        for i in range(60):
            prose = f"Rain fell on the hills for {i} days, and the old road to the sea was washed away again. " * 4
            code = f"for (int i = 0; i < {i}; ++i) sum += values[i]; return sum * {i}; " * 4
            file.write(json.dumps({"text": prose, "meta": {"redpajama_set_name": "prose"}}) + "\n")
            file.write(json.dumps({"text": code, "meta": {"redpajama_set_name": "code"}}) + "\n")


TOKENIZER_JSON = pathlib.Path(__file__).resolve().parent.parent / "fuzz/seeds/tokenizer_json/byte-level.json"


def write_table(path):
    rows = [f'{i},"Rain fell, for {i} days,\nand the ""old"" road was washed away. {"Again. " * 40}",prose' for i in range(60)]
    path.write_text("\n".join(["id,text,kind", *rows]) + "\n")


def write_shards(folder):
    """Version 1 of llm.c: 256 integers, then two bytes a token; here bytes, with end-of-text (256) before each document."""
    folder.mkdir()
    for name, documents in (("prose_train_000001", 40), ("prose_train_000002", 20), ("prose_val_000001", 10), ("code_val_000001", 10)):
        tokens = [token for i in range(documents) for token in (256, *(f"{name}: rain fell for {i} days on the old road. " * 8).encode())]
        header = (20240520).to_bytes(4, "little") + (1).to_bytes(4, "little") + len(tokens).to_bytes(4, "little")
        (folder / f"{name}.bin").write_bytes(header.ljust(1024, b"\0") + b"".join(token.to_bytes(2, "little") for token in tokens))


def write_task(folder):
    task = {"name": "choices", "context": "{question}", "choices": ["{a}", "{b}"], "gold": "{answer}", "files": ["items.csv"]}
    (folder / "task.json").write_text(json.dumps(task))
    rows = [f'"Did it rain, ""much"", on day {i}?",it rained,it was dry,{i % 2}' for i in range(8)]
    (folder / "items.csv").write_text("\n".join(["question,a,b,answer", *rows]) + "\n")


def tiny_config(**training):
    """The config of a run so small that a step takes a millisecond (tests/support/tiny_run.h)."""
    return {"name": "tiny", "device": "cpu", "threads": 1,
            "architecture": {"block": "llama", "mixer": "attention", "width": 16, "layers": 2, "heads": 2},
            "data": {"corpus": "mine", "train": ["prose"], "ood": ["code"], "tokenizer": "bytes", "sequence_length": 64},
            "training": {"steps": 12, "batch_tokens": 128, "warmup_steps": 2, "evaluate_every": 4, "evaluation_tokens": 4096,
                         "probe_every": 4, "checkpoint_every": 4, "capture_tokens": 32} | training}


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if not path.is_dir())


def contents_below(folder):
    return {name: (pathlib.Path(folder) / name).read_bytes() for name in files_below(folder)}


def copy_folder(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)


def is_one_line(text):
    return text.startswith("saccade: ") and text.count("\n") == 1 and text.endswith("\n")
