#!/usr/bin/env python3
"""Scores the same files in PyTorch and with `saccade evaluate --task`: equal picks on every item, log-likelihoods within 1e-3.

Two small Transformer++ are trained by the program, one for a single step (as good as random) and one for 150, with bytes and with a
SentencePiece tokenizer. Their weights are read from the checkpoint into a model written here from its equations (arXiv:2302.13971), in
float32, and made-up files of the tasks' public forms are scored with the rules that EleutherAI's evaluation harness publishes: context and
continuation encoded as one text, white space at the context's end moved to the continuation (`_encode_pair`), the last tokens kept where
they are too many, log-softmax in float32 (`_loglikelihood_tokens`), acc and acc_norm by characters of the choice (`process_results`).

  harness_agreement.py SACCADE     needs torch, numpy, h5py and sentencepiece from PyPI; without one it says so and exits 77
"""
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
    import sentencepiece
    import torch
    import torch.nn.functional as F
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch numpy h5py sentencepiece")
    sys.exit(77)

TOLERANCE = 1e-3
WORDS = ("the a river stone walks over under light and dark houses near water old café naïve tree sings to her his dog cat runs fast slow "
         "because it is green blue cold warm winter summer people speak of long roads élan small birds fly above fields while rain falls").split()


def sentence(draw, words):
    return " ".join(draw.choice(WORDS) for _ in range(words))


def rows(task, count):
    """Made-up rows as the public data sets have them."""
    draw = random.Random(task)
    for number in range(count):
        text = lambda least, most: sentence(draw, draw.randint(least, most))
        if task == "hellaswag":
            yield {"activity_label": "Walking [header]", "ctx_a": text(5, 40), "ctx_b": draw.choice(["", "then she", "he [substeps] also"]),
                   "endings": [text(2, 18) + draw.choice(["", " [title] " + text(1, 3)]) + "." for _ in range(4)], "label": str(number % 4)}
        elif task == "arc-easy":
            labels = ["A", "B", "C", "D"] if number % 2 else ["1", "2", "3"]
            yield {"question": text(4, 30) + "?", "choices": {"text": [text(1, 6) for _ in labels], "label": labels},
                   "answerKey": draw.choice(labels)}
        elif task == "piqa":
            yield {"goal": text(3, 20), "sol1": text(3, 25), "sol2": text(3, 25), "label": number % 2}
        elif task == "sciq":
            yield {"question": text(4, 12) + "?", "support": "  " + text(10, 60) if number % 3 else "", "correct_answer": text(1, 3),
                   **{f"distractor{i}": text(1, 3) for i in (1, 2, 3)}}
        elif task == "boolq":
            yield {"passage": text(20, 60), "question": text(4, 9), "label": number % 2}
        elif task == "openbookqa":
            yield {"question_stem": text(3, 20) + draw.choice(["", " "]), "choices": {"text": [text(1, 5) for _ in "ABCD"], "label": list("ABCD")},
                   "answerKey": "ABCD"[number % 4]}


def hellaswag_text(text):
    """The harness's preprocess of HellaSwag."""
    text = text.strip().replace(" [title]", ". ")
    return re.sub("\\[.*?\\]", "", text).replace("  ", " ")


def prompts(task, row):
    """Context, choices, number of the right one; what is scored is a space and the choice."""
    if task == "hellaswag":
        context = row["activity_label"] + ": " + row["ctx_a"] + " " + row["ctx_b"].capitalize()
        return hellaswag_text(context), [hellaswag_text(e) for e in row["endings"]], int(row["label"])
    if task == "arc-easy":
        return f"Question: {row['question']}\nAnswer:", row["choices"]["text"], row["choices"]["label"].index(row["answerKey"])
    if task == "piqa":
        return f"Question: {row['goal']}\nAnswer:", [row["sol1"], row["sol2"]], row["label"]
    if task == "sciq":
        choices = [row["distractor1"], row["distractor2"], row["distractor3"], row["correct_answer"]]
        return f"{row['support'].lstrip()}\nQuestion: {row['question']}\nAnswer:", choices, 3
    if task == "boolq":
        return f"{row['passage']}\nQuestion: {row['question']}?\nAnswer:", ["no", "yes"], row["label"]
    return row["question_stem"], row["choices"]["text"], "ABCD".index(row["answerKey"])


def encode_pair(encode, context, continuation):
    """The harness's _encode_pair."""
    spaces = len(context) - len(context.rstrip())
    if spaces > 0:
        continuation = context[-spaces:] + continuation
        context = context[:-spaces]
    whole, head = encode(context + continuation), encode(context)
    return head, whole[len(head):]


class TransformerPP:
    """x += W_o attention(rms(x)); x += W_down(gelu(W_gate u) * W_up u), u = rms(x); rotary positions, logits by the embedding."""

    def __init__(self, config, weights):
        self.layers, self.heads = config["layers"], config["heads"]
        self.base, self.epsilon = config["rotary_base"], config["norm_epsilon"]
        assert config["block"] == "llama" and config["mixer"] == "attention" and config["position"] == "rotary"
        assert config["activation"] == "gelu" and config["tied"] and config["qk_norm"] == "none" and config["temperature"] == 1
        self.weights = weights

    def norm(self, x, name):
        return F.rms_norm(x, x.shape[-1:], self.weights[name], self.epsilon)

    def rotate(self, x):
        half, length = x.shape[-1] // 2, x.shape[1]
        angles = torch.outer(torch.arange(length, dtype=torch.float64), self.base ** -(torch.arange(half, dtype=torch.float64) / half))
        cos, sin = angles.cos().float(), angles.sin().float()
        low, high = x[..., :half], x[..., half:]
        return torch.cat((low * cos - high * sin, low * sin + high * cos), -1)

    def logits(self, tokens):
        x = self.weights["embedding"][tokens]
        for layer in range(self.layers):
            w = lambda name: self.weights[f"layer{layer}.{name}"]
            u = self.norm(x, f"layer{layer}.attention_norm")
            q, k, v = ((u @ w(name).T).view(len(tokens), self.heads, -1).transpose(0, 1) for name in ("query", "key", "value"))
            o = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
            x = x + o.transpose(0, 1).reshape(len(tokens), -1) @ w("output").T
            u = self.norm(x, f"layer{layer}.mlp_norm")
            x = x + (F.gelu(u @ w("gate").T) * (u @ w("up").T)) @ w("down").T
        return self.norm(x, "final_norm") @ self.weights["embedding"].T


def log_likelihood(model, head, tail, longest):
    """The harness's _loglikelihood_tokens for one request."""
    tokens = (head + tail)[-(longest + 1):] if longest else head + tail
    asked = tail[-longest:] if longest else tail
    with torch.no_grad():
        scores = F.log_softmax(model.logits(torch.tensor(tokens[:-1])), -1)[-len(asked):]
    return sum(float(scores[i, token]) for i, token in enumerate(asked))


def read_model(run):
    checkpoint = sorted(run.glob("checkpoints/step-*.h5"))[-1]
    with h5py.File(checkpoint) as file:
        config = json.loads(file["config"][0])
        weights = {name: torch.tensor(np.array(data)) for name, data in file["weights"].items()}
        tokenizer = bytes(np.array(file["tokenizer_model"]))
    if tokenizer:
        processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
        encode = lambda text: processor.encode(text)
    else:
        encode = lambda text: list(text.encode())
    return TransformerPP(config["architecture"], weights), encode


def compare(name, run, task, folder, longest, say):
    options = ["--max-length", str(longest)] if longest else []
    shown = json.loads(say("--json", "evaluate", str(run), "--task", task, "--data", str(folder), "--again", *options))["results"][0]
    model, encode = read_model(run)
    picks, off, right = 0, 0.0, [0, 0]
    with open(folder / f"{task}.jsonl", encoding="utf-8") as file:
        data = [json.loads(line) for line in file]
    assert len(data) == len(shown["items"]), f"{len(shown['items'])} items of {len(data)}"
    for row, item in zip(data, shown["items"]):
        context, choices, gold = prompts(task, row)
        found = [log_likelihood(model, *encode_pair(encode, context, " " + choice), longest) for choice in choices]
        off = max([off] + [abs(a - b) if math.isfinite(b) else math.inf for a, b in zip(found, item["log_likelihoods"])])
        acc = int(np.argmax(found))
        norm = int(np.argmax(np.array(found) / np.array([float(len(choice)) for choice in choices])))
        picks += (acc, norm, gold) != (item["chosen"], item["chosen_norm"], item["gold"])
        right[0] += acc == gold
        right[1] += norm == gold
    values = {score["metric"]: score["value"] for score in shown["scores"]}
    good = picks == 0 and off <= TOLERANCE and all(abs(values[m] - r / len(data)) < 1e-9 for m, r in zip(("acc", "acc_norm"), right))
    print(f"{'ok  ' if good else 'FAIL'} {name} {task}{f' of {longest} tokens' if longest else ''}: {len(data)} items, {picks} picks differ, "
          f"log-likelihoods differ by {off:.2g} at most, acc {values['acc']:.3f}, acc_norm {values['acc_norm']:.3f}", flush=True)
    return good


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        environment = dict(os.environ, SACCADE_DATA=str(folder / "data"), SACCADE_CACHE=str(folder / "cache"))

        def say(*words):
            done = subprocess.run([program, "-q", *words], env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"saccade {' '.join(words)} exits with {done.returncode}: {done.stderr[-2000:]}")
            return done.stdout

        text = folder / "text"
        text.mkdir()
        draw = random.Random(5)
        for number in range(60):
            (text / f"{number}.txt").write_text("".join(sentence(draw, draw.randint(5, 20)) + ".\n" for _ in range(60)), encoding="utf-8")
        say("corpus", "import", "words", str(text))
        domain = next(iter(next(c for c in json.loads(say("--json", "corpus", "list")) if c["name"] == "words")["domains"]))
        tasks = ("hellaswag", "arc-easy", "piqa", "sciq", "boolq", "openbookqa")
        for task in tasks:
            with open(folder / f"{task}.jsonl", "w", encoding="utf-8") as file:
                for row in rows(task, 40):
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
        good = True
        for tokenizer in ("bytes", "unigram:300"):
            for steps in (1, 150):
                config = folder / "config.json"
                config.write_text(json.dumps({
                    "architecture": {"block": "llama", "mixer": "attention", "width": 64, "layers": 2, "heads": 4},
                    "data": {"corpus": "words", "train": [domain], "tokenizer": tokenizer, "sequence_length": 128},
                    "training": {"steps": steps, "batch_tokens": 1024, "learning_rate": 0.003, "warmup_steps": 1}, "device": "cpu"}))
                run = folder / f"run-{tokenizer.replace(':', '-')}-{steps}"
                say("train", str(config), "--out", str(run))
                name = f"{tokenizer}, {steps} steps,"
                for task in tasks:
                    good &= compare(name, run, task, folder, 0, say)
                good &= compare(name, run, "sciq", folder, 48, say)
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
