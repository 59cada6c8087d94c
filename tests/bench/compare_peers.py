#!/usr/bin/env python3
"""Times a CPU training step of ours and of PyTorch (peers/tpp_step.py) in turns, so that both meet the same machine.

  compare_peers.py --saccade build/release/app/saccade [--python PYTHON_WITH_TORCH] [--preset 2m-cpu] [--threads 2] [--rounds 5]

Prints each round, then the ratio of the medians (PyTorch / ours: above 1 we are faster). Exit code 1 when ours is slower.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

PEER = pathlib.Path(__file__).parent / "peers" / "tpp_step.py"


def output(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


def ours(a):
    command = [a.saccade, "bench", "--json", "--preset", a.preset, "--threads", a.threads, "--repeats", a.steps]
    step = json.loads(output(command))["steps"][0]
    return step["ms"], step["parameters"]


def peer(a):
    command = [a.python, PEER, "--device", "cpu", "--preset", a.preset, "--threads", a.threads, "--steps", a.steps, "--mode", a.mode, "--json"]
    step = json.loads(output(command).splitlines()[-1])
    return step["ms"], step["parameters"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--saccade", required=True)
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--preset", default="2m-cpu")
    p.add_argument("--mode", default="eager", choices=["eager", "compile"])
    p.add_argument("--threads", default="2")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", default="5")
    a = p.parse_args()
    times = {"saccade": [], "pytorch": []}
    for round_ in range(a.rounds):
        for name, run in (("saccade", ours), ("pytorch", peer)):
            ms, parameters = run(a)
            times[name].append(ms)
            print(f"round {round_ + 1}  {name:8s} {ms:9.2f} ms/step  {parameters} parameters", flush=True)
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratio = medians["pytorch"] / medians["saccade"]
    rounds = sorted(p / s for p, s in zip(times["pytorch"], times["saccade"]))
    print(f"{a.preset}, {a.threads} threads: saccade {medians['saccade']:.2f} ms, pytorch {a.mode} {medians['pytorch']:.2f} ms, "
          f"ratio {ratio:.2f} (rounds {rounds[0]:.2f} to {rounds[-1]:.2f})")
    return 0 if ratio >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
