#!/usr/bin/env python3
"""Studies handed to a scheduler that answers late, wrongly or not at all (fake_slurm.sh): nothing is submitted twice, nothing is lost, and
what is wrong is said. Usage: fake_test.py SACCADE [--trials 50] [--seed 1]"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "faults"))
from program import tiny_config  # noqa: E402

# "killed": the command itself, while sbatch is at work
TIME_OUTS = ("slow-after", "slow-before", "late", "killed")
OTHERS = ("fail-after", "fail-before", "garbage-after", "garbage-before", "chatty")


class Site:
    """A machine with a scheduler of its own, and saccade there."""

    def __init__(self, binary, folder, **profile):
        self.binary, self.folder = binary, pathlib.Path(folder)
        (self.folder / "bin").mkdir(parents=True)
        for name in ("sbatch", "squeue", "sacct", "scancel", "scontrol"):
            (self.folder / "bin" / name).symlink_to(HERE / "fake_slurm.sh")
        study = {"question": "Which width?", "base": tiny_config(), "axes": [{"setting": "architecture.width", "values": [8, 16]}], "seeds": [1, 2]}
        (self.folder / "widths.json").write_text(json.dumps(study))
        settings = {"time": "01:00:00", "answer_seconds": 3, "poll_seconds": 1, "next_round": "by-hand", "signal_lead": 120} | profile
        self.cluster = self.folder / "config" / "clusters" / "fake.json"
        self.cluster.parent.mkdir(parents=True)
        self.cluster.write_text(json.dumps(settings))

    def start(self, *arguments):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SACCADE_", "XDG_", "SLURM_"))}
        env |= {"SACCADE_" + name.upper(): str(self.folder / name) for name in ("data", "cache", "runs", "config")}
        env |= {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "FAKE": str(self.folder), "HOME": str(self.folder)}
        return subprocess.Popen([self.binary, "-q", *map(str, arguments)], env=env, cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")

    def run(self, *arguments, code=None):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        if code is not None and process.returncode != code:
            raise AssertionError(f"{arguments}: exit {process.returncode}, expected {code}: {err}{out}")
        return process.returncode, out, err

    def lines(self, name):
        file = self.folder / name
        return file.read_text(errors="replace").splitlines() if file.exists() else []

    def submission(self, round="round-1", study="widths"):
        return json.loads((self.folder / "runs" / study / "slurm" / round / "submission.json").read_text())


def trial(binary, folder, fault, further):
    """One study, whose first call of sbatch goes wrong, and perhaps the second. Problems, in words."""
    site = Site(binary, folder)
    faults = ["slow-after" if fault == "killed" else fault] + ([further] if further else [])
    (site.folder / "faults").write_text("\n".join(faults) + "\n")
    if fault == "killed":
        process = site.start("study", "start", "widths.json", "--on", "fake")
        begin = time.monotonic()
        while not site.lines("calls") and time.monotonic() - begin < 120:
            time.sleep(0.02)
        process.kill()
        process.communicate()
    code = 1
    for _ in range(6):
        begun = (site.folder / "runs" / "widths" / "slurm" / "cluster.json").exists()
        code, _, err = site.run("study", *(["resume", "widths"] if begun else ["start", "widths.json", "--on", "fake"]))
        if code == 0:
            break
    accepted = site.lines("accepted")
    problems = []
    if code != 0:
        problems.append(f"never submitted: {err}")
    if len(accepted) != 1:
        problems.append(f"{len(accepted)} jobs: {accepted}")
    elif code == 0 and site.submission()["job"] != accepted[0].split()[0]:
        problems.append(f"submission.json has {site.submission()['job']}, the scheduler {accepted}")
    site.run("study", "resume", "widths", code=0)  # nothing more is submitted
    if len(site.lines("accepted")) != len(accepted):
        problems.append("submitted once more although all of it waits")
    return problems


def time_outs(binary, folder, trials, seed):
    chance = random.Random(seed)
    plans = [(TIME_OUTS[i % len(TIME_OUTS)], chance.choice((None, None, *TIME_OUTS[:3], *OTHERS))) for i in range(trials)]
    plans += [(fault, None) for fault in OTHERS]
    counts, bad = {}, 0
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        waiting = [(plan, pool.submit(trial, binary, folder / f"trial-{i}", *plan)) for i, plan in enumerate(plans)]
        for (fault, further), result in waiting:
            counts[fault] = counts.get(fault, 0) + 1
            for problem in result.result():
                bad += 1
                print(f"    {fault}, {further}: {problem}"[:600])
    injected = sum(counts[fault] for fault in TIME_OUTS)
    print(f"{injected} injected time-outs and {len(plans) - injected} other faults of sbatch ({counts}): {bad} studies submitted twice or not at all")
    return bad == 0


def expect(good, story):
    if not good:
        raise AssertionError(story)


def refusals(binary, folder):
    """What sbatch refuses is said at once and can be mended; when squeue says nothing, nothing is submitted."""
    site = Site(binary, folder)
    (site.folder / "faults").write_text("refuse\n")
    code, _, err = site.run("study", "start", "widths.json", "--on", "fake")
    expect(code == 1 and "sbatch refused the job" in err and "Invalid partition name" in err and err.count("\n") == 1, err)
    (site.folder / "squeue-fails").touch()
    (site.folder / "faults").write_text("fail-after\n")
    code, _, err = site.run("study", "resume", "widths")
    expect(code == 1 and "squeue failed" in err and len(site.lines("accepted")) == 1, err)
    for trouble in ("squeue-fails", "squeue-garbage"):
        (site.folder / trouble).touch()
        code, _, err = site.run("study", "resume", "widths")
        expect(code == 1 and "squeue" in err and len(site.lines("accepted")) == 1, err)
        code, out, err = site.run("study", "status", "widths", code=0)
        expect("4 to do" in out and "squeue" in err, out + err)
        (site.folder / trouble).unlink()
    site.run("study", "resume", "widths", code=0)
    expect(len(site.lines("accepted")) == 1, site.lines("accepted"))


def profiles(binary, folder):
    """A wrong profile is refused with its place and the nearest name."""
    site = Site(binary, folder)
    for text, said in (('{"partitoin": "gpu"}', 'did you mean "partition"?'), ('{"time": "soon"}', "/time is"), ('{"pack": 0}', "/pack"),
                       ('{"cpus": "many"}', "/cpus"), ('{"memory": "lots"}', "/memory"), ('{"options": ["--array=0-3"]}', "/options/0"),
                       ('{"setup": ["module load cuda\\nrm x"]}', "/setup/0"), ('{"next_round": "jobs"}', 'did you mean "job"?'),
                       ('{"program": "bin/saccade"}', "/program"), ('{"time": "00:02:00", "signal_lead": 100}', "/signal_lead"),
                       ('{"gres": "gpu:1 --wrap"}', "/gres"), ('{"cpus": 1,}', "fake.json:1:")):
        site.cluster.write_text(text)
        code, _, err = site.run("study", "start", "widths.json", "--on", "fake")
        expect(code == 2 and said in err and "fake.json" in err, f"{text}: {err}")
        expect(not (site.folder / "runs").exists(), f"{text}: something was written")
    code, _, err = site.run("study", "start", "widths.json", "--on", "fale")
    expect(code == 2 and 'did you mean "fake"?' in err, err)
    site.run("cluster", "add", "lab", "--set", "partition=gpu", "--set", "setup=[\"module load cuda\"]", code=0)
    code, _, err = site.run("cluster", "add", "lab")
    expect(code == 2 and "--replace" in err, err)
    code, out, _ = site.run("cluster", "show", "lab", code=0)
    expect("module load cuda" in out and "GPUs that share each run" in out, out)
    expect("lab" in site.run("cluster", "list", code=0)[1], "list")


def scripts(binary, folder):
    """The script is shown, edited, kept, and never written over."""
    site = Site(binary, folder, partition="gpu", gres="gpu:1", setup=["module load cuda"], container="apptainer exec --nv /shared/saccade.sif", pack=3)
    dry = json.loads(site.run("--json", "study", "start", "widths.json", "--on", "fake", "--dry-run", code=0)[1])
    expect((dry["runs"], dry["jobs"], dry["array"], dry["edited"]) == (4, 2, "0-1%8", False), dry)
    for line in ("#SBATCH --partition=gpu", "#SBATCH --gres=gpu:1", "#SBATCH --signal=B:USR2@120", "#SBATCH --requeue", "#SBATCH --open-mode=append",
                 "module load cuda", "apptainer exec --nv /shared/saccade.sif '"):
        expect(line in dry["script"], f"{line} is missing: {dry['script']}")
    expect(not (site.folder / "runs" / "widths").exists() and not site.lines("calls"), "a dry run wrote something")
    mine = site.run("study", "script", "widths.json", "--on", "fake", code=0)[1].replace("module load cuda", "module load cuda/12")
    (site.folder / "mine.sh").write_text(mine)
    site.run("study", "start", "widths.json", "--on", "fake", "--script", "mine.sh", code=0)
    home = site.folder / "runs" / "widths" / "slurm"
    expect((home / "script.sh").read_text() == mine == (home / "round-1" / "script.sh").read_text(), "the edited script is not the one submitted")
    site.cluster.write_text(json.dumps(json.loads(site.cluster.read_text()) | {"partition": "other"}))
    site.run("study", "resume", "widths", code=0)
    expect((home / "script.sh").read_text() == mine, "an edited script was written over")
    calls = site.lines("calls")
    expect(len(calls) == 1 and "--array=0-1%8" in calls[0] and f"--comment=saccade:{site.submission()['token']}" in calls[0], calls)
    check = subprocess.run(["bash", "-n", home / "round-1" / "script.sh"], capture_output=True)
    expect(check.returncode == 0, check.stderr)


def stops(binary, folder):
    """Stopping cancels what waits, tells what runs, and begins nothing more; resuming submits what is missing."""
    site = Site(binary, folder, next_round="job")
    site.run("study", "start", "widths.json", "--on", "fake", "--jobs", "2", code=0)
    expect(len(site.lines("accepted")) == 2 and "%2" in site.lines("calls")[0], site.lines("calls"))  # the array, and the next round's job
    expect("--dependency=afterany:101" in site.lines("calls")[1], site.lines("calls"))
    status = json.loads(site.run("--json", "study", "status", "widths", code=0)[1])
    expect([run["job"] for run in status["runs"]] == [f"101_{i} PENDING (Priority)" for i in range(4)], status["runs"])
    jobs = site.folder / "jobs"
    jobs.write_text(jobs.read_text().replace("101|0|PENDING", "101|0|RUNNING"))
    (site.folder / "begins").touch()  # a job that has a node and no script yet is told again, once it has one
    stopped = json.loads(site.run("--json", "study", "stop", "widths", code=0)[1])
    expect((stopped["jobs"], stopped["stopping"]) == (5, 1), stopped)
    to_running = "--state=RUNNING --batch --signal=USR2 101"
    expect(site.lines("cancelled") == ["--state=PENDING 101 102", to_running, to_running], site.lines("cancelled"))
    code, _, err = site.run("cluster", "work", site.folder / "runs" / "widths", "round-1", "0")
    expect(code == 130 and "stopped by hand" in err, f"{code} {err}")
    code, out, _ = site.run("study", "advance", "widths", code=0)
    expect(len(site.lines("accepted")) == 2, "a stopped study went on")
    jobs.write_text(jobs.read_text().replace("101|0|RUNNING", "101|0|FAILED"))
    site.run("study", "resume", "widths", code=0)
    expect(len(site.lines("accepted")) == 4, site.lines("accepted"))
    code, _, err = site.run("study", "resume", "widths", "--on", "local")
    expect(code == 2 and "has jobs in the cluster fake" in err, err)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    binary, good = os.path.abspath(options.binary), True
    with tempfile.TemporaryDirectory(prefix="saccade-slurm-") as name:
        folder = pathlib.Path(name)
        for part in (profiles, scripts, stops, refusals):
            try:
                part(binary, folder / part.__name__)
                print(f"{part.__name__}: as it should be")
            except AssertionError as error:
                good = False
                print(f"{part.__name__}: {error}")
        good = time_outs(binary, folder, options.trials, options.seed) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
