#!/usr/bin/env python3
"""Writes data/training_steps.json: losses and gradient norms of 20 training steps in double in PyTorch, which
tests/models/training_reference_test.cpp repeats with ours.

The models are those that benchmarks train beside ours: Transformer++ of ../bench/peers/tpp_step.py and Avey of
../bench/same_tokens/avey.py. Initial values and tokens follow from a formula, the same as in the test; torch.optim.AdamW with decay on
matrices alone, clipping, linear warm-up and cosine. Usage: training_reference.py [OUTPUT]
"""
import json
import math
import pathlib
import sys

import torch

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here.parent / "bench/peers"), str(here.parent / "bench/same_tokens")]
torch.Tensor.float = torch.Tensor.double  # where the models ask for float32
torch.set_default_dtype(torch.float64)

from avey import Avey  # noqa: E402
from tpp_step import TransformerPP  # noqa: E402

VOCABULARY, BATCH, LENGTH, STEPS, WARMUP = 11, 3, 12, 20, 5
RATE, LEAST, DECAY, CLIP, BETAS, EPSILON = 0.02, 0.1, 0.1, 0.5, (0.9, 0.95), 1e-8


def number(name, index):
    """In [-1, 1), of a parameter's name and an element's index; exact in double."""
    h = 17
    for letter in name.encode():
        h = (h * 31 + letter) % 1000003
    return ((index * index * 31 + index * 7919 + h) % 1009 - 504) / 512


def values(name, shape):
    """Matrices around 0, vectors around 1 where they are weights of a norm and around 0 elsewhere."""
    size = math.prod(shape)
    middle = 1 if name.endswith("norm") else 0
    return torch.tensor([middle + 0.1 * number(name, i) for i in range(size)]).reshape(shape)


def token(step, index):
    return (index * index * 7 + index * 3 + step * step * 5 + step) % VOCABULARY


def batch(step):
    x = torch.tensor([token(step, i) for i in range(BATCH * LENGTH)]).reshape(BATCH, LENGTH)
    y = torch.tensor([token(step + 1000, i) for i in range(BATCH * LENGTH)]).reshape(BATCH, LENGTH)
    return x, y


def transformer():
    width, layers, heads, mlp = 16, 2, 2, 24
    model = TransformerPP(VOCABULARY, width, layers, heads, mlp, LENGTH)
    half = width // heads
    angles = torch.outer(torch.arange(LENGTH).double(), 10000.0 ** -(torch.arange(0, half, 2).double() / half))
    state = {"cos": angles.cos()[:, None, :], "sin": angles.sin()[:, None, :],
             "wte.weight": values("embedding", (VOCABULARY, width)), "nf.weight": values("final_norm", (width,))}
    for norm in [model.nf] + [n for block in model.blocks for n in (block.n1, block.n2)]:
        norm.eps = 1e-5
    for l in range(layers):
        v = lambda name, *shape: values(f"layer{l}.{name}", shape)
        state[f"blocks.{l}.n1.weight"], state[f"blocks.{l}.n2.weight"] = v("attention_norm", width), v("mlp_norm", width)
        state[f"blocks.{l}.qkv.weight"] = torch.cat([v(name, width, width) for name in ("query", "key", "value")])
        state[f"blocks.{l}.o.weight"] = v("output", width, width)
        state[f"blocks.{l}.gate.weight"], state[f"blocks.{l}.up.weight"] = v("gate", mlp, width), v("up", mlp, width)
        state[f"blocks.{l}.down.weight"] = v("down", width, mlp)
    return model, state, {"block": "llama", "mixer": "attention", "width": width, "layers": layers, "heads": heads, "mlp_width": mlp}


def avey():
    width, layers, split, top_k, expansion = 16, 2, 4, 2, 4
    model, context, m = Avey(VOCABULARY, width, layers, split, top_k, expansion, "max"), split * (top_k + 1), width * expansion
    state = {"wte.weight": values("embedding", (VOCABULARY, width)), "gain": values("final_norm", (width,))}
    for l in range(layers):
        v = lambda name, *shape: values(f"layer{l}.{name}", shape)
        state[f"layers.{l}.gain"], state[f"layers.{l}.A"] = v("norm", width), v("contextualizer", context, context)
        state[f"layers.{l}.enricher.weight"], state[f"layers.{l}.enricher.bias"] = v("enricher.weight", m, width), v("enricher.bias", m)
        state[f"layers.{l}.fuser.weight"], state[f"layers.{l}.fuser.bias"] = v("fuser.weight", width, m - m // 4), v("fuser.bias", width)
    return model, state, {"block": "avey", "width": width, "layers": layers, "split": split, "top_k": top_k, "expansion": expansion}


def run(made):
    model, state, architecture = made
    model.double().load_state_dict(state)
    matrices, rest = [p for p in model.parameters() if p.dim() >= 2], [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0.0}], lr=RATE, betas=BETAS, eps=EPSILON)
    losses, norms = [], []
    for step in range(1, STEPS + 1):
        share = step / WARMUP if step <= WARMUP else LEAST + (1 - LEAST) * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))
        for group in optimizer.param_groups:
            group["lr"] = RATE * share
        optimizer.zero_grad()
        loss = model(*batch(step))
        loss.backward()
        losses.append(loss.item())
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        norms.append(norm.item())
        if norm > CLIP:  # as in the papers; torch's own clip_grad_norm_ divides by norm + 1e-6
            for p in model.parameters():
                p.grad *= CLIP / norm
        optimizer.step()
    return {"architecture": architecture, "losses": losses, "gradient_norms": norms}


def main():
    training = {"steps": STEPS, "batch_tokens": BATCH * LENGTH, "warmup_steps": WARMUP, "learning_rate": RATE, "schedule": "cosine", "min_lr_ratio": LEAST,
                "weight_decay": DECAY, "max_grad_norm": CLIP, "beta1": BETAS[0], "beta2": BETAS[1], "epsilon": EPSILON}
    golden = {"torch": torch.__version__.split("+")[0], "vocabulary": VOCABULARY, "sequence_length": LENGTH, "training": training,
              "models": [run(transformer()), run(avey())]}
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "data" / "training_steps.json"
    out.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
