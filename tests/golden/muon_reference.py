#!/usr/bin/env python3
"""Writes data/muon.json: weights after 20 steps of torch.optim.Muon (torch 2.9 or later) in float32, which tests/kernels/muon_test.cpp compares with.

torch rounds to bfloat16 before Newton-Schulz; here its own function runs without that rounding, so that both sides compute in float32.
Values and gradients follow from a formula that is exact in float32, the same as in the test. Usage: muon_reference.py [OUTPUT]
"""
import inspect
import json
import pathlib
import sys

import torch
from torch.optim import _muon

SHAPES = [(6, 10), (10, 6), (8, 8), (3, 40), (17, 5)]
STEPS = 20


def number(matrix, step, index):
    return ((index * index * 31 + index * 7919 + step * 104729 + matrix * 613) % 1009 - 504) / 512


def tensor(matrix, step):
    rows, columns = SHAPES[matrix]
    return torch.tensor([number(matrix, step, i) for i in range(rows * columns)], dtype=torch.float32).reshape(rows, columns)


def without_rounding():
    source = inspect.getsource(_muon._zeropower_via_newtonschulz)
    assert source.count("torch.bfloat16") == 1, "another torch: see how it rounds"
    exec(source.replace("torch.bfloat16", "torch.float32"), _muon.__dict__)


def run(options):
    weights = [torch.nn.Parameter(tensor(m, 0)) for m in range(len(SHAPES))]
    optimizer = _muon.Muon(weights, **options)
    for step in range(1, STEPS + 1):
        for m, weight in enumerate(weights):
            weight.grad = tensor(m, step)
        optimizer.step()
    return [weight.detach().flatten().tolist() for weight in weights]


def main():
    without_rounding()
    cases = []
    for nesterov in (True, False):
        for adjust in ("original", "match_rms_adamw"):
            options = {"lr": 0.02, "weight_decay": 0.1, "momentum": 0.95, "nesterov": nesterov, "adjust_lr_fn": adjust}
            cases.append({"nesterov": nesterov, "match_rms_adamw": adjust != "original", "weights": run(options)})
    torch_version = torch.__version__.split("+")[0]
    golden = {"torch": torch_version, "learning_rate": 0.02, "weight_decay": 0.1, "steps": STEPS, "shapes": SHAPES, "cases": cases}
    default = pathlib.Path(__file__).parent / "data" / "muon.json"
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else default).write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
