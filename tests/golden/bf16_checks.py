#!/usr/bin/env python3
"""Prints how far off the independent computation in bf16 (bf16_equations.py) is for inputs as tests/gpu has them: what the limits there
are twice of. Worst of DRAWS draws of each kind, the outputs first, then the gradients; distances as in bf16_reference.py."""

import torch

import bf16_equations as equations
from bf16_reference import distance

DRAWS = 8
PLAIN = {"position": "none", "window": 0, "qk_norm": "none", "temperature": 1.0, "chunk": 64, "selection": "exact"}
IN_FLOAT32 = {"g"}


def attention_inputs(draw, B, T, H, d, popular=False):
    x = {n: draw(B, T, H, d) for n in "qkv"}
    if popular:
        x["k"][:, 192:256] *= 4
    return x


def delta_inputs(draw, B, T, H, K, V, gated, common=0.0, decay=0.1):
    unit = lambda v: v / v.norm(dim=-1, keepdim=True)
    x = {"q": unit(draw(B, T, H, K) + common), "k": unit(draw(B, T, H, K) + common), "v": draw(B, T, H, V), "beta": draw(B, T, H).sigmoid()}
    return {**x, "g": -decay * equations.softplus(draw(B, T, H))} if gated else x


def mamba1_inputs(draw, B, T, width, states, kind):
    x = {"u": draw(B, T, width), "dt_raw": draw(B, T, width) - 2, "z": draw(B, T, width), "B": draw(B, T, states), "C": draw(B, T, states),
         "D": draw(width), "dt_bias": draw(width)}
    if kind == "full":
        x["A_log"] = 0.5 * draw(width, states)
    if kind == "one":
        x.update(shared_A_log=torch.full((1,), -1.0).double(), shared_raw=draw(B, T), shared_bias=draw(1))
    return x


KINDS = {}
for d in (16, 32, 64, 128):
    KINDS[f"attention, d {d}"] = (equations.attention, PLAIN, lambda draw, d=d: attention_inputs(draw, 2, 333, 3, d), "o lse")
    KINDS[f"attention, window, ALiBi, d {d}"] = (equations.attention, {**PLAIN, "window": 70, "position": "alibi"},
                                                 lambda draw, d=d: attention_inputs(draw, 2, 333, 3, d), "o lse entropy")
    KINDS[f"element, d {d}"] = (equations.top1_element, PLAIN, lambda draw, d=d: attention_inputs(draw, 1, 333, 2, d), "lse entropy")
    KINDS[f"chunk, d {d}"] = (equations.top1_chunk, PLAIN, lambda draw, d=d: attention_inputs(draw, 1, 701, 2, d), "o lse")
KINDS["attention, scale -0.2"] = (equations.attention, {**PLAIN, "temperature": -0.625}, lambda draw: attention_inputs(draw, 1, 200, 2, 64), "o lse")
KINDS["chunk, popular"] = (equations.top1_chunk, PLAIN, lambda draw: attention_inputs(draw, 1, 1000, 2, 64, True), "o lse")
for gated in (False, True):
    name = "gated delta rule" if gated else "delta rule"
    KINDS[name] = (equations.delta_rule_case, {"scale": 96**-0.5}, lambda draw, g=gated: delta_inputs(draw, 2, 131, 2, 96, 96, g), "y")
    KINDS[name + ", similar keys"] = (equations.delta_rule_case, {"scale": 96**-0.5}, lambda draw, g=gated: delta_inputs(draw, 2, 200, 2, 96, 96, g, 3.0), "y")
for kind in ("full", "one", "none"):
    for size in ((2, 1, 70, 16), (2, 37, 33, 5), (2, 131, 40, 64)):
        KINDS[f"Mamba-1 scan, decay {kind}, {size}"] = (equations.mamba1_scan, {}, lambda draw, s=size, k=kind: mamba1_inputs(draw, *s, k), "y")


def run(equation, cfg, x, upstream, dtype):
    leaves = {n: v.to(dtype).requires_grad_() for n, v in x.items()}
    stored = {n: v if v.dim() == 1 or n in IN_FLOAT32 else equations.stored(v) for n, v in leaves.items()}
    out = equation(stored, cfg)
    name = "o" if "o" in out else "y"
    grads = torch.autograd.grad((out[name] * upstream.to(dtype)).sum(), list(leaves.values()))
    return out, dict(zip(leaves, (g.double() for g in grads)))


def main():
    torch.set_num_threads(1)
    for kind, (equation, cfg, inputs, compared) in KINDS.items():
        worst, flips = {}, 0
        for seed in range(DRAWS):
            generator = torch.Generator().manual_seed(seed)
            draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)
            x = {n: v.bfloat16().double() for n, v in inputs(draw).items()}
            upstream = draw(*x["v" if "v" in x else "u"].shape).bfloat16().double()
            truth = run(equation, cfg, x, upstream, torch.float64)
            with equations.rounded():
                ours = run(equation, cfg, x, upstream, torch.float32)
            if "selected" in truth[0] and not torch.equal(truth[0]["selected"], ours[0]["selected"]):
                flips += 1  # as in tests/gpu: no gradients where a selection differs
                continue
            found = {n: distance(ours[0][n].detach().double(), truth[0][n].detach()) for n in compared.split()}
            found.update({f"d{n}": distance(ours[1][n], truth[1][n]) for n in x})
            worst = {n: max(e, worst.get(n, 0.0)) for n, e in found.items()}
        print(f"{kind:45s}" + " ".join(f"{n} {e:.1e}" for n, e in worst.items()) + (f"; {flips} of {DRAWS} draws select otherwise" if flips else ""), flush=True)


if __name__ == "__main__":
    main()
