#!/usr/bin/env python3
"""benchmarks/sharding_ratios.py CASE…: what sharding costs over whole steps, in ratios.

    mpi      2 processes ÷ 2 thread ranks, fsdp: tokens/s
    growth   fsdp on 2 thread ranks ÷ one process with 2 threads, at 2, 6 and 12 layers: step time
    eight    8 fsdp thread ranks, micro-batch 8 each ÷ 8 accumulated micro-batches on one rank with
             2 threads: step time
    engines  ddp, then fsdp, on 2 thread ranks ÷ one process with 2 threads: step time
    peers    fsdp on 2 thread ranks ÷ PyTorch's DDP and FSDP2 and DeepSpeed's ZeRO-3 on 2 processes:
             tokens/s in --dtype (benchmarks/peers/README.md says what --python needs)

W1 in f32 (benchmarks/peers/README.md), of which `growth` changes the layers. Each run is a process
of its own; runs of a case take turns for --rounds rounds, and the ratio is that of the medians of
all steps but each run's first two.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

CONFIG = """
[model]
layers = 6
heads = 6
d_model = 384
vocab = 8192
context = 256

[data]
dataset = "kjv"
tokenizer = "byte"

[train]
eval_every = 0
clip_norm = 0.0

[log]
sample = 0
"""

ONE = ["--ranks", "1", "--threads-per-rank", "2", "--set", "train.micro_batch=8"]
FSDP = ["--ranks", "2", "--threads-per-rank", "1", "--set", "train.micro_batch=4", "--strategy"]


PEERS = os.path.join(ROOT, "benchmarks", "peers", "sharded_step.py")


def step_ms(folder, arguments, options):
    """Of a run's steps but the first two. `arguments`: ours, or a peer's, which begin with its script."""
    if arguments[0] == PEERS:
        out = subprocess.run([options.python, *arguments, f"--steps={options.steps}"], check=True,
                             capture_output=True, text=True,
                             env=dict(os.environ, **({"LD_PRELOAD": options.preload} if options.preload else {})))
        return json.loads(out.stdout[out.stdout.rindex("\n{") + 1 if "\n{" in out.stdout else 0:])["step_ms"]
    config = os.path.join(folder, "w1.toml")
    with open(config, "w") as f:
        f.write(CONFIG)
    out = tempfile.mkdtemp(dir=folder)
    subprocess.run([options.sherd, "train", config, "--out", os.path.join(out, "run"), "--quiet",
                    "--set", f"run.steps={options.steps + 2}", *arguments], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "run", "metrics.jsonl")) as f:
        return [json.loads(line)["step_ms"] for line in f][2:]


def medians(runs, options):
    """{name: median ms} of `runs` {name: arguments}, taken in turns."""
    times = {name: [] for name in runs}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for name, arguments in runs.items():
                times[name] += step_ms(folder, arguments, options)
    for name, list_ms in times.items():
        print(f"  {name:28} {statistics.median(list_ms):9.1f} ms a step"
              f" ({min(list_ms):.1f} to {max(list_ms):.1f}, {len(list_ms)} steps)", flush=True)
    return {name: statistics.median(list_ms) for name, list_ms in times.items()}


def mpi(options):
    ms = medians({"2 threads": [*FSDP, "fsdp"], "2 processes": [*FSDP, "fsdp", "--engine", "mpi"]}, options)
    print(f"mpi: tokens/s of 2 processes / 2 thread ranks = {ms['2 threads'] / ms['2 processes']:.3f}")


def growth(options):
    for layers in (2, 6, 12):
        depth = ["--set", f"model.layers={layers}"]
        ms = medians({f"{layers} layers, one process": ONE + depth, f"{layers} layers, fsdp": [*FSDP, "fsdp"] + depth},
                     options)
        one, fsdp = ms.values()
        print(f"growth: {layers} layers: fsdp costs {100 * (fsdp / one - 1):.1f} % over one process")


def eight(options):
    accumulated = ["--ranks", "1", "--threads-per-rank", "2", "--set", "train.micro_batch=8",
                   "--set", "train.accumulate=8"]
    ranks = ["--ranks", "8", "--threads-per-rank", "1", "--set", "train.micro_batch=8", "--strategy", "fsdp"]
    ms = medians({"1 rank, 8 micro-batches": accumulated, "8 fsdp ranks": ranks}, options)
    one, many = ms.values()
    print(f"eight: 8 ranks / 8 accumulated micro-batches = {many / one:.3f}")


def engines(options):
    ms = medians({"one process": ONE, "ddp": [*FSDP, "ddp"], "fsdp": [*FSDP, "fsdp"]}, options)
    one, ddp, fsdp = ms.values()
    print(f"engines: ddp / one process = {ddp / one:.3f}; fsdp / ddp = {fsdp / ddp:.3f}")


def peers(options):
    names = {"FSDP2": "fsdp2", "DDP of PyTorch": "ddp", "DeepSpeed ZeRO-3": "zero3"}
    ours = [*FSDP, "fsdp", "--set", f'precision.compute="{options.dtype}"']
    ms = medians({"fsdp": ours} | {name: [PEERS, "--strategy", strategy, "--dtype", options.dtype]
                                   for name, strategy in names.items()}, options)
    for name in names:
        print(f"peers: {options.dtype}: tokens/s of fsdp / {name} = {ms[name] / ms['fsdp']:.3f}")


def main():
    cases = {"mpi": mpi, "growth": growth, "eight": eight, "engines": engines, "peers": peers}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", choices=cases)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5, help="timed steps of a run")
    parser.add_argument("--sherd", default=os.path.join(ROOT, "sherd"), help="the program")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"], help="of peers")
    parser.add_argument("--python", default="python3", help="that runs the peers")
    parser.add_argument("--preload", help="a library for the peers alone (what MKL takes for the processor)")
    options = parser.parse_args()
    for case in options.cases:
        cases[case](options)


if __name__ == "__main__":
    main()
