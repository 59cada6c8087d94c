#!/usr/bin/env python3
"""Writes data/bf16_reference.json: how far off a computation in bf16 that is not ours is from every output and gradient of the golden files.
golden_test allows the CUDA kernels twice that.

The equations of bf16_equations.py run on a case's inputs in float64, which must give what the file has to 1e-9, and in float32 with the
roundings of training in bf16 (that file says which). Distances are golden_test's: the largest over the largest element of the truth, absolute
where the truth is zero by mathematics. So that no lucky draw makes a limit, every case is drawn MOVED more times with each element of its
inputs and parameters moved by up to MOVED_BY of itself (what is an integer, like tokens, stays), and the worst counts: the first number of
a name. How well a case is conditioned depends on its values, a model's most of all: the second number is the worst of SHUFFLED draws with
the elements of every array in another order, for files of other seeds. Queries whose selection differs take no part, as in golden_test;
"selected" is how far off the scores are that the selection is made from.

Needs torch, numpy and h5py; takes some minutes. Usage: bf16_reference.py [--data FOLDER] [--output FILE]
       bf16_reference.py --data FOLDER --check    compares another FOLDER's cases with the limits of the table, and writes nothing
"""
import argparse
import json
import math
import os
import pathlib
import re
import sys

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")  # for check_products alone: the same path on every machine

import h5py
import torch

import bf16_equations as equations

here = pathlib.Path(__file__).resolve().parent
TABLE = here / "data" / "bf16_reference.json"
MOVED, MOVED_BY, SHUFFLED, EXACT = 31, 0.02, 64, 1e-9
TIMES, FLOOR = 2, 2.0**-8  # a limit of golden_test: so many times what the table has, and what storing a result in bf16 may cost

norms = {
    "rms_norm": lambda x, c: equations.rms_norm(x["x"], x["weight"], c["eps"]),
    "rms_norm_gate_first": lambda x, c: equations.rms_norm_gate_first(x["x"], x["z"], x["weight"], c["eps"], c["groups"]),
    "rms_norm_gate_last": lambda x, c: equations.rms_norm_gate_last(x["x"], x["g"], x["weight"], c["eps"]),
    "group_norm_heads": lambda x, c: equations.group_norm(x["x"], x["weight"], x["bias"], c["eps"], c["heads"]),
    "layer_norm": lambda x, c: equations.layer_norm(x["x"], x["weight"], x["bias"], c["eps"]),
    "l2_sum_eps": lambda x, c: equations.l2_norm(x["x"], c["eps"]),
    "l2_max_eps": lambda x, c: equations.unit_norm(x["x"], c["eps"]),
}
mixers = {name: getattr(equations, name) for name in ("rwkv5_time_mix", "rwkv5_channel_mix", "rwkv6_time_mix", "rwkv6_channel_mix",
                                                      "rwkv7_channel_mix", "swiglu_mlp")}
mixers.update({name: getattr(equations, name + "_mixer") for name in ("mamba1", "mamba2", "deltanet", "based")})
mixers["gated_deltanet"] = equations.deltanet_mixer


def rwkv7_time_mix(x, cfg):
    y, v_first = equations.rwkv7_time_mix(x["x"], x, cfg, x.get("v_first"))
    return {"y": y, "v_first": v_first}


# What a case computes, by the longest beginning of its op or "file/name".
EQUATIONS = {
    **{op: getattr(equations, op) for op in ("attention", "top1_element", "top1_chunk", "avey", "transformer_pp")},
    **{file: getattr(equations, file) for file in ("sliding_window_attention", "mamba1_scan", "mamba2_ssd")},
    "wkv5": equations.wkv, "wkv6": equations.wkv, "wkv7": equations.wkv7_case,
    "delta_rule": equations.delta_rule_case, "gated_delta_rule": equations.delta_rule_case,
    "based_linear_attention": lambda x, c: {"y": equations.based_linear_attention(x["q"], x["k"], x["v"], c["eps"])},
    "conv1d": lambda x, c: {"y": equations.causal_conv(x["x"], x["weight"], x.get("bias"), bool(c["silu"]))},
    **{f"norms/{n}": (lambda f: lambda x, c: {"y": f(x, c)})(f) for n, f in norms.items()},
    **{f"layers/{n}": (lambda f: lambda x, c: {"y": f(x["x"], x, c)})(f) for n, f in mixers.items()},
    "layers/rwkv7_time_mix": rwkv7_time_mix,
    "models": equations.stateful_model,
}
# Inputs that are no parameters and yet float32 with float32 gradients: states and log decays.
IN_FLOAT32 = {"mamba1_scan": {"h0"}, "mamba2_ssd": {"S0"}, "wkv5": {"S0"}, "wkv6": {"S0"}, "wkv7/core": {"S0", "log_w"}, "delta_rule": {"S0"},
              "gated_delta_rule/core": {"S0", "g"}}
# Arrays whose elements are no independent draws: only their rows change places, all in the same way, or nothing does.
IN_ROWS = {"delta_rule/core": {"q", "k"}, "gated_delta_rule/core": {"q", "k"}, "wkv7/core": {"a", "b"},
           "top1_chunk/exact-popular-chunk": {"q"}}
KEPT = {"top1_chunk/exact-popular-chunk": {"k"}}


class Case:
    def __init__(self, file, name, group):
        self.file, self.name, self.cfg = file, name, {k: (v.item() if hasattr(v, "item") else v) for k, v in group.attrs.items()}
        read = lambda folder: {n: torch.from_numpy(d[()].reshape(d.shape or (1,))) for n, d in group.get(folder, {}).items()}
        inputs, parameters = read("inputs"), read("params")
        self.values, self.outputs, self.grads, self.upstream = {**inputs, **parameters}, read("outputs"), read("grads"), read("grad_outputs")
        if "loss" in self.cfg:
            self.outputs["loss"], self.upstream = torch.tensor([self.cfg["loss"]], dtype=torch.float64), {"loss": torch.ones(1).double()}
        op = self.cfg.get("op", f"{file}/{name}")
        keys = [k for k in EQUATIONS if op == k or re.match(re.escape(k) + "[_/]", op) and "op" not in self.cfg]
        self.equation = EQUATIONS[max(keys, key=len)]
        listed = lambda table: set().union(*(names for k, names in table.items() if f"{file}/{name}".startswith(k)))
        exact, self.in_rows, self.kept = listed(IN_FLOAT32), listed(IN_ROWS), listed(KEPT)
        whole = {"tokens"} <= set(inputs)  # a model: all its other inputs are parameters
        self.activations = set() if whole else {n for n, v in inputs.items() if v.dim() > 1 and n not in exact}

    def moved(self, seed):
        """Values and upstream gradients of a draw."""
        generator = torch.Generator().manual_seed(seed)
        move = lambda v: v * (1 + MOVED_BY * (2 * torch.rand(v.shape, generator=generator, dtype=v.dtype) - 1))
        return {n: move(v).bfloat16().double() if v.is_floating_point() else v for n, v in self.values.items()}, self.upstream

    def shuffled(self, seed):
        generator = torch.Generator().manual_seed(seed)
        order = lambda n: torch.randperm(n, generator=generator)
        rows = {}

        def shuffle(n, v):
            if n in self.kept:
                return v
            if n not in self.in_rows:
                return v.reshape(-1)[order(v.numel())].reshape(v.shape)
            count = v.numel() // v.shape[-1]
            rows.setdefault(count, order(count))
            return v.reshape(count, -1)[rows[count]].reshape(v.shape)

        return tuple({n: shuffle(n, v) for n, v in arrays.items()} for arrays in (self.values, self.upstream))

    def run(self, values, upstream, dtype):
        """Outputs, and gradients of those that have one upstream."""
        leaves = {n: v.to(dtype).requires_grad_() if v.is_floating_point() else v.long() for n, v in values.items()}
        out = self.equation({n: equations.stored(v) if n in self.activations else v for n, v in leaves.items()}, self.cfg)
        loss = sum((out[n] * g.to(dtype).reshape(out[n].shape)).sum() for n, g in upstream.items())
        names = list(self.grads)
        grads = torch.autograd.grad(loss, [leaves[n] for n in names])
        return {n: v.detach().double() for n, v in out.items()}, {n: g.double() for n, g in zip(names, grads)}


def read_cases(folder):
    for path in sorted(pathlib.Path(folder).glob("*.h5")):
        with h5py.File(path) as file:
            for name in file:
                if "inputs" in file[name]:  # initial values of parameters have none and are float32
                    yield Case(path.stem, name, file[name])


def distance(actual, truth):
    actual, truth = actual.reshape(-1), truth.reshape(-1).double()
    finite = truth.isfinite()
    if not torch.equal(finite, actual.isfinite()) or not torch.equal(actual[~finite], truth[~finite]):
        return math.inf
    if not finite.any():
        return 0.0
    largest, error = truth[finite].abs().max().item(), (actual - truth)[finite].abs().max().item()
    return error if largest < 1e-10 else error / largest


def silenced(arrays, selected, others):
    """Zero where a query of `others` [B, H, T] stands: o is [B, T, H, d], everything else begins as `selected` does."""
    rows = lambda n, v: (others.transpose(1, 2) if n == "o" else others).reshape(*selected.shape[:1], *v.shape[1:3], *[1] * (v.dim() - 3))
    return {n: torch.where(rows(n, v), torch.zeros_like(v), v) for n, v in arrays.items()}


def one_draw(case, values, upstream):
    """Errors of outputs and of gradients; None where the computation in bf16 ranked otherwise and nothing is to be compared."""
    truth = case.run(values, upstream, torch.float64)
    with equations.rounded():
        ours = case.run(values, upstream, torch.float32)
    errors = {}
    if "scores" in truth[0]:
        scores, selected = (ours[0].pop("scores"), truth[0].pop("scores")), truth[0]["selected"]
        errors["selected"] = distance(*scores)
        others = ours[0]["selected"] != selected
        if others.any():
            upstream = silenced(upstream, selected, others)
            truth = case.run(values, upstream, torch.float64)
            with equations.rounded():
                ours = case.run(values, upstream, torch.float32)
            truth, ours = ((silenced({n: v for n, v in out.items() if n != "scores"}, selected, others), grads) for out, grads in (truth, ours))
    for n, expected in case.outputs.items():
        if expected.is_floating_point():
            errors[n] = distance(ours[0][n], truth[0][n])
        elif not torch.equal(ours[0][n], truth[0][n]):
            return None
    return errors, {n: distance(ours[1][n], truth[1][n]) for n in case.grads}


def check_truth(case):
    out, grads = case.run(case.values, case.upstream, torch.float64)
    for what, got, expected in (("output", out, case.outputs), ("gradient", grads, case.grads)):
        for n in expected:
            error = distance(got[n], expected[n])
            if not error <= EXACT:
                sys.exit(f"{case.file}/{case.name}: {what} {n} in float64 is off by {error:.2g} of what the file has")


def check_products():
    """That a linear layer here rounds as torch.autocast does: the same products, summed in another order."""
    generator = torch.Generator().manual_seed(1)
    x, w, g = (torch.randn(*shape, generator=generator) for shape in ((37, 48), (24, 48), (37, 24)))
    both = []
    for mine in (True, False):
        leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]
        if mine:
            with equations.rounded():
                y = equations.linear(equations.stored(leaves[0]), leaves[1])
        else:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = torch.nn.functional.linear(*leaves).float()
        both.append([y.detach(), *torch.autograd.grad((y * g.bfloat16().float()).sum(), leaves)])
    for a, b in zip(*both):
        if not distance(a, b) <= FLOOR:
            sys.exit(f"a linear layer is off by {distance(a, b):.2g} of torch.autocast's")


def two_digits(x):
    """Rounded up, so that the table allows what was seen."""
    if x == 0:
        return 0.0
    power = 10.0 ** (math.floor(math.log10(x)) - 1)
    return float(f"{math.ceil(x / power - 1e-9) * power:.2g}")


def worst_of(case, draws):
    worst, compared = ({}, {}), 0
    for draw in draws:
        errors = one_draw(case, *draw)
        for into, found in zip(worst, errors or ()):
            for n, e in found.items():
                into[n] = max(into.get(n, 0.0), e)
        compared += errors is not None
    if 2 * compared < len(draws):
        sys.exit(f"{case.file}/{case.name}: only {compared} of {len(draws)} draws rank as the truth does")
    return worst


def write_table(folder, output):
    rows = []
    for case in read_cases(folder):
        check_truth(case)
        near = worst_of(case, [(case.values, case.upstream), *(case.moved(seed) for seed in range(MOVED))])
        far = worst_of(case, [case.shuffled(seed) for seed in range(SHUFFLED)])
        row = {"seed": case.cfg["seed"]}
        for kind, a, b in zip(("outputs", "gradients"), near, far):
            row[kind] = {n: [two_digits(a[n]), two_digits(b[n])] for n in a}
        worst = "; ".join(f"{kind} {max(a.values()):.1e}, {max(b.values()):.1e}" for kind, a, b in zip(("outputs", "gradients"), near, far))
        print(f"{case.file + '/' + case.name:55s} {worst}", flush=True)
        rows.append(f'  {json.dumps(case.file + "/" + case.name)}: {json.dumps(row)}')
    head = {"torch": torch.__version__.split("+")[0], "moved": MOVED, "moved_by": MOVED_BY, "shuffled": SHUFFLED}
    output.write_text("{" + "".join(f"\n {json.dumps(k)}: {json.dumps(v)}," for k, v in head.items()) + '\n "cases": {\n' + ",\n".join(rows) + "\n }\n}\n")


def limit_of(table, case, kind, name):
    """As golden_test has it."""
    key = f"{case.file}/{case.name}"
    if key in table:
        found = table[key][kind][name][0 if table[key]["seed"] == case.cfg["seed"] else 1]
    else:
        found = max(row[kind][name][1] for k, row in table.items() if k.startswith(case.file + "/") and name in row[kind])
    return max(FLOOR, TIMES * found)


def check_table(folder):
    table, outside, compared = json.loads(TABLE.read_text())["cases"], 0, 0
    for case in read_cases(folder):
        check_truth(case)
        errors = one_draw(case, case.values, case.upstream)
        for kind, found in zip(("outputs", "gradients"), errors or ({}, {})):
            for n, e in found.items():
                compared += 1
                limit = limit_of(table, case, kind, n)
                if e > limit:
                    outside += 1
                    print(f"{case.file}/{case.name} {kind} {n}: off by {e:.2g}, allowed {limit:.2g}")
    print(f"{outside} of {compared} are outside of the limits")
    return 1 if outside else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=here / "data")
    parser.add_argument("--output", type=pathlib.Path, default=TABLE)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    check_products()
    if options.check:
        return check_table(options.data)
    write_table(options.data, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
