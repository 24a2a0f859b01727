#!/usr/bin/env python3
"""One training step of W1 over 2 processes on the CPU (gloo): PyTorch's DDP and FSDP2, DeepSpeed's ZeRO.

    sharded_step.py --strategy ddp|fsdp2|fsdp2-keep|zero1|zero2|zero3 [--dtype f32|bf16]

Starts its own ranks and prints one JSON line; DeepSpeed prints lines of its own before. A step is
forward, backward with its communication, AdamW, freeing gradients and reading the loss, on 8 / ranks
sequences a rank; barriers stand around it. bf16: matrix products in bf16, weights, optimizer and
reductions in f32 (ddp: autocast; fsdp2: MixedPrecisionPolicy; zero: its bf16 mode).
"""
import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from gpt_step import WARMUP, WORKLOADS, lcg_tokens, model_flops

ADAMW = {"lr": 3e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}


def start_ranks(args):
    """This script once more for each rank; the first failure ends the others."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(args.ranks):
            env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(args.ranks),
                       LOCAL_WORLD_SIZE=str(args.ranks), LOCAL_SIZE=str(args.ranks), MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=str(20000 + os.getpid() % 20000), GLOO_SOCKET_IFNAME="lo",
                       OMP_NUM_THREADS=str(args.threads), DS_ACCELERATOR="cpu", CUDA_VISIBLE_DEVICES="",
                       SHERD_PEER_STORE=os.path.join(folder, "store"))
            ranks.append(subprocess.Popen([sys.executable, *sys.argv], env=env))
        try:
            while any(r.poll() is None for r in ranks) and not any(r.poll() for r in ranks):
                time.sleep(0.1)
        finally:
            for r in ranks:
                r.terminate()
                r.wait()
    sys.exit(max(abs(r.returncode) for r in ranks))


def pytorch_step(model, args):
    """A function of one rank's (tokens, targets): the loss of a step of `model`, sharded by PyTorch."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.nn.parallel import DistributedDataParallel

    half = args.dtype == "bf16"
    precision = contextlib.nullcontext
    if args.strategy == "ddp":
        net = DistributedDataParallel(model, gradient_as_bucket_view=True)
        if half:
            precision = lambda: torch.autocast("cpu", dtype=torch.bfloat16)
    else:
        options = {"mesh": init_device_mesh("cpu", (args.ranks,)), "reshard_after_forward": args.strategy == "fsdp2"}
        if half:
            options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for block in model.blocks:
            fully_shard(block, **options)
        net = fully_shard(model, **options)
    optimizer = torch.optim.AdamW(net.parameters(), fused=True, **ADAMW)

    def step(tokens, targets):
        with precision():
            loss = net(tokens, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return step


def deepspeed_step(model, args):
    import deepspeed
    import torch

    deepspeed.init_distributed(dist_backend="gloo", dist_init_required=False)
    batch = WORKLOADS["W1"]["batch"]
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.AdamW(model.parameters(), fused=True, **ADAMW),
        config={"train_batch_size": batch, "train_micro_batch_size_per_gpu": batch // args.ranks,
                "steps_per_print": 10**9, "zero_optimization": {"stage": int(args.strategy[-1])},
                "zero_allow_untested_optimizer": True, "bf16": {"enabled": args.dtype == "bf16"}})

    def step(tokens, targets):
        loss = engine(tokens, targets)
        engine.backward(loss)
        engine.step()
        return loss.item()

    return step


def run_rank(args):
    import torch
    import torch.distributed as dist

    from gpt2 import Gpt2

    rank = int(os.environ["RANK"])
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", init_method="file://" + os.environ["SHERD_PEER_STORE"], rank=rank,
                            world_size=args.ranks)
    w = WORKLOADS["W1"]
    model = Gpt2(**{key: w[key] for key in ("layers", "heads", "channels", "vocab", "context")})
    model.init_weights(seed=0)
    make_step = deepspeed_step if args.strategy.startswith("zero") else pytorch_step
    train = make_step(model, args)
    rows_of_rank = w["batch"] // args.ranks
    times, loss = [], None
    for step in range(WARMUP + args.steps):
        rows = torch.tensor(lcg_tokens(step + 1, w["batch"] * (w["context"] + 1), w["vocab"])).view(w["batch"], -1)
        rows = rows[rank * rows_of_rank:(rank + 1) * rows_of_rank]
        tokens, targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
        dist.barrier()
        start = time.perf_counter()
        loss = train(tokens, targets)
        dist.barrier()
        times.append((time.perf_counter() - start) * 1e3)
    times = times[WARMUP:]
    if rank == 0:
        median = statistics.median(times)
        print(json.dumps({
            "peer": f"torch {torch.__version__}", "workload": "W1", "strategy": args.strategy, "dtype": args.dtype,
            "ranks": args.ranks, "threads": args.threads, "step_ms": [round(t, 1) for t in times],
            "ms": {"median": round(median, 1), "min": round(min(times), 1), "max": round(max(times), 1)},
            "model_gflops": round(model_flops(w) / median / 1e6, 1),
            "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "loss": round(loss, 5),
        }), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", default="fsdp2",
                        choices=["ddp", "fsdp2", "fsdp2-keep", "zero1", "zero2", "zero3"])
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    run_rank(args) if "RANK" in os.environ else start_ranks(args)


if __name__ == "__main__":
    main()
