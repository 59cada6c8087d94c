#!/usr/bin/env python3
"""What bf16 costs the gradients of a training step in PyTorch: |gradient under bf16 autocast − gradient in float64| / |the latter|, tensor by
tensor, for the Transformer++ and the Avey of the `10m` presets from their initial values. tests/gpu/scale_check.cpp allows twice that.

  autocast_limits.py TOKENS.npz [--all]      TOKENS.npz: export_tokens.py. Needs a GPU and about a minute."""
import copy, pathlib, sys
import numpy as np
import torch

from train_same import make

data = np.load(sys.argv[1])
T = int(data["T"])
stream = torch.from_numpy(data["train"].astype(np.int64))


def gradients(model, tokens, autocast):
    model.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
        loss = model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
    loss.backward()
    return loss.item(), {name: p.grad.double() for name, p in model.named_parameters()}


for kind in ("tpp", "avey", "avey-xavier"):
    for sequences, length in ((2, T), (16, T), (1, 4 * T), (16, 4 * T)):
        model = make(kind, length)
        tokens = stream[: sequences * (length + 1)].view(sequences, length + 1).cuda()
        loss, mixed = gradients(model, tokens, True)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            exact_loss, exact = gradients(copy.deepcopy(model).double(), tokens, False)
        off = {name: ((mixed[name] - g).norm() / g.norm()).item() for name, g in exact.items()}
        worst = max(off, key=off.get)
        print(f"{kind:12} {sequences:3} x {length:5}  loss off by {abs(loss - exact_loss):.1e}  worst {off[worst]:.2e} {worst}  median {np.median(list(off.values())):.2e}", flush=True)
        if "--all" in sys.argv:
            for name, value in off.items():
                print(f"    {name:40} {value:.2e}")
        torch.cuda.empty_cache()
