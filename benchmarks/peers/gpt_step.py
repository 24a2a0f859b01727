#!/usr/bin/env python3
"""One training step of GPT-2 in PyTorch on the CPU: eager and compiled, f32 and bf16, W1 W2 W3.

    gpt_step.py [--workloads W1,W2,W3] [--modes eager,compile] [--dtypes f32,bf16] [--rounds 1]

Each measurement is a process of its own (so its peak memory is its own) and prints one JSON line;
rounds are interleaved. A step is forward, backward, fused AdamW on every parameter, zero_grad and
reading the loss. bf16: f32 weights and optimizer, autocast around the forward pass.
"""
import argparse
import contextlib
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time

WORKLOADS = {
    "W1": {"layers": 6, "channels": 384, "heads": 6, "vocab": 8192, "context": 256, "batch": 8},
    "W2": {"layers": 6, "channels": 384, "heads": 6, "vocab": 50304, "context": 256, "batch": 8},
    "W3": {"layers": 12, "channels": 768, "heads": 12, "vocab": 50304, "context": 64, "batch": 4},
}
WARMUP = 3


def model_flops(w):
    """6 N T of the matrix products, and attention without deducting the causal half."""
    tokens = w["batch"] * w["context"]
    weights = 12 * w["layers"] * w["channels"] ** 2 + w["vocab"] * w["channels"]
    return 6 * weights * tokens + 12 * w["layers"] * w["channels"] * w["context"] * tokens


def lcg_tokens(seed, count, vocab):
    """A fixed stream that any language repeats easily: the high bits of a 64-bit LCG."""
    state, tokens = seed, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        tokens.append((state >> 33) % vocab)
    return tokens


def measure(workload, mode, dtype, threads, steps):
    os.environ["OMP_NUM_THREADS"] = str(threads)  # before torch reads it
    import torch

    from gpt2 import Gpt2

    torch.set_num_threads(threads)
    w = WORKLOADS[workload]
    shape = {key: w[key] for key in ("layers", "heads", "channels", "vocab", "context")}
    base_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    model = Gpt2(**shape)
    model.init_weights(seed=0)
    net = torch.compile(model) if mode == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0.1, fused=True)
    precision = (torch.autocast("cpu", dtype=torch.bfloat16) if dtype == "bf16"
                 else contextlib.nullcontext())
    times, loss = [], None
    for step in range(WARMUP + steps):
        rows = torch.tensor(lcg_tokens(step + 1, w["batch"] * (w["context"] + 1), w["vocab"]))
        rows = rows.view(w["batch"], -1)
        tokens, targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
        start = time.perf_counter()
        with precision:
            result = net(tokens, targets)
        result.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss = result.item()
        times.append((time.perf_counter() - start) * 1e3)
    first, times = times[0], times[WARMUP:]
    median = statistics.median(times)
    return {
        "peer": f"torch {torch.__version__}", "workload": workload, "mode": mode, "dtype": dtype,
        "threads": threads, "steps": steps,
        "ms": {"median": round(median, 2), "min": round(min(times), 2),
               "max": round(max(times), 2)},
        "first_ms": round(first, 1),
        "tokens_per_s": round(w["batch"] * w["context"] / median * 1e3, 1),
        "model_gflops": round(model_flops(w) / median / 1e6, 2),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "base_rss_bytes": base_rss, "loss": round(loss, 5),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workloads", default="W1,W2,W3")
    parser.add_argument("--modes", default="eager,compile")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    rows = list(itertools.product(args.workloads.split(","), args.modes.split(","),
                                  args.dtypes.split(",")))
    for _ in range(args.rounds):
        for row in rows:
            if len(rows) * args.rounds == 1:
                print(json.dumps(measure(*row, args.threads, args.steps)), flush=True)
                continue
            options = [f"--{key}={value}" for key, value in
                       zip(("workloads", "modes", "dtypes"), row)]
            subprocess.run([sys.executable, __file__, *options, f"--threads={args.threads}",
                            f"--steps={args.steps}"], check=True)


if __name__ == "__main__":
    main()
