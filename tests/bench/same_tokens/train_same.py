#!/usr/bin/env python3
"""Trains a PyTorch model on the very sequences of one of our runs, in the same order, and prints its losses, to hold ours against.

  train_same.py TOKENS.npz KIND:RATE… [--seed N]

KIND: tpp (../peers/tpp_step.py), avey (initial values of the released code), avey-xavier (Xavier normal, zero biases), avey-paper (width 768,
26 layers). TOKENS.npz: export_tokens.py, which also holds the config's batch and warm-up. The `10m` presets with 4 096 pieces, bf16 autocast,
AdamW 0.9/0.95, decay 0.1 on matrices, clipping at 1, cosine to 10 %. --scores max: Avey's contexts weighted by the best score (arXiv:2506.11305,
section 2.1) instead of the first chosen split's (released code). One JSON line a job."""
import argparse, json, math, pathlib, sys, time
import numpy as np
import torch
import torch.nn as nn

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "peers")]


def make(kind, length, scores="max", seed=1):
    torch.manual_seed(seed)
    if kind == "tpp":
        from tpp_step import TransformerPP
        m = TransformerPP(4096, 320, 8, 5, 896, length)
        for name, p in m.named_parameters():
            if name.endswith(("o.weight", "down.weight")):
                nn.init.normal_(p, std=0.02 / math.sqrt(16))
        return m.cuda()
    from avey import Avey
    m = Avey(4096, 768, 26, reference=scores) if kind == "avey-paper" else Avey(4096, 256, 14, reference=scores)
    if kind == "avey-xavier":
        for layer in m.layers:
            for linear in (layer.enricher, layer.fuser):
                nn.init.xavier_normal_(linear.weight), nn.init.zeros_(linear.bias)
    return m.cuda()


def train(data, kind, rate, scores, seed):
    T, B, order, warm = int(data["T"]), int(data["batch"]), data["order"], int(data["warmup"])
    stream = torch.from_numpy(data["train"].astype(np.int32)).cuda()
    evaluation = {k[5:]: torch.from_numpy(data[k].astype(np.int64)).cuda() for k in data.files if k.startswith("eval_")}
    steps = len(order) // B

    def batch(step):
        first = torch.from_numpy(order[step * B:(step + 1) * B].astype(np.int64)).cuda()[:, None] * T
        w = stream[first + torch.arange(T + 1, device="cuda")].long()
        return w[:, :-1].contiguous(), w[:, 1:].contiguous()

    torch._dynamo.reset()
    start, m, curve = time.time(), make(kind, T, scores, seed), []
    f = torch.compile(m)
    matrices, rest = [p for p in m.parameters() if p.dim() >= 2], [p for p in m.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=rate, betas=(0.9, 0.95), eps=1e-8, fused=True)
    for s in range(1, steps + 1):
        now = rate * (s / warm if s <= warm else 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (s - warm) / (steps - warm))))
        for group in optimizer.param_groups:
            group["lr"] = now
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = f(*batch(s - 1))
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        optimizer.step()
        if s % 100 == 0:
            curve.append(round(loss.item(), 3))
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        losses = {k: round(float(np.mean([m(w[i:i + 8, :-1].contiguous(), w[i:i + 8, 1:].contiguous()).item() for i in range(0, len(w), 8)])), 4) for k, w in evaluation.items()}
    return dict(job=f"{kind}:{rate}", parameters=sum(p.numel() for p in m.parameters()), seconds=round(time.time() - start, 1), every_100_steps=curve, losses=losses)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tokens"), p.add_argument("jobs", nargs="+"), p.add_argument("--scores", default="max", choices=["max", "first"]), p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    torch.set_float32_matmul_precision("high")
    data = np.load(a.tokens)
    for job in a.jobs:
        kind, rate = job.split(":")
        print(json.dumps(train(data, kind, float(rate), a.scores, a.seed)), flush=True)


if __name__ == "__main__":
    main()
