#!/usr/bin/env python3
"""Times training steps on 1, 2, 4 … GPUs of one machine, ours and PyTorch's DistributedDataParallel in turns, and prints how they scale.

  compare_ranks.py --saccade "bundle/run saccade" [--python PYTHON_WITH_TORCH] [--gpus 1,2] [--micro-batches 8] [--rounds 2] [--json FILE]

Transformer++ 110 M (12 layers, 768, 12 heads, T 2 048, 32 000 symbols), micro-batches of 32 sequences, bf16; a step is 8 of them, 0.5 M tokens.
Exit code 1 when something failed.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SEQUENCES, LENGTH = 32, 2048


def config(micro_batches):
    return {"name": "110m", "architecture": {"block": "llama", "mixer": "attention", "width": 768, "layers": 12, "heads": 12, "mlp_width": 2048},
            "data": {"sequence_length": LENGTH, "tokenizer": "bpe:32000"},
            "training": {"batch_tokens": micro_batches * SEQUENCES * LENGTH, "gradient_accumulation": micro_batches}}


def last_json(command, limit):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=limit, cwd=HERE / "peers")
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    text = done.stdout
    return json.loads(text[text.index("{"):] if text.lstrip().startswith("{\n") else [l for l in text.splitlines() if l.startswith("{")][-1])


def ours(a, folder, gpus):
    file = pathlib.Path(folder) / "110m.json"
    file.write_text(json.dumps(config(a.micro_batches)))
    device = f"cuda:0-{gpus - 1}" if gpus > 1 else "cuda:0"
    found = last_json([*shlex.split(a.saccade), "bench", "--json", "--config", file, "--device", device, "--repeats", "9"], a.limit)
    step = found["steps"][0]
    return {"ms": step["ms"], "tokens_per_s": step["tokens_per_s"], "peak_gib": step["peak_bytes"] / 2**30, "parameters": step["parameters"]}


def peers(a, gpus):
    return last_json([*shlex.split(a.python), HERE / "peers" / "tpp_ddp.py", "--gpus", gpus, "--micro-batches", a.micro_batches], a.limit)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--saccade", required=True, help="the program, with the words before it where there are any")
    p.add_argument("--python", default=sys.executable, help="a Python with PyTorch; empty: ours alone")
    p.add_argument("--gpus", default="1,2", help="numbers of GPUs, with commas between")
    p.add_argument("--micro-batches", type=int, default=8)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--limit", type=float, default=300, help="seconds that one program may take")
    p.add_argument("--json", help="file for all numbers")
    a = p.parse_args()
    counts, found, failed = [int(n) for n in a.gpus.split(",")], {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(a.rounds):
            for gpus in counts:
                for name, side in [("saccade", lambda: ours(a, folder, gpus))] + ([("pytorch DDP", lambda: peers(a, gpus))] if a.python else []):
                    try:
                        found.setdefault(name, {}).setdefault(gpus, []).append(side())
                    except (RuntimeError, subprocess.TimeoutExpired, KeyError, ValueError, IndexError) as error:
                        failed += 1
                        print(f"{name}, {gpus} GPUs: FAILED: {error}", flush=True)
    for name, by_count in found.items():
        fewest = min(by_count)
        alone = fewest * statistics.median(r["ms"] for r in by_count[fewest])
        for gpus, rounds in sorted(by_count.items()):
            ms = statistics.median(r["ms"] for r in rounds)
            print(f"{name:12s} {gpus} GPUs: {ms:9.2f} ms  {statistics.median(r['tokens_per_s'] for r in rounds) / 1e6:7.4f} Mtok/s  "
                  f"peak {rounds[0]['peak_gib']:6.2f} GiB  {rounds[0]['parameters'] / 1e6:.2f} M  speed-up {alone / ms:.3f}")
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(found, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
