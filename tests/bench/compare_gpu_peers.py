#!/usr/bin/env python3
"""Times ours and PyTorch on one GPU in turns, so that both meet the same machine, and prints ratios (above 1: ours is ahead).

  compare_gpu_peers.py --saccade "bundle/run saccade" [--python PYTHON_WITH_TORCH] [--row NAME]... [--rounds 2] [--json FILE]

Rows:
  2m, 10m, 110m, 110m-100k       training step of a Transformer++ against peers/tpp_step.py in its best mode
  110m-100k-exact, -approx       the same with Top-1 Chunk against the same Transformer++ peer
  attention, attention-100k      dense causal attention, forward and with backward, against peers/attn.py (FlashAttention-2, cuDNN)
  chunk-100k                     Top-1 Chunk exact and approximate with selection against cuDNN's dense attention
  5m-avey, 153m-avey             training step of Avey; the authors' module is not among the peers: ours alone
Needs nothing but this folder, a saccade program and, for the peers, PyTorch with Triton. Exit code 1 when something failed.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

PEERS = pathlib.Path(__file__).resolve().parent / "peers"
STEPS = {"2m": ("2m", ["compile", "graphs"]), "10m": ("10m", ["compile", "graphs"]), "110m": ("110m", ["compile"]),
         "110m-100k": ("110m-100k", ["compile"]), "110m-100k-exact": ("110m-100k", ["compile"]),
         "110m-100k-approx": ("110m-100k", ["compile"]), "5m-avey": (None, []), "153m-avey": (None, [])}
SHAPES = {"attention": ("110m", "32,12,2048,64"), "attention-100k": ("110m-100k", "1,12,102400,64"), "chunk-100k": ("110m-100k", "1,12,102400,64")}
CHUNKS = ("top1_chunk exact", "top1_chunk approx")


def output(command, limit):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Runner:
    def __init__(self, a):
        self.a, self.saccade = a, shlex.split(a.saccade)

    def bench(self, *arguments):
        return json.loads(output([*self.saccade, "bench", "--json", "--device", self.a.device, *arguments], self.a.limit))

    def our_step(self, preset):
        step = self.bench("--preset", preset)["steps"][0]
        return {"saccade": {"ms": step["ms"], "tokens_per_s": step["tokens_per_s"], "peak_gib": step["peak_bytes"] / 2**30,
                            "parameters": step["parameters"]}}

    def peer_step(self, preset, modes):
        found = {}
        for mode in modes:
            steps = ["--steps", "3"] if preset == "110m-100k" else []  # of the peer's three blocks; its step takes seconds
            step = json_lines(output([*shlex.split(self.a.python), PEERS / "tpp_step.py", "--preset", preset, "--mode", mode, "--json", *steps],
                                     self.a.limit))[-1]
            found["pytorch " + mode] = {key: step[key] for key in ("ms", "tokens_per_s", "peak_gib", "parameters")}
        return found

    def our_ops(self, preset, names):
        only = [word for name in names for word in ("--only", name)]
        return {"saccade " + op["name"]: {"ms": op["ms"]} for op in self.bench("--preset", preset, "--no-steps", *only)["ops"]}

    def peer_attention(self, shape):
        found = {}
        for line in json_lines(output([*shlex.split(self.a.python), PEERS / "attn.py", "--json", shape], self.a.limit)):
            found[line["backend"] + " attention forward"] = {"ms": line["forward_ms"]}
            found[line["backend"] + " attention"] = {"ms": line["both_ms"]}
        return found

    def sides(self, row):
        """What is timed in turns: ours, then the peers."""
        if row in STEPS:
            peer, modes = STEPS[row]
            return [lambda: self.our_step(row)] + ([lambda: self.peer_step(peer, modes)] if modes and self.a.python else [])
        preset, shape = SHAPES[row]
        names = CHUNKS if row == "chunk-100k" else ("attention forward", "attention")
        return [lambda: self.our_ops(preset, names)] + ([lambda: self.peer_attention(shape)] if self.a.python else [])


def medians(rounds):
    names = list(dict.fromkeys(name for r in rounds for name in r))
    return {name: {key: statistics.median(r[name][key] for r in rounds if name in r) for key in next(r[name] for r in rounds if name in r)}
            for name in names}


def ratios(row, found):
    """Time of every peer over ours, for what computes the same (chunk-100k: over cuDNN's dense attention with backward)."""
    pairs = []
    for ours, value in found.items():
        if not ours.startswith("saccade"):
            continue
        what = ours[len("saccade"):]
        for peer, other in found.items():
            same = peer.endswith(what) and not (what == " attention" and peer.endswith("forward")) if row != "chunk-100k" else peer == "cudnn attention"
            if not peer.startswith("saccade") and same:
                pairs.append((ours, peer, other["ms"] / value["ms"]))
    return pairs


def describe(name, value):
    text = f"  {name:34s} {value['ms']:10.3f} ms"
    if "tokens_per_s" in value:
        text += f"  {value['tokens_per_s'] / 1e6:8.4f} Mtok/s  peak {value['peak_gib']:6.2f} GiB  {value['parameters'] / 1e6:.2f} M"
    return text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--saccade", required=True, help="the program, with the words before it where there are any")
    p.add_argument("--python", default=sys.executable, help="a Python with PyTorch; empty: ours alone")
    p.add_argument("--row", action="append", choices=[*STEPS, *SHAPES])
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--device", default="cuda")
    p.add_argument("--limit", type=float, default=400, help="seconds that one program may take")
    p.add_argument("--json", help="file for all numbers")
    a = p.parse_args()
    runner, everything, failed = Runner(a), {}, 0
    for row in a.row or [*STEPS, *SHAPES]:
        rounds = []
        try:
            for _ in range(a.rounds):
                found = {}
                for side in runner.sides(row):
                    found.update(side())
                rounds.append(found)
        except (RuntimeError, subprocess.TimeoutExpired, KeyError, ValueError, IndexError) as error:
            failed += 1
            print(f"{row}: FAILED: {error}", flush=True)
        if not rounds:
            continue
        found = medians(rounds)
        everything[row] = {"medians": found, "rounds": rounds, "ratios": {f"{peer} / {ours}": r for ours, peer, r in ratios(row, found)}}
        print(row)
        for name, value in found.items():
            print(describe(name, value))
        for ours, peer, ratio in ratios(row, found):
            print(f"  {peer} / {ours}: {ratio:.2f}")
        sys.stdout.flush()
        if a.json:
            pathlib.Path(a.json).write_text(json.dumps(everything, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
