#!/usr/bin/env python3
"""Our Transformer++ and Avey beside PyTorch's on the same sequences in the same order: evaluation losses must agree.

  compare.py --saccade build/release/app/saccade --corpus slimpajama --runs FOLDER [--steps 300] [--length 512] [--limit 0.03]
             [--system transformer-pp avey avey-xavier avey-paper] [--rate 1e-3 …] [--precision bf16 f32] [--seed 1] [--device cuda]

CORPUS has the domains of docs/tuned-10m.md. Trains what FOLDER does not hold yet, goes on with what was stopped, prints a table in Markdown and a line for each pair that
is further apart than --limit (mean over the domains, nats); exit code 1 if there is one. Needs numpy, PyTorch and a GPU; run nothing else on it."""
import argparse, json, pathlib, statistics, subprocess, sys

here = pathlib.Path(__file__).resolve().parent
presets = here.parents[2] / "resources" / "presets"
OOD = ["arxiv", "github", "stack", "books", "wiki"]
#          preset               settings                                          PyTorch's name
SYSTEMS = {"transformer-pp": ("transformer-pp-10m", [], "tpp"),
           "avey": ("avey-10m", [], "avey"),
           "avey-xavier": ("avey-10m", ["architecture.initialisation=xavier"], "avey-xavier"),
           "avey-paper": ("avey-paper-small", ["training.epsilon=1e-8", "training.gradient_accumulation=1"], "avey-paper")}


def folder(a, system, rate, precision):
    return pathlib.Path(a.runs) / f"{system}-{rate:g}-{precision}-T{a.length}-{a.steps}x{a.batch_tokens}-seed{a.seed}"


def train_ours(a, system, rate, precision):
    preset, settings, _ = SYSTEMS[system]
    run = folder(a, system, rate, precision)
    settings = settings + [
        f"name={run.name}", f"data.corpus={a.corpus}", 'data.train=["web"]', f"data.ood={json.dumps(OOD)}", "data.tokenizer=bpe:4096",
        f"data.sequence_length={a.length}", f"training.steps={a.steps}", f"training.batch_tokens={a.batch_tokens}", f"training.learning_rate={rate}",
        f"training.warmup_steps={min(200, a.steps * 2 // 3)}", "training.schedule=cosine", f"training.evaluate_every={a.steps}", "training.probe_every=1000000",
        "training.checkpoint_every=1000000", f"training.seed={a.seed}", f"device={a.device}", f"precision={precision}"]
    journal = run / "journal.jsonl"
    evaluations = lambda: [r for r in map(json.loads, open(journal)) if r["type"] == "evaluation"] if journal.exists() else []
    if not any(r["step"] == a.steps for r in evaluations()):
        command = ["resume", str(run)] if journal.exists() else ["train", str(presets / (preset + ".json")), "-o", str(run)] + [x for s in settings for x in ("--set", s)]
        subprocess.run([a.saccade] + command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL if a.quiet else None)
    return run, {d["domain"]: float(d["loss"]) for d in evaluations()[-1]["losses"]}


def train_theirs(a, run, system, rate):
    kept = run / "pytorch.json"
    if not kept.exists():
        made_of = json.load(open(run / "run.json"))["provenance"]
        stores = pathlib.Path(a.cache) / "tokens" / f"{made_of['corpus_hash'][:16]}-{made_of['tokenizer_hash'][:16]}"
        tokens = run / "tokens.npz"
        subprocess.run([sys.executable, here / "export_tokens.py", run, stores, tokens], check=True, stdout=subprocess.DEVNULL)
        out = subprocess.run([sys.executable, here / "train_same.py", tokens, f"{SYSTEMS[system][2]}:{rate}", "--seed", str(a.seed)], check=True, stdout=subprocess.PIPE, text=True).stdout
        tokens.unlink()
        kept.write_text(out.strip().splitlines()[-1])
    return json.loads(kept.read_text())["losses"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--saccade", required=True), p.add_argument("--corpus", default="slimpajama"), p.add_argument("--runs", required=True)
    p.add_argument("--cache", default=str(pathlib.Path.home() / ".cache/saccade"), help="folder of tokens/, as `saccade doctor` prints it")
    p.add_argument("--steps", type=int, default=300), p.add_argument("--length", type=int, default=512), p.add_argument("--batch-tokens", type=int, default=32768)
    p.add_argument("--limit", type=float, default=0.03), p.add_argument("--device", default="cuda"), p.add_argument("--quiet", action="store_true")
    p.add_argument("--system", nargs="+", default=["transformer-pp", "avey"], choices=SYSTEMS), p.add_argument("--rate", nargs="+", type=float, default=[1e-3])
    p.add_argument("--precision", nargs="+", default=["bf16"]), p.add_argument("--seed", type=int, default=1, help="of ours and of PyTorch's, which draw differently")
    a = p.parse_args()
    failed = 0
    print("| system | rate | precision | " + " | ".join(["web"] + OOD) + " | mean | PyTorch, mean | apart |\n|" + "---|" * 12)
    for system in a.system:
        for rate in a.rate:
            for precision in a.precision:
                run, ours = train_ours(a, system, rate, precision)
                theirs = train_theirs(a, folder(a, system, rate, a.precision[0]), system, rate)
                mean, other = statistics.mean(ours.values()), statistics.mean(theirs[d] for d in ours)
                apart = mean - other
                failed += abs(apart) > a.limit
                cells = [f"{ours[d]:.3f} ({theirs[d]:.3f})" for d in ["web"] + OOD]
                print(f"| {system} | {rate:g} | {precision} | " + " | ".join(cells) + f" | {mean:.3f} | {other:.3f} | {apart:+.3f}{' **beyond the limit**' if abs(apart) > a.limit else ''} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
