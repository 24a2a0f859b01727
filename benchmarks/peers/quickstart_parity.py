#!/usr/bin/env python3
"""Trains an exported run again in PyTorch f32 and compares its loss at every step.

    quickstart_parity.py FOLDER [--metrics metrics.jsonl] [--tolerance 1e-3]

FOLDER holds `init.safetensors` (f32 weights under our names), `batches.safetensors` (`tokens` i32
[steps, micro-batches, B, T + 1]) and `config.json`: layers, heads, d_model, vocab, context, lr,
betas, eps, weight_decay, warmup, schedule ("constant", "linear", "cosine"), min_lr, steps,
clip_norm. Writes FOLDER/torch_losses.jsonl; exits 1 if a loss differs by more than the tolerance.
"""
import argparse
import json
import math
import pathlib
import sys

import torch
from safetensors.torch import load_file

from gpt2 import Gpt2


def learning_rate(step, c):
    """Of step 0, 1, …: step `warmup` is the first at the peak; from there it falls to min_lr."""
    warmup, peak, least = c.get("warmup", 0), c["lr"], c.get("min_lr", 0.0)
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    done = min(1.0, (step - warmup) / max(1, c["steps"] - warmup))
    schedule = c.get("schedule", "constant")
    if schedule == "cosine":
        return least + 0.5 * (1 + math.cos(math.pi * done)) * (peak - least)
    if schedule == "linear":
        return peak + (least - peak) * done
    assert schedule == "constant", schedule
    return peak


def train(folder, c):
    """Yields {step, loss, grad_norm, lr} for every exported batch."""
    model = Gpt2(layers=c["layers"], heads=c["heads"], channels=c["d_model"], vocab=c["vocab"],
                 context=c["context"])
    model.load_state_dict(load_file(folder / "init.safetensors"))
    optimizer = torch.optim.AdamW(model.param_groups(c["weight_decay"]), lr=c["lr"],
                                  betas=tuple(c["betas"]), eps=c["eps"])
    for step, micro_batches in enumerate(load_file(folder / "batches.safetensors")["tokens"]):
        lr = learning_rate(step, c)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.zero_grad(set_to_none=True)
        count = micro_batches[..., 1:].numel()
        loss_sum = 0.0
        for rows in micro_batches.long():
            loss = model(rows[:, :-1], rows[:, 1:], reduction="sum")
            (loss / count).backward()
            loss_sum += loss.item()
        limit = c.get("clip_norm") or math.inf
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit).item()
        optimizer.step()
        yield {"step": step + 1, "loss": loss_sum / count, "grad_norm": norm, "lr": lr}


def relative(ours, theirs):
    return abs(ours - theirs) / max(abs(theirs), 1e-30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--metrics", type=pathlib.Path, help="default: FOLDER/metrics.jsonl")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    args = parser.parse_args()
    config = json.loads((args.folder / "config.json").read_text())
    metrics = args.metrics or args.folder / "metrics.jsonl"
    ours = [row for row in map(json.loads, metrics.read_text().splitlines()) if "loss" in row]

    worst = {"loss": 0.0, "grad_norm": 0.0, "lr": 0.0}
    steps = 0
    with open(args.folder / "torch_losses.jsonl", "w", encoding="utf-8") as out:
        for theirs in train(args.folder, config):
            out.write(json.dumps(theirs) + "\n")
            if steps == len(ours):
                sys.exit(f"{metrics} ends after {steps} steps, there are more batches")
            for key in worst:
                if key in ours[steps]:
                    difference = relative(ours[steps][key], theirs[key])
                    # NaN is a difference, too
                    worst[key] = max(worst[key], difference if difference >= 0 else math.inf)
            steps += 1
    print(json.dumps({"steps": steps, **{f"max_rel_{k}": v for k, v in worst.items()}}))
    sys.exit(0 if steps and worst["loss"] <= args.tolerance else 1)


if __name__ == "__main__":
    main()
