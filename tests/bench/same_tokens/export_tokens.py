#!/usr/bin/env python3
"""The tokens that a run trains and is evaluated on, in its own order, as one .npz for an independent trainer (train_same.py).

  export_tokens.py RUN TOKEN_STORE_FOLDER OUT.npz

RUN is a run of the wanted config; TOKEN_STORE_FOLDER is its folder below the cache's tokens/. Needs numpy only;
the shuffling (Philox, FNV-1a, Feistel) and the layout of the store are written here from their description in the headers.
Keys: train (tokens), order (sequence numbers, batch after batch), T, batch, warmup, eval_DOMAIN [sequences, T + 1] (the frozen evaluation batches)."""
import argparse, json, struct
import numpy as np

M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def fnv1a(text):
    h = 14695981039346656037
    for c in text.encode():
        h = ((h ^ c) * 1099511628211) & M64
    return h


def bits(seed, stream, i):
    x, k = [i & M32, i >> 32, stream & M32, stream >> 32], [seed & M32, seed >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(p1 >> 32) ^ x[1] ^ k[0], p1 & M32, (p0 >> 32) ^ x[3] ^ k[1], p0 & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return (x[1] << 32) | x[0]


def permute(n, seed, position, stream=fnv1a("data order")):
    epoch, index = divmod(position, n)
    half = (max(n - 1, 1).bit_length() + 1) // 2
    mask = (1 << half) - 1
    while True:
        left, right = index >> half, index & mask
        for round_ in range(6):
            left, right = right, left ^ (bits(seed, stream, ((right ^ (round_ << 32)) + (epoch << 35)) & M64) & mask)
        index = (left << half) | right
        if index < n:
            return index


def store(path):
    raw = open(path, "rb").read()
    magic, header, width, tokens = struct.unpack("<8sIIq", raw[:24])
    assert magic in (b"sactok01", b"sactok02"), f"{path} is no token store of this form"
    return np.frombuffer(raw, "<u2" if width == 2 else "<u4", tokens, header)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("run"), p.add_argument("stores"), p.add_argument("out")
    a = p.parse_args()
    config = json.load(open(a.run + "/run.json"))["config"]
    data, training = config["data"], config["training"]
    T, (domain,) = data["sequence_length"], data["train"]  # one training domain
    batch = training["batch_tokens"] // T
    train = store(f"{a.stores}/{domain}.train.tokens")
    n = (len(train) - 1) // T
    out = {"train": train, "order": np.array([permute(n, training["seed"], i) for i in range(training["steps"] * batch)], np.int32),
           "T": T, "batch": batch, "warmup": training["warmup_steps"]}
    for name in [domain] + data["ood"]:
        tokens = store(f"{a.stores}/{name}.validation.tokens")
        count = (len(tokens) - 1) // T
        rows = [permute(count, 20251, i) for i in range(min(-(-training["evaluation_tokens"] // T), count))]
        out["eval_" + name] = np.stack([tokens[r * T: r * T + T + 1] for r in rows])
    np.savez_compressed(a.out, **out)
    print(f"{len(train)} tokens, {n} sequences; evaluation:", {k: v.shape for k, v in out.items() if k.startswith("eval_")})


if __name__ == "__main__":
    main()
