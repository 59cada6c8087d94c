#!/usr/bin/env python3
"""Runs on a host over ssh, through a pipe of 20 ms and 1 MB/s that is cut (server.py, slow_pipe.py): how long things take, what is lost when the
agent, ssh and this end are killed at random, and every command of the chapter in docs/cluster.md as written.

Usage: ssh_test.py SACCADE RUN_STATE SOURCES [--kills 12] [--seed 1] [--only PART]. Exit 77 where there is no sshd."""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "faults")]
import server as ssh  # noqa: E402
from program import tiny_config, write_corpus  # noqa: E402

PATIENCE = 240  # seconds for any one thing


def until(done, story, seconds=PATIENCE, every=0.01):
    end = time.monotonic() + seconds
    while not (result := done()):
        if time.monotonic() > end:
            raise AssertionError(story() if callable(story) else story)
        time.sleep(every)
    return result


class Laptop:
    """This end: folders of its own, and the commands."""

    def __init__(self, binary, server, folder):
        self.binary, self.server, self.folder, self.watcher = binary, server, folder, None
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "saccade").symlink_to(binary)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SACCADE_", "XDG_"))}
        self.environment |= {"SACCADE_" + name.upper(): str(folder / name) for name in ("data", "cache", "runs", "config")}
        self.environment |= {"HOME": str(folder), "SACCADE_SSH": str(server.folder / "user" / "ssh"), "PATH": f"{folder / 'bin'}:{ssh.PATH}"}
        self.run("host", "add", "server", "--ssh", "server", "--set", "answer_seconds=10")

    def run(self, *arguments, codes=(0,), **options):
        result = subprocess.run([self.binary, "-q", *map(str, arguments)], env=self.environment, cwd=self.folder, capture_output=True, text=True,
                                errors="replace", timeout=PATIENCE, **options)
        if result.returncode not in codes:
            raise AssertionError(f"{arguments}: exit {result.returncode}: {result.stderr}{result.stdout}")
        return result.stdout + (result.stderr if codes != (0,) else "")

    def json(self, *arguments):
        return json.loads(self.run("--json", *arguments))

    def watch(self, host="server"):
        self.end_watch()
        self.watcher = subprocess.Popen([self.binary, "host", "sync", host, "--watch"], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=open(self.folder / "watch.log", "a"))

    def end_watch(self):
        if self.watcher:
            self.watcher.terminate()
            self.watcher.wait(timeout=PATIENCE)
            self.watcher = None

    def watch_again(self):
        """Where it was killed, which may show a moment later."""
        if self.watcher.poll() is not None:
            self.watcher = None
            self.watch()

    def mirror(self, *names):
        return self.folder.joinpath("runs", "server", *names)

    def connected(self, host="server"):
        """By what everybody else is told."""
        file = self.folder / "runs" / host / "mirror.json"
        return file.exists() and json.loads(file.read_text())["connected"]

    def until_connected(self):
        until(self.connected, lambda: "not connected: " + (self.folder / "watch.log").read_text()[-800:])

    def said(self):
        return (self.folder / "watch.log").read_text()[-2000:]


def config_file(laptop, name, steps, **training):
    config = tiny_config(steps=steps, **({"evaluate_every": steps, "probe_every": steps, "checkpoint_every": steps} | training))
    (laptop.folder / f"{name}.json").write_text(json.dumps(config))
    return f"{name}.json"


class Figures:
    """What is printed, and held."""

    def __init__(self):
        self.missed = []

    def hold(self, what, value, limit, unit, detail=""):
        good = value <= limit
        print(f"{what}: {value:.2f} {unit} (at most {limit:g}{'' if good else ', MISSED'}){detail}")
        if not good:
            self.missed.append(what)


def host_is_tested(laptop, figures):
    begin = time.monotonic()
    answer = laptop.json("host", "test", "server")
    figures.hold("test of a host", time.monotonic() - begin, 5, "s")
    machine = answer["machine"]
    assert answer["agent"]["folders"] == [str(laptop.server.home / "runs")] and machine["disk_free_bytes"] > 0 and machine["glibc"], answer
    assert "gpus" in machine and "partitions" in machine, answer


def run_is_followed(laptop, figures):
    """A run of some steps a second: its first record, and what following it takes. Then what there is to do with it."""
    laptop.watch()
    laptop.until_connected()
    config = tiny_config(steps=100_000, batch_tokens=32768, evaluate_every=100_000, probe_every=100_000, checkpoint_every=100_000)
    (laptop.folder / "paced.json").write_text(json.dumps(config))
    there, here = laptop.server.home / "runs" / "paced" / "journal.jsonl", laptop.mirror("paced", "journal.jsonl")
    start = subprocess.Popen([laptop.binary, "-q", "train", "paced.json", "--on", "server", "--out", "paced"], env=laptop.environment, cwd=laptop.folder,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    has_line = lambda file: file.exists() and b"\n" in file.read_bytes()
    until(lambda: has_line(there) or start.poll() not in (None, 0), "no run begins")
    written = time.monotonic()
    until(lambda: has_line(here), lambda: "no record comes: " + laptop.said())
    figures.hold("first record of a run that was begun, in the mirror after it was written", time.monotonic() - written, 3, "s")
    assert start.wait(timeout=PATIENCE) == 0, start.stdout.read()
    until(lambda: laptop.mirror("paced", "run.json").exists(), "run.json does not come")
    state = lambda: json.loads(laptop.run("--json", "compare", "runs/server/paced", codes=(0, 3)) or "{}") and origin(laptop, "paced")
    assert state()["live"], "the run is not said to be at work"
    refused = laptop.run("evaluate", "runs/server/paced", codes=(3, 2))
    begin, bytes_before, size_before = time.monotonic(), received(laptop), there.stat().st_size
    time.sleep(6)
    seconds, grown = time.monotonic() - begin, there.stat().st_size - size_before
    steps = grown / max(1, size_before / max(1, there.read_bytes()[:size_before].count(b"\n")))
    figures.hold("received for a live run", (received(laptop) - bytes_before) / seconds / 1000, 20, "kB/s", f", {steps / seconds:.0f} steps/s")
    begin = time.monotonic()
    laptop.run("stop", "runs/server/paced")
    until(lambda: origin(laptop, "paced")["live"] is None, "the run does not stop")
    until(lambda: state_of(laptop.mirror("paced")) == "stopped", lambda: state_of(laptop.mirror("paced")))
    laptop.run("resume", "runs/server/paced")
    until(lambda: origin(laptop, "paced")["live"] and state_of(laptop.mirror("paced")) == "running", "the run is not resumed")
    laptop.run("stop", "runs/server/paced")
    until(lambda: state_of(laptop.mirror("paced")) == "stopped", "the run does not stop again")
    print(f"stopped, resumed and stopped from here in {time.monotonic() - begin:.1f} s")
    return refused


def origin(laptop, run):
    return json.loads(laptop.mirror(run, "origin.json").read_text())


def state_of(run):
    """None before its process has written the run's files: `train --on` answers after some seconds even where beginning takes longer."""
    file = run / "run.json"
    return json.loads(file.read_text())["state"] if file.exists() else None


def began(laptop, run):
    """What the process that the host's agent started for a run has said."""
    return [file.read_text() for file in laptop.server.home.rglob(f"{run}.log")]


def received(laptop):
    return sum(size for size, _ in laptop.server.connections())


def capture_opens(laptop, figures):
    """On demand over the channel that is there, and read; then questions to the host's own inspection helper, in the same way."""
    laptop.end_watch()
    laptop.run("host", "add", "server", "--ssh", "server", "--set", "answer_seconds=10", "--set", "files=asked", "--replace")
    config = config_file(laptop, "seen", 40, capture_tokens=160, batch_tokens=256)
    (laptop.folder / config).write_text((laptop.folder / config).read_text().replace('"sequence_length": 64', '"sequence_length": 256'))
    laptop.run("train", config, "--on", "server", "--out", "seen")
    until(lambda: state_of(laptop.server.home / "runs" / "seen") == "finished", "the run does not end")
    laptop.watch()
    laptop.until_connected()
    until(lambda: laptop.mirror("seen", "run.json").exists() and state_of(laptop.mirror("seen")) == "finished", "it is not mirrored")
    assert not laptop.mirror("seen", "captures").exists()
    begin = time.monotonic()
    laptop.run("host", "fetch", "runs/server/seen", "--capture", "40")
    seconds = time.monotonic() - begin
    size = laptop.mirror("seen", "captures", "step-40.h5").stat().st_size
    figures.hold("a capture, asked for", seconds, 1, "s", f", {size / 1000:.0f} kB")
    assert same_file(laptop, "seen/captures/step-40.h5")
    lines = "".join(json.dumps({"id": i, "method": "text", "parameters": {"text": "Rain fell on the old road."}}) + "\n" for i in (1, 2))
    answers = [json.loads(line) for line in laptop.run("inspect", "runs/server/seen", "--serve", input=lines).splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2], answers
    local = subprocess.run([laptop.binary, "-q", "inspect", laptop.server.home / "runs" / "seen", "--serve"], input=lines, capture_output=True, text=True,
                           env=laptop.environment, timeout=PATIENCE).stdout.splitlines()
    assert [json.loads(line) for line in local] == answers, "the helper there answers otherwise"
    laptop.run("host", "add", "server", "--ssh", "server", "--set", "answer_seconds=10", "--replace")


def same_file(laptop, name):
    return (laptop.server.home / "runs" / name).read_bytes() == laptop.mirror(name).read_bytes()


def hours_offline(laptop, figures):
    """The network is down while the journal of a run grows by eight hours of a step a second; then it is up again."""
    laptop.watch()
    laptop.until_connected()
    there = laptop.server.home / "runs" / "long"
    shutil.copytree(laptop.server.home / "runs" / "seen", there)
    until(lambda: laptop.mirror("long", "journal.jsonl").exists() and same_file(laptop, "long/journal.jsonl"), lambda: "not mirrored: " + laptop.said())
    laptop.server.down()
    until(lambda: not laptop.connected(), lambda: "still connected: " + laptop.said())
    line = next(line for line in (there / "journal.jsonl").read_text().splitlines() if '"type":"step"' in line)
    chance = random.Random(1)
    digits = re.compile(r"\d{4,}")
    with open(there / "journal.jsonl", "a") as journal:
        for _ in range(8 * 3600):
            journal.write(digits.sub(lambda match: str(chance.randrange(10 ** (len(match[0]) - 1), 10 ** len(match[0]))), line) + "\n")
    grown = (there / "journal.jsonl").stat().st_size
    shown = laptop.run("host", "list")
    assert "offline, as of" in shown, shown
    before = len(laptop.server.connections())
    laptop.server.down(False)
    until(lambda: len(laptop.server.connections()) > before, "no new connection")
    begin = time.monotonic()
    until(lambda: laptop.mirror("long", "journal.jsonl").stat().st_size == grown and same_file(laptop, "long/journal.jsonl"), "it does not come whole")
    figures.hold("complete after 8 h offline, from the connection on", time.monotonic() - begin, 5, "s", f", {grown / 1e6:.1f} MB of journal")
    replaced = (there / "journal.jsonl").read_bytes()[: grown // 2].replace(b'"loss":', b'"loss": ', 1)
    (there / "journal.jsonl").write_bytes(replaced)
    until(lambda: same_file(laptop, "long/journal.jsonl"), "a journal that was replaced does not come anew")


def many_runs(laptop, figures):
    """200 runs, listed with run.json and journals over one new channel."""
    laptop.end_watch()
    folder, one = laptop.server.home / "many", laptop.server.home / "runs" / "seen"
    info = json.loads((one / "run.json").read_text())
    for i in range(200):
        (folder / f"run-{i}").mkdir(parents=True)
        (folder / f"run-{i}" / "run.json").write_text(json.dumps({k: v for k, v in (info | {"name": f"run {i}"}).items() if k != "crc32c"}, indent=2))
        shutil.copyfile(one / "journal.jsonl", folder / f"run-{i}" / "journal.jsonl")
    laptop.run("host", "add", "many", "--ssh", "server", "--set", "folder=many", "--set", "files=asked")
    answer = laptop.json("host", "sync", "many")
    for _ in range(2):  # other work shares the machine
        if answer["seconds"] > 2:
            shutil.rmtree(laptop.folder / "runs" / "many")
            answer = laptop.json("host", "sync", "many")
    assert answer["runs"] == 200, answer
    figures.hold("200 runs listed", answer["seconds"], 2, "s", f", {answer['bytes'] / 1000:.0f} kB received, journals among them")
    for i in range(200):
        assert (folder / f"run-{i}" / "journal.jsonl").read_bytes() == (laptop.folder / "runs/many" / f"run-{i}" / "journal.jsonl").read_bytes()


def old_agents_are_read(laptop):
    """What an earlier version answers: it is read from, and not told to do anything."""
    script = laptop.server.home / "bin" / "old"
    script.write_text("""#!/usr/bin/env python3
import json, struct, sys
sys.stdout.buffer.write(b"Welcome!\\nsaccade-agent\\n"); sys.stdout.flush()
while size := sys.stdin.buffer.read(8):
    head, body = struct.unpack("<II", size)
    request = json.loads(sys.stdin.buffer.read(head)); sys.stdin.buffer.read(body)
    answers = {"hello": {"protocol": 0, "version": "0.0.1", "host": "old", "folders": ["/nowhere"]}}
    answer, text = answers.get(request["ask"], {}), b""
    if request["ask"] == "runs": text = b'{"folders": {}, "gone": []}'
    if request["ask"] == "start": open("told", "w").close()
    line = json.dumps(answer | {"id": request["id"]}).encode()
    sys.stdout.buffer.write(struct.pack("<II", len(line), len(text)) + line + text); sys.stdout.flush()
""")
    script.chmod(0o755)
    laptop.run("host", "add", "old", "--ssh", "server", "--set", "program=old")
    assert laptop.json("host", "sync", "old")["runs"] == 0
    refused = laptop.run("train", config_file(laptop, "never", 10), "--on", "old", "--out", "never", codes=(2,))
    assert "older than this one" in refused and not (laptop.server.home / "told").exists(), refused
    laptop.run("host", "remove", "old")


def kills_lose_nothing(laptop, options, figures, run_state):
    """Agent, ssh, the pipe and this end are killed at random while runs are begun and followed. Each run is begun once, and ends here as there."""
    chance, counts = random.Random(options.seed), {}
    lines = {"agent": "agent --stdio", "ssh": f"{laptop.server.folder}/user/config", "pipe": "slow_pipe.py", "watch": "host sync server --watch"}
    victims = {what: lambda line=line: ssh.processes(line, below=laptop.folder.parent) for what, line in lines.items()}
    laptop.watch()
    begun, next_run, begin = [], 0, time.monotonic()
    names = [f"killed-{i}" for i in range(3)]
    while sum(counts.values()) < options.kills or next_run < len(names) or begun:
        assert time.monotonic() - begin < PATIENCE, (counts, next_run, laptop.said(), [b.args for b in begun])
        if next_run < len(names) and len(begun) < 2:
            config = config_file(laptop, names[next_run], 2000, probe_every=500, checkpoint_every=500)
            begun.append(subprocess.Popen([laptop.binary, "-q", "train", config, "--on", "server", "--out", names[next_run]], env=laptop.environment,
                                          cwd=laptop.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            next_run += 1
        time.sleep(chance.uniform(0.2, 1.2))
        what = chance.choice(list(victims))
        found = victims[what]() if sum(counts.values()) < options.kills else []
        if found and ssh.kill(chance.choice(found)):
            counts[what] = counts.get(what, 0) + 1
        laptop.watch_again()
        for process in [process for process in begun if process.poll() is not None]:
            begun.remove(process)
            output = process.stdout.read()
            if process.returncode != 0:  # five tries were cut: asked again, as people do
                assert "there already" not in output, output
                name = process.args[-1]
                counts["begun by hand"] = counts.get("begun by hand", 0) + 1
                laptop.run("train", f"{name}.json", "--on", "server", "--out", name, codes=(0, 1, 2))
    lost = []
    for name in names:
        there = laptop.server.home / "runs" / name
        until(lambda: state_of(there) == "finished", lambda: f"{name} does not end there")
        files = ["run.json", "journal.jsonl", "results.h5", *(f"captures/{file.name}" for file in (there / "captures").iterdir())]
        assert len(files) > 3, files
        here = lambda file: laptop.mirror(name, file).exists() and same_file(laptop, f"{name}/{file}")
        until(lambda: laptop.watch_again() or all(here(file) for file in files),
              lambda: f"{name} is not here as there: {[f for f in files if not here(f)]}; {laptop.said()}")
        state = json.loads(subprocess.run([run_state, laptop.mirror(name)], capture_output=True, text=True, env=laptop.environment).stdout)
        records = [json.loads(line) for line in (there / "journal.jsonl").read_text().splitlines()]
        if state["damage"] or state["lost"] or [r["n"] for r in records] != list(range(len(records))) or state["state"] != "finished":
            lost.append(f"{name}: {state['damage']} {state['lost']} {state['state']}")
    killed = sum(number for what, number in counts.items() if what in victims)
    print(f"{killed} kills ({counts}) in {time.monotonic() - begin:.0f} s: {len(names)} runs begun, {len(lost)} with anything lost {lost or ''}")
    assert killed >= options.kills
    if lost:
        figures.missed.append("nothing is lost")


def chapter(sources):
    """The commands of "Laptop to one server in five minutes"."""
    text = (sources / "docs" / "cluster.md").read_text()
    part = text[text.index("## Laptop to one server in five minutes") :]
    part = part[: part.index("\n## ", 4)]
    return [line for block in re.findall(r"^```\n(.*?)^```", part, re.S | re.M) for line in block.splitlines()]


def docs_run(laptop, sources):
    """As written, one after the other, on a line that is not slow, for the bundle."""
    laptop.end_watch()
    shutil.rmtree(laptop.mirror(), ignore_errors=True)
    shutil.rmtree(laptop.server.home / "runs")
    laptop.run("host", "remove", "server")
    (laptop.server.home / "bin" / "saccade").unlink()  # from now on only the copy is there
    config = laptop.server.folder / "user" / "config"
    config.write_text(config.read_text().replace("Host near\n", "Host server\n"))
    build = pathlib.Path(laptop.binary).resolve().parent.parent
    subprocess.run([sources / "packaging" / "bundle", build, laptop.folder / "saccade.tar.gz", "app/saccade"], check=True, stdout=subprocess.DEVNULL)
    (laptop.folder / "resources").symlink_to(sources / "resources")
    commands = chapter(sources)
    assert len(commands) >= 15, commands
    for command in commands:
        if command.startswith(("saccade compare", "saccade fork", "saccade host sync", "timeout")):  # what people see before they go on
            until(lambda: state_of(laptop.server.home / "runs" / "first") == "finished", lambda: f"the run does not end: {began(laptop, 'first')}")
        watches = command.endswith("--watch")  # until it is stopped
        result = subprocess.run(["timeout", "--preserve-status", "3" if watches else str(PATIENCE), "bash", "-c", f"exec {command}"], capture_output=True,
                                env=laptop.environment, cwd=laptop.folder, text=True)
        assert result.returncode == (130 if watches else 0), f"{command}: exit {result.returncode}: {result.stderr}{result.stdout}"
    print(f"{len(commands)} commands of the documentation ran as written")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("run_state")
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="a part, for those who look for a fault")
    options = parser.parse_args()
    if lacking := ssh.missing():
        print(f"skipped: {', '.join(lacking)} not found; Debian's packages openssh-server and openssh-client have them")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="saccade-ssh-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name).resolve()
        server = ssh.Server(folder / "server", os.path.abspath(options.binary))
        try:
            there = {"SACCADE_DATA": str(server.home / "data"), "SACCADE_CACHE": str(server.home / "cache")}
            write_corpus(folder / "text.jsonl")
            subprocess.run([options.binary, "-q", "corpus", "import", "mine", folder / "text.jsonl", "--validation-share", "0.3"], check=True,
                           env=os.environ | there, stdout=subprocess.DEVNULL)
            laptop = Laptop(os.path.abspath(options.binary), server, folder / "laptop")
            parts = {"test": lambda: host_is_tested(laptop, figures), "follow": lambda: run_is_followed(laptop, figures),
                     "capture": lambda: capture_opens(laptop, figures), "offline": lambda: hours_offline(laptop, figures),
                     "many": lambda: many_runs(laptop, figures), "old": lambda: old_agents_are_read(laptop),
                     "kills": lambda: kills_lose_nothing(laptop, options, figures, os.path.abspath(options.run_state)),
                     "docs": lambda: docs_run(laptop, options.sources.resolve())}
            for part, perform in parts.items():
                if not options.only or part in options.only:
                    begin = time.monotonic()
                    perform()
                    print(f"    ({part}: {time.monotonic() - begin:.0f} s)")
            return 1 if figures.missed else 0
        finally:
            if "laptop" in locals():
                laptop.end_watch()
            server.end()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
