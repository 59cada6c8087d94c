#!/usr/bin/env python3
"""A study of 24 runs as one job array on a real Slurm (cluster.py), preempted, signalled, killed and frozen beyond its time limit at random:
its runs end byte-equal to undisturbed ones. A search goes on to its second round by itself, a doubled job leaves without harm, a run that a
laptop sends to the cluster over ssh is followed there, and every command of the chapter in docs/cluster.md runs as written.

Usage: slurm_test.py SACCADE RUN_STATE DOCS [--runs 24] [--disturbances 30] [--seed 1]. Exit 77 where there is no Slurm to start."""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "faults"), str(HERE.parent / "ssh")]
import cluster as slurm  # noqa: E402
import server as ssh  # noqa: E402
from program import tiny_config, write_corpus  # noqa: E402
from ssh_test import Laptop, until  # noqa: E402

PATIENCE = 600  # seconds for any one part; of the array, in which no run goes on


class Site:
    def __init__(self, binary, cluster, folder):
        self.binary, self.cluster, self.folder = binary, cluster, folder
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "saccade").symlink_to(binary)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SACCADE_", "XDG_", "SLURM_"))}
        self.environment = env | cluster.environment | {"HOME": str(folder)}
        self.environment |= {"SACCADE_" + name.upper(): str(folder / name) for name in ("data", "cache", "runs", "config")}
        self.environment["PATH"] = f"{folder / 'bin'}:{slurm.PATH}"

    def run(self, *arguments, codes=(0,)):
        result = subprocess.run([self.binary, "-q", *map(str, arguments)], env=self.environment, cwd=self.folder, capture_output=True, text=True,
                                errors="replace", timeout=PATIENCE)
        if result.returncode not in codes:
            raise AssertionError(f"{arguments}: exit {result.returncode}: {result.stderr}{result.stdout}")
        return result.stdout

    def json(self, *arguments):
        return json.loads(self.run("--json", *arguments))

    def profile(self, name, **settings):
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value) if not isinstance(value, str) else value}")]
        self.run("cluster", "add", name, "--replace", *words)

    def home(self, study):
        return self.folder / "runs" / study

    def said(self, study):
        """What all jobs of the study said."""
        return "".join(file.read_text(errors="replace") for file in sorted(self.home(study).glob("slurm/*/task*.txt")))


def trainers(folder):
    """Processes that train below the folder, by the name of their run."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if "-q" in words and ("train" in words or "resume" in words):
            for word in words:
                if word.startswith(f"{folder}/runs/"):
                    found[pathlib.Path(word).name] = int(entry.name)
    return found


class Disturber:
    """Does one thing to one running task at a time, at random."""

    def __init__(self, site, home, seed):
        self.site, self.home, self.chance = site, home, random.Random(seed)
        self.counts, self.frozen, self.down = {}, {}, {}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def running(self):
        """Tasks, but for those that stand still."""
        tasks = json.loads((self.home / "slurm" / "round-1" / "tasks.json").read_text())["tasks"]
        frozen = {str(i) for i, runs in enumerate(tasks) if pathlib.Path(runs[0]["run"]).name in self.frozen}
        jobs = [job[0] for job in self.site.cluster.jobs() if job[2] == "RUNNING" and "_" in job[0]]
        return [job for job in jobs if job.split("_")[1] not in frozen]

    def step(self):
        what = self.chance.choice(("preempted", "preempted", "USR2", "USR2", "SIGTERM", "trainer killed", "slurmd killed", "slurmd killed"))
        running = self.running()
        if len(running) < 3:  # the last ones may come to their end
            return
        task = self.chance.choice(running)
        if what == "slurmd killed":
            if self.down:  # one at a time, so that there are nodes to go to
                return
            node = self.chance.choice(sorted(self.site.cluster.nodes))
            self.site.cluster.kill_node(node)
            self.down[node] = time.monotonic() + self.chance.uniform(0, 3)
        elif what == "preempted":  # what PreemptMode=REQUEUE does: SIGTERM, SIGKILL after KillWait, back into the queue
            self.site.cluster.ask("scontrol", "requeue", task, check=False)
        elif what == "trainer killed":
            live = [pid for name, pid in trainers(self.home).items() if name not in self.frozen]
            if not live:
                return
            self.signal(self.chance.choice(live), signal.SIGKILL)
        else:
            name = "USR2" if what == "USR2" else "TERM"
            try:
                self.site.cluster.ask("scancel", "--batch", f"--signal={name}", task, check=False, timeout=3)
            except subprocess.TimeoutExpired:  # a task whose script has not begun: scancel tries again for half a minute
                return
        self.count(what)

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def freeze(self, count, seconds):
        """Trainers that stand still, so that their jobs run into what comes before the time limit, or into the limit itself."""
        live = sorted((name, pid) for name, pid in trainers(self.home).items() if name not in self.frozen)
        for name, pid in self.chance.sample(live, k=min(count, len(live))):
            self.signal(pid, signal.SIGSTOP)
            self.frozen[name] = (pid, time.monotonic() + seconds)
            self.count("frozen")

    def thaw(self, all_of_them=False):
        for node, until in list(self.down.items()):
            if all_of_them or time.monotonic() > until:
                self.site.cluster.start_node(node)
                del self.down[node]
        for name, (pid, until) in list(self.frozen.items()):
            if all_of_them or time.monotonic() > until:
                self.signal(pid, signal.SIGCONT)
                del self.frozen[name]


def study_file(site, name, **more):
    config = tiny_config(steps=more.pop("steps"), evaluate_every=400, probe_every=400, checkpoint_every=100)
    study = {"question": "Which width?", "base": config} | more
    (site.folder / f"{name}.json").write_text(json.dumps(study))


def ended(site, study):
    view = site.json("study", "status", study)
    return view["complete"], view


def compare(site, run_state, plain, disturbed):
    """Names of runs that are not the same in both folders: records of the journal without times, weights and optimizer of the last
    checkpoint."""
    names = sorted(path.name for path in plain.iterdir())
    others = []
    for name in names:
        states = []
        for folder in (plain, disturbed):
            result = subprocess.run([run_state, folder / name], capture_output=True, text=True, env=site.environment, timeout=PATIENCE)
            states.append(json.loads(result.stdout))
        last = str(max(map(int, states[0]["checkpoints"])))
        same = states[0]["records"] == states[1].get("records") and states[0]["checkpoints"][last] == states[1].get("checkpoints", {}).get(last)
        good = same and states[1]["state"] == "finished" and not states[1]["damage"] and not states[1]["lost"]
        if not good:
            others.append(f"{name}: {states}")
    return len(names), others


def array_survives(site, options, run_state):
    seeds = list(range(1, options.runs // 3 + 1))
    study_file(site, "widths", steps=options.steps, axes=[{"setting": "architecture.width", "values": [8, 16, 24]}], seeds=seeds)
    site.run("study", "start", "widths.json", "--out", "runs/plain", "--wait", "--jobs", "2")
    begin = time.monotonic()
    (site.folder / "widths-on-slurm.json").write_text((site.folder / "widths.json").read_text())
    home = site.home("widths-on-slurm")
    started = site.json("study", "start", "widths-on-slurm.json", "--on", "test")
    assert started["submitted"] == options.runs, started
    disturber = Disturber(site, home, options.seed)
    while len(trainers(home)) < 4:
        assert time.monotonic() - begin < PATIENCE, site.said("widths-on-slurm") + site.cluster.logs()
        time.sleep(0.2)
    doubled_job_leaves(site, home, started["job"], disturber)
    disturber.freeze(2, options.frozen)
    disturber.freeze(1, 120)  # until its job is ended
    done, steps, moved = False, 0, time.monotonic()
    while not done:
        assert time.monotonic() - moved < PATIENCE, f"no run goes on: {view}\n{site.said('widths-on-slurm')}\n{site.cluster.state()}"
        for _ in range(5):
            time.sleep(0.2)
            disturber.thaw()
            if sum(disturber.counts.values()) < options.disturbances:
                disturber.step()
        for what in site.cluster.care():
            print(f"    at {time.monotonic() - begin:.0f} s: {what}")
            disturber.count("taken care of by the site")
        done, view = ended(site, "widths-on-slurm")
        if (reached := sum(run.get("step") or 0 for run in view["runs"])) > steps:  # a machine that is shared may take its time
            steps, moved = reached, time.monotonic()
        if view["blocked"]:  # runs that failed would be told here
            raise AssertionError(f"{view['blocked']}: {view['runs']}")
        if not done and not any(job[2] in ("PENDING", "RUNNING", "COMPLETING") for job in site.cluster.jobs()):
            site.run("study", "advance", "widths-on-slurm")  # as anybody may
            disturber.count("rounds begun by hand")
    disturber.thaw(all_of_them=True)
    count, others = compare(site, run_state, site.folder / "runs" / "plain" / "runs", home / "runs")
    said, rounds = site.said("widths-on-slurm"), len(list(home.glob("slurm/round-*")))
    told = {"taken up again": len(re.findall(r": taken up from step", said)), "to be continued": len(re.findall(r": to be continued", said)),
            "ended by the time limit": len(re.findall(r"DUE TO TIME LIMIT", said)), "rounds": rounds, "doubled jobs": 1}
    print(f"{count} runs as a job array in {time.monotonic() - begin:.0f} s: {disturber.counts}, {told}; {len(others)} with other bytes")
    for other in others:
        print("    " + other[:800])
    assert count == options.runs and sum(disturber.counts.values()) >= min(10, options.disturbances) and told["to be continued"] > 0
    return not others


def doubled_job_leaves(site, home, job, disturber):
    """The script of a task that is running, once more: it meets the lock of its run and leaves with exit code 5."""
    tasks = json.loads((home / "slurm" / "round-1" / "tasks.json").read_text())["tasks"]
    begin, holders = time.monotonic(), []
    while not holders:  # one that holds its lock: those that still prepare hold none
        assert time.monotonic() - begin < PATIENCE, site.said(home.name)
        live = trainers(home)
        holders = [(name, live[name]) for name in live if (home / "runs" / name / "journal.jsonl").exists()]
    name, pid = holders[0]
    task = next(i for i, runs in enumerate(tasks) if pathlib.Path(runs[0]["run"]).name == name)
    disturber.signal(pid, signal.SIGSTOP)  # so that it is there for long enough; the others are disturbed meanwhile
    disturber.frozen[name] = (pid, float("inf"))
    try:
        script, out = home / "slurm" / "round-1" / "script.sh", home / "slurm" / "round-1" / "doubled.txt"
        # with the minute of the others slurmctld may signal that the end is near before the script has begun to listen, which ends it
        double = subprocess.Popen(["sbatch", "--wait", "--time=00:05:00", f"--array={task}", f"--output={out}", script, home, "round-1"],
                                  env=site.environment, stdout=subprocess.DEVNULL)
        while double.poll() is None:
            time.sleep(0.3)
            disturber.thaw()  # also starts the slurmd again that was killed, maybe that of the node that this job is on
            disturber.step()
        assert double.returncode == 5 and "another process trains it" in out.read_text(), f"{double.returncode} {out.read_text()}"
    finally:
        del disturber.frozen[name]
        disturber.signal(pid, signal.SIGCONT)


def search_goes_on(site):
    """Values of a search, two runs to a job, then the seed at the best one, submitted by the job that waits for the first."""
    study_file(site, "rates", steps=30, seeds=[1, 2], tuning={"setting": "training.learning_rate", "values": [0.0001, 0.01]})
    site.profile("packs", partition="gpu", cpus=2, time="00:05:00", signal_lead=120, pack=2, answer_seconds=30)
    started = site.json("study", "start", "rates.json", "--on", "packs")
    assert (started["submitted"], started["later"]) == (2, 1), started
    begin = time.monotonic()
    while not ended(site, "rates")[0]:
        assert time.monotonic() - begin < PATIENCE, f"{ended(site, 'rates')[1]}\n{site.said('rates')}{site.cluster.jobs()}"
        time.sleep(1)
    rounds = [json.loads(file.read_text())["tasks"] for file in sorted(site.home("rates").glob("slurm/round-*/tasks.json"))]
    assert [[len(task) for task in tasks] for tasks in rounds] == [[2], [1]], rounds
    print(f"a search of 2 values went on to its third run by itself ({time.monotonic() - begin:.0f} s)")
    return True


def stops_and_resumes(site):
    """A single run: stopped at a checkpoint, which the scheduler does not begin again, then resumed to its end."""
    config = tiny_config(steps=20000, evaluate_every=20000, probe_every=20000, checkpoint_every=20000)
    (site.folder / "long.json").write_text(json.dumps(config))
    site.run("train", "long.json", "--out", "runs/long", "--on", "test")
    home, begin = site.home("long"), time.monotonic()
    while not (home / "journal.jsonl").exists() or (home / "journal.jsonl").read_text().count('"type":"step"') < 20:
        assert time.monotonic() - begin < PATIENCE, site.cluster.jobs()
        time.sleep(0.2)
    site.run("stop", "runs/long")
    while any(job[2] in ("RUNNING", "COMPLETING", "PENDING") for job in site.cluster.jobs()):
        assert time.monotonic() - begin < PATIENCE, site.cluster.jobs()
        time.sleep(0.5)
    info = json.loads((home / "run.json").read_text())
    assert info["state"] == "stopped" and 20 <= info["step"] < 20000, info["state"]
    assert (home / "checkpoints" / f"step-{info['step']}.h5").exists()
    site.run("resume", "runs/long", "--on", "test")
    while trainers(home) == {} and not any(job[2] == "RUNNING" for job in site.cluster.jobs()):
        assert time.monotonic() - begin < PATIENCE, site.cluster.jobs()
        time.sleep(0.2)
    site.run("stop", "runs/long")
    print("a single run stopped at a checkpoint and was resumed")
    return True


def seen_over_ssh(site):
    """A run that a laptop sends to the cluster: the first record in its mirror, after a node has written it."""
    if lacking := ssh.missing():
        print(f"left out, what is seen over ssh: {', '.join(lacking)} not found")
        return True
    folder = site.folder.parent / "login"
    login = ssh.Server(folder / "server", site.binary, {"SLURM_CONF": site.cluster.environment["SLURM_CONF"]})
    try:
        there = site.environment | login.folders()
        for command in (["corpus", "import", "mine", site.folder / "text.jsonl", "--validation-share", "0.3"],
                        ["cluster", "add", "lab", "--set", "partition=gpu", "--set", "cpus=1", "--set", "time=00:05:00"]):
            subprocess.run([site.binary, "-q", *command], check=True, env=there, cwd=login.home, stdout=subprocess.DEVNULL)
        laptop = Laptop(site.binary, login, folder / "laptop")
        laptop.run("host", "add", "server", "--replace", "--ssh", "server", "--set", "cluster=lab")
        laptop.watch()
        laptop.until_connected()
        config = tiny_config(steps=20000, batch_tokens=4096, evaluate_every=20000, probe_every=20000, checkpoint_every=20000)
        (laptop.folder / "far.json").write_text(json.dumps(config))
        laptop.run("train", "far.json", "--on", "server", "--out", "far")
        written, seen = login.home / "runs" / "far" / "journal.jsonl", laptop.mirror("far", "journal.jsonl")
        has_line = lambda file: file.exists() and b"\n" in file.read_bytes()
        until(lambda: has_line(written), lambda: f"no job begins: {site.cluster.jobs()}")
        begin = time.monotonic()
        until(lambda: has_line(seen), lambda: "no record comes: " + laptop.said())
        seconds = time.monotonic() - begin
        job = [name for _, _, state, name in site.cluster.jobs() if state == "RUNNING"]
        laptop.run("stop", "runs/server/far")
        until(lambda: json.loads((login.home / "runs" / "far" / "run.json").read_text())["state"] == "stopped", "the run does not stop")
        laptop.end_watch()
        print(f"first record of a run on the cluster, in the mirror of a laptop after it was written: {seconds:.2f} s (at most 10)")
        return seconds <= 10 and len(job) == 1
    finally:
        login.end()


def chapter(docs):
    """The commands of "To Slurm in ten minutes"."""
    text = pathlib.Path(docs).read_text()
    part = text[text.index("## To Slurm in ten minutes") :]
    part = part[: part.index("\n## ", 4) if "\n## " in part[4:] else len(part)]
    blocks = re.findall(r"^```\n(.*?)^```", part, re.S | re.M)
    return [line for block in blocks for line in block.splitlines() if line.startswith("saccade ")]


def docs_run(site, docs):
    commands = chapter(docs)
    assert len(commands) >= 8, commands
    for command in commands:
        result = subprocess.run(["bash", "-c", command], env=site.environment, cwd=site.folder, capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode == 0, f"{command}: exit {result.returncode}: {result.stderr}{result.stdout}"
    site.run("study", "stop", "tuned-tiny")
    print(f"{len(commands)} commands of the documentation ran as written")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("run_state")
    parser.add_argument("docs")
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--disturbances", type=int, default=30)
    parser.add_argument("--frozen", type=float, default=45, help="seconds that two runs stand still")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", action="append", help="only: docs, search, stop, ssh, array")
    options = parser.parse_args()
    if lacking := slurm.missing():
        print(f"skipped: {lacking}")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="saccade-slurm-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name).resolve()
        cluster = slurm.Cluster(folder / "slurm")
        try:
            cluster.start()
            site = Site(os.path.abspath(options.binary), cluster, folder / "site")
            (site.folder / "resources").symlink_to(pathlib.Path(options.docs).resolve().parent.parent / "resources")
            # a limit of a minute, which slurmctld looks at twice a minute
            site.profile("test", partition="gpu", gres="gpu:1", cpus=1, time="00:01:00", signal_lead=30, at_a_time=12, poll_seconds=3, answer_seconds=30)
            write_corpus(site.folder / "text.jsonl")
            site.run("corpus", "import", "mine", "text.jsonl", "--validation-share", "0.3")
            parts = {"array": lambda: array_survives(site, options, os.path.abspath(options.run_state)), "search": lambda: search_goes_on(site),
                     "stop": lambda: stops_and_resumes(site), "ssh": lambda: seen_over_ssh(site), "docs": lambda: docs_run(site, options.docs)}
            return 0 if all([part() for name, part in parts.items() if not options.part or name in options.part]) else 1
        finally:
            cluster.end()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
