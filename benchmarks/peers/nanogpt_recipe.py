#!/usr/bin/env python3
"""nanoGPT's recipe for a CPU, in eager f32 PyTorch, on any text, one token a character.

    nanogpt_recipe.py TEXT [--steps 2000] [--seed 1337]

4 layers, 4 heads, 128 channels, context 64, batch 12; AdamW 0.9/0.99, decay 0.1 on matrices,
learning rate 1e-3 by cosine to 1e-4 after 100 steps of warm-up, clipping at 1, no dropout. The
last tenth of the text validates. Every 250 steps, 20 batches of each part are evaluated. The model
has our biases (nanoGPT leaves them out by default). Wall time counts from the process's start to
the last estimate; a loss over all of the validation text follows, untimed.
"""
import argparse
import json
import math
import os
import time

import numpy as np
import psutil
import torch

from gpt2 import Gpt2

CONTEXT, BATCH = 64, 12
PEAK_LR, LEAST_LR, WARMUP = 1e-3, 1e-4, 100
EVAL_EVERY, EVAL_BATCHES = 250, 20


def learning_rate(step, steps):
    if step < WARMUP:
        return PEAK_LR * (step + 1) / (WARMUP + 1)
    done = (step - WARMUP) / (steps - WARMUP)
    return LEAST_LR + 0.5 * (1 + math.cos(math.pi * done)) * (PEAK_LR - LEAST_LR)


def encode(path):
    """(ids, number of distinct characters)"""
    with open(path, encoding="utf-8") as f:
        points = np.frombuffer(f.read().encode("utf-32-le"), dtype=np.uint32)
    characters, ids = np.unique(points, return_inverse=True)
    return ids.astype(np.int64), len(characters)


def batch_of(ids):
    starts = torch.randint(len(ids) - CONTEXT, (BATCH,)).tolist()
    tokens = torch.from_numpy(np.stack([ids[s:s + CONTEXT] for s in starts]))
    targets = torch.from_numpy(np.stack([ids[s + 1:s + 1 + CONTEXT] for s in starts]))
    return tokens, targets


@torch.no_grad()
def mean_loss(model, ids):
    return sum(model(*batch_of(ids)).item() for _ in range(EVAL_BATCHES)) / EVAL_BATCHES


@torch.no_grad()
def whole_loss(model, ids):
    """Over every window of the part, once; the estimates above waver by about 0.02."""
    windows = (len(ids) - 1) // CONTEXT
    tokens = torch.from_numpy(ids[:windows * CONTEXT]).view(windows, CONTEXT)
    targets = torch.from_numpy(ids[1:windows * CONTEXT + 1]).view(windows, CONTEXT)
    total = sum(model(*rows, reduction="sum").item()
                for rows in zip(tokens.split(96), targets.split(96)))
    return total / (windows * CONTEXT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    ids, vocab = encode(args.text)
    cut = int(0.9 * len(ids))
    parts = {"train": ids[:cut], "val": ids[cut:]}
    model = Gpt2(layers=4, heads=4, channels=128, vocab=vocab, context=CONTEXT)
    model.init_weights(args.seed, scale_residual=True)
    optimizer = torch.optim.AdamW(model.param_groups(0.1), lr=PEAK_LR, betas=(0.9, 0.99))

    train_s, losses = 0.0, {}
    for step in range(args.steps + 1):
        if step % EVAL_EVERY == 0 or step == args.steps:
            losses = {name: mean_loss(model, part) for name, part in parts.items()}
            print(json.dumps({"step": step, "train_loss": round(losses["train"], 5),
                              "val_loss": round(losses["val"], 5)}), flush=True)
        if step == args.steps:
            break
        start = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.steps)
        optimizer.zero_grad(set_to_none=True)
        loss = model(*batch_of(parts["train"]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        train_s += time.perf_counter() - start
    wall_s = time.time() - psutil.Process().create_time()
    print(json.dumps({
        "peer": f"torch {torch.__version__}", "recipe": "nanogpt_cpu", "steps": args.steps,
        "seed": args.seed, "characters": len(ids), "vocab": vocab, "threads": args.threads,
        "val_loss": round(losses["val"], 5), "train_loss": round(losses["train"], 5),
        "ms_per_step": round(train_s / args.steps * 1e3, 3),
        "wall_s": round(wall_s, 2), "val_loss_whole": round(whole_loss(model, parts["val"]), 5),
    }))


if __name__ == "__main__":
    main()
