#!/usr/bin/env python3
"""Peer: training steps of tpp_step.py's Transformer++ on several GPUs with PyTorch's DistributedDataParallel.

A step is so many micro-batches of the preset's size, shared out among the GPUs; gradients are reduced behind each rank's last one
(no_sync before). torch.compile, bf16 autocast, fused AdamW, clipping. Prints the median of three blocks as a line of JSON.

  tpp_ddp.py --gpus N [--preset 110m] [--micro-batches 8] [--steps 6]
"""
import argparse
import json
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

from tpp_step import PRESETS, TransformerPP


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def rank_main(rank, a, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_float32_matmul_precision("high")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=a.gpus, device_id=torch.device("cuda", rank))
    V, d, L, H, mlp, T, B = PRESETS[a.preset]
    torch.manual_seed(0)
    model = TransformerPP(V, d, L, H, mlp, T).cuda()
    parameters = sum(p.numel() for p in model.parameters())
    ddp = nn.parallel.DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True)
    step_of = torch.compile(ddp)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    x, y = (torch.randint(0, V, (B, T), device="cuda") for _ in range(2))
    each = a.micro_batches // a.gpus

    def micro_batch():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step_of(x, y) / a.micro_batches * a.gpus
        loss.backward()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with ddp.no_sync():
            for _ in range(each - 1):
                micro_batch()
        micro_batch()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for _ in range(3):
        step()
    blocks = []
    for _ in range(3):
        torch.cuda.synchronize()
        dist.barrier()
        began = time.perf_counter()
        for _ in range(a.steps):
            step()
        torch.cuda.synchronize()
        dist.barrier()
        blocks.append((time.perf_counter() - began) / a.steps)
    if rank == 0:
        seconds = sorted(blocks)[1]
        print(json.dumps({"peer": "pytorch " + torch.__version__ + " DDP", "preset": a.preset, "gpus": a.gpus, "parameters": parameters,
                          "batch_tokens": a.micro_batches * B * T, "ms": seconds * 1e3, "tokens_per_s": a.micro_batches * B * T / seconds,
                          "peak_gib": torch.cuda.max_memory_allocated() / 2**30}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gpus", type=int, default=torch.cuda.device_count())
    p.add_argument("--preset", default="110m", choices=PRESETS)
    p.add_argument("--micro-batches", type=int, default=8)
    p.add_argument("--steps", type=int, default=6)
    a = p.parse_args()
    if a.gpus < 1 or a.micro_batches % a.gpus:
        p.error("--micro-batches must be a multiple of --gpus")
    mp.spawn(rank_main, args=(a, free_port()), nprocs=a.gpus)
