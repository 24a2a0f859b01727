#!/usr/bin/env python3
"""AdamW alone in PyTorch: nanoseconds a parameter, over the tensors of GPT-2 blocks.

    adamw.py [--kinds fused,foreach,for] [--params 30e6] [--threads 2] [--steps 20]
"""
import argparse
import json
import os
import statistics
import time


def block_shapes(channels):
    for rows, columns in [(3 * channels, channels), (channels, channels),
                          (4 * channels, channels), (channels, 4 * channels)]:
        yield (rows, columns)
        yield (rows,)
    for _ in range(4):  # two LayerNorms
        yield (channels,)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kinds", default="fused,foreach,for")
    parser.add_argument("--params", type=float, default=30e6, help="at least")
    parser.add_argument("--channels", type=int, default=384)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    torch.set_num_threads(args.threads)

    for kind in args.kinds.split(","):
        torch.manual_seed(0)
        params, count = [], 0
        while count < args.params:
            for shape in block_shapes(args.channels):
                params.append(torch.nn.Parameter(torch.randn(shape)))
                params[-1].grad = torch.randn(shape)
                count += params[-1].numel()
        optimizer = torch.optim.AdamW(params, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                      fused=kind == "fused", foreach=kind == "foreach")
        times = []
        for step in range(3 + args.steps):
            start = time.perf_counter()
            optimizer.step()
            if step >= 3:
                times.append(time.perf_counter() - start)
        median = statistics.median(times)
        print(json.dumps({
            "peer": f"torch {torch.__version__}", "kind": kind, "params": count,
            "threads": args.threads,
            "ns_per_param": {"median": round(median / count * 1e9, 4),
                             "min": round(min(times) / count * 1e9, 4),
                             "max": round(max(times) / count * 1e9, 4)},
            # reads p, g, m, v; writes p, m, v
            "gb_per_s": round(28 * count / median / 1e9, 1),
        }), flush=True)


if __name__ == "__main__":
    main()
