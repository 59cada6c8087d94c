#!/usr/bin/env python3
"""Writes the presets of the papers, resources/presets/*-paper-*.json: every model of arXiv:2505.18522 (appendix A) and arXiv:2506.11305
(appendix A) in every size, trained as published, each with what still differs in its description.

  paper_presets.py [--check]     --check: write nothing, fail where a file is not what would be written

Sizes: paper-small and paper-large of arXiv:2505.18522 at 2 048 tokens, paper-long at 102 400; NAME-fineweb-paper-small, -medium and -large
are the baselines of arXiv:2506.11305, avey-paper-small, -medium and -large its model."""
import json, pathlib, sys

folder = pathlib.Path(__file__).resolve().parent / "presets"

# ---- arXiv:2505.18522
SLIMPAJAMA = {"corpus": "slimpajama", "train": ["web", "c4"], "ood": ["arxiv", "github", "stack"], "tokenizer": "bpe:32000"}
ADAM = {"schedule": "linear", "min_lr_ratio": 0.0, "weight_decay": 0.0, "max_grad_norm": 0.0}
OBSERVED = {"evaluate_every": 1000, "evaluation_tokens": 131072, "probe_every": 5000, "checkpoint_every": 2000}
SMALL = {"steps": 190735, "batch_tokens": 524288, "gradient_accumulation": 64, "learning_rate": 2e-4, "warmup_steps": 2500}
LARGE = {"steps": 381470, "batch_tokens": 262144, "gradient_accumulation": 64, "learning_rate": 5e-5, "warmup_steps": 5000}
LONG = {"steps": 122070, "batch_tokens": 819200, "gradient_accumulation": 8, "activation_checkpointing": True, "learning_rate": 2e-4,
        "warmup_steps": 2500}

SHARED = ("Differs: a tokenizer of 32 000 pieces trained here (set data.tokenizer to Mixtral's .model); AdamW without decay for Adam; no weight "
          "decay or clipping, since the paper names neither; the paper gives no seed; the rate that the schedule gives step n is that of the "
          "end of the step, so the first one is above 0.")
LONG_ALSO = (" The paper tests on documents longer than 100 000 tokens; here test sequences are packed across documents. 102 400 tokens are "
             "meant by its 100k.")
NOTES = {
    "based": " The window layers see 65 tokens, the query and 64 before it, as the released code sets it for a window named 128 "
             "(2 x 64 with the block layout); architecture.window=128 is the literal reading.",
    "alibi": "",
    "rwkv-host": " The paper replaces only the sequence modeling of the RWKV-7 block and does not say what of its time mix stays: here "
                 "queries, keys and values come straight from the norm (134.1 M, which fits its 135 M); "
                 "architecture.mixer_inputs=shifted or full keeps the token shift, or that with value residual, group norm and gate "
                 "(137.1 M).",
    "gated": " Keys and values are as wide as the public layer makes them for heads of this count.",
}
base = {"width": 768, "layers": 12, "heads": 12}
big = {"width": 2048, "layers": 24, "heads": 16}
pp, rwkv = {"block": "llama", "mixer": "attention"}, {"block": "rwkv", "mixer": "attention"}
chunk = lambda selection: {"mixer": "top1_chunk", "selection": selection, "chunk": 128}
small = {
    "gpt": ({"block": "gpt", "mixer": "attention", **base}, "Transformer", ""),
    "transformer-pp": ({**pp, **base}, "Transformer++", ""),
    "transformer-pp-window": ({**pp, "window": 256, **base}, "Transformer++ (W=256)", ""),
    "based": ({"block": "llama", "mixer": "based", "width": 768, "layers": 15, "heads": 12, "mlp_width": 1536}, "Based", NOTES["based"]),
    "mamba1": ({"block": "mamba", "mixer": "mamba1", "width": 768, "layers": 24}, "Mamba-1", ""),
    "mamba2": ({"block": "mamba", "mixer": "mamba2", "width": 768, "layers": 24, "heads": 24, "state": 128}, "Mamba-2", ""),
    "rwkv5": ({"block": "rwkv", "mixer": "rwkv5", **base}, "RWKV-5", ""),
    "rwkv6": ({"block": "rwkv", "mixer": "rwkv6", **base}, "RWKV-6", ""),
    "rwkv7": ({"block": "rwkv", "mixer": "rwkv7", **base}, "RWKV-7", ""),
    "deltanet": ({"block": "llama", "mixer": "deltanet", "width": 768, "layers": 12, "heads": 8}, "DeltaNet", ""),
    "gated-deltanet": ({"block": "llama", "mixer": "gated_deltanet", "width": 768, "layers": 12, "heads": 6}, "Gated DeltaNet", NOTES["gated"]),
    "top1-element": ({"block": "llama", "mixer": "top1_element", **base}, "Top-1 Element", ""),
    "top1-chunk-exact": ({"block": "llama", **chunk("exact"), **base}, "Top-1 Chunk (Exact)", ""),
    "top1-chunk-approx": ({"block": "llama", **chunk("approx"), **base}, "Top-1 Chunk (Approx.)", ""),
}
large = {
    "gpt": {"block": "gpt", "mixer": "attention", **big},
    "transformer-pp": {**pp, **big},
    "transformer-pp-window": {**pp, "window": 256, **big},
    "mamba1": {"block": "mamba", "mixer": "mamba1", "width": 2048, "layers": 48},
    "mamba2": {"block": "mamba", "mixer": "mamba2", "width": 2048, "layers": 48, "heads": 64, "state": 128},
    "top1-element": {"block": "llama", "mixer": "top1_element", **big},
    "top1-chunk-exact": {"block": "llama", **chunk("exact"), **big},
    "top1-chunk-approx": {"block": "llama", **chunk("approx"), **big},
}
far = {"rotary_base": 1e6}
long = {
    "rwkv-attention": ({**rwkv, **base, **far}, "Transformer++ in the RWKV-7 block", NOTES["rwkv-host"]),
    "rwkv-window": ({**rwkv, "window": 256, **base, **far}, "Transformer++ (W=256) in the RWKV-7 block", NOTES["rwkv-host"]),
    "rwkv-top1-chunk-exact": ({"block": "rwkv", **chunk("exact"), **base, **far}, "Top-1 Chunk (Exact) in the RWKV-7 block", NOTES["rwkv-host"]),
    "rwkv-top1-chunk-approx": ({"block": "rwkv", **chunk("approx"), **base, **far}, "Top-1 Chunk (Approx.) in the RWKV-7 block",
                               NOTES["rwkv-host"]),
    "mamba2": (small["mamba2"][0], "Mamba-2", ""),
    "rwkv7": (small["rwkv7"][0], "RWKV-7", ""),
}

# ---- arXiv:2506.11305
FINEWEB = {"corpus": "fineweb", "train": ["fineweb"], "ood": [], "tokenizer": "bpe:50304"}
TOKENS = 100e9


PIECES = {"small": 64, "medium": 128, "large": 512}  # of a batch, for the memory of one GPU


def adamw(size, batch_tokens, rate, warmup):
    steps = round(TOKENS / batch_tokens)
    return {"steps": steps, "batch_tokens": batch_tokens, "gradient_accumulation": PIECES[size], "learning_rate": rate,
            "warmup_steps": round(warmup * steps), "schedule": "cosine", "min_lr_ratio": 0.1, "weight_decay": 0.1, "max_grad_norm": 1.0,
            "epsilon": 1e-12, "seed": 11, **OBSERVED}


FINEWEB_NOTE = ("Corpus: FineWeb's sample-100BT, its Parquet files (or JSON lines made of them, in a Saccade without Arrow) in a folder named "
                "fineweb: saccade corpus import fineweb fineweb. Another corpus that was imported: data.corpus and data.train. Tokenizer: the "
                "paper has p50k_base, padded to 50 304; with its rank file set data.tokenizer=p50k_base.tiktoken and "
                "data.vocabulary_multiple=128, else one of as many pieces is trained here. Differs: validation and test documents are held "
                "back, so slightly fewer are trained on; step n has the rate of the end of the step, the released code that of its beginning.")
baselines = {
    "transformer-pp": ("Transformer++", 0.1,
                       lambda d, l, h: {**pp, "width": d, "layers": l, "heads": h, "mlp_width": 4 * d, "activation": "silu"},
                       {"small": (768, 12, 12, 3e-3), "medium": (1024, 26, 16, 1.5e-3), "large": (1664, 32, 16, 1.25e-3)},
                       " Initial values are GPT-2's with the mixer's and the MLP's output scaled by depth; the released code scales the "
                       "attention's alone, which no setting here does."),
    "mamba1": ("Mamba", 0.1, lambda d, l, h: {"block": "mamba", "mixer": "mamba1", "width": d, "layers": l},
               {"small": (768, 28, 0, 3e-3), "medium": (1280, 42, 0, 1.5e-3), "large": (2048, 52, 0, 1e-3)}, ""),
    "rwkv7": ("RWKV-7", 0, lambda d, l, h: {"block": "rwkv", "mixer": "rwkv7", "width": d, "layers": l, "heads": h},
              {"small": (768, 12, 12, 6e-4), "medium": (1024, 30, 16, 4e-4), "large": (2048, 24, 32, 4e-4)},
              " RWKV-LM's penalty on large logits is off, since the paper names none."),
}
AVEY_NOTE = (" The ranker looks ahead inside a split, as published (architecture.ranker_query=causal does not); weights refer to the best chosen "
             "score, as the text says (released code: weight_reference=first). Of the study that puts self-attention \"in place of the neural "
             "processor\" (appendix K) architecture.processor=attention reads the contextualizer alone.")


def preset(name, description, architecture, data, length, training):
    return {"name": name, "description": description, "architecture": architecture, "data": {**data, "sequence_length": length},
            "training": training}


def all_presets():
    for name, (architecture, title, note) in small.items():
        yield preset(f"{name}-paper-small", f"{title}, small, arXiv:2505.18522, appendix A: limited domains, 100 G tokens. {SHARED}{note}",
                     architecture, SLIMPAJAMA, 2048, {**SMALL, **ADAM, **OBSERVED})
    for name, architecture in large.items():
        yield preset(f"{name}-paper-large", f"{small[name][1]}, large, arXiv:2505.18522, appendix A: limited domains, 100 G tokens. {SHARED}",
                     architecture, SLIMPAJAMA, 2048, {**LARGE, **ADAM, **OBSERVED})
    for name, (architecture, title, note) in long.items():
        yield preset(f"{name}-paper-long", f"{title}, 100k tokens, arXiv:2505.18522, section 5.3 and appendix A: 100 G tokens. "
                     f"{SHARED}{LONG_ALSO}{note}", architecture, SLIMPAJAMA, 102400, {**LONG, **ADAM, **OBSERVED, "evaluation_tokens": 819200})
    for name, (title, warmup, make, sizes, note) in baselines.items():
        for size, (width, layers, heads, rate) in sizes.items():
            batch = (2 if name == "rwkv7" else 1) * (2**20 if size == "large" else 2**19)
            yield preset(f"{name}-fineweb-paper-{size}", f"{title}, {size}, arXiv:2506.11305, appendix A: 100 G tokens. {FINEWEB_NOTE}{note}",
                         make(width, layers, heads), FINEWEB, 2048, adamw(size, batch, rate, warmup))
    for size, width, layers in (("small", 768, 26), ("medium", 768, 104), ("large", 2048, 48)):
        yield preset(f"avey-paper-{size}", f"Avey, {size}, arXiv:2506.11305, appendix A: 100 G tokens. {FINEWEB_NOTE}{AVEY_NOTE}",
                     {"block": "avey", "width": width, "layers": layers, "split": 64, "top_k": 7}, FINEWEB, 512,
                     adamw(size, 2**20 if size == "large" else 2**19, 1e-3, 0))


def text_of(p):
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in p.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    wanted = {f"{p['name']}.json": text_of(p) for p in all_presets()}
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*-paper-*.json")}
    if sys.argv[1:] == ["--check"]:
        off = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
        print("differ from resources/paper_presets.py: " + ", ".join(off) if off else f"{len(wanted)} presets are as written")
        return 1 if off else 0
    for name in there.keys() - wanted.keys():
        (folder / name).unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


sys.exit(main())
