#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What zs_probe costs a training of GPT-2: steps without it, with each step recorded, and with its default stride, in turn.

    bench/probe.py [4 [2 256]]                                   one process, on processors: steps, samples, tokens of each
    torchrun --nproc_per_node 2 bench/probe.py --device cuda --fsdp2 --size gpt2-xl 20 8 1024

On processors a step is measured by their time, on GPUs by the clock over all steps of a turn, behind a synchronisation."""
import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "share" / "probe"))
import zs_probe  # noqa: E402
from gpt2 import GPT2, SIZES  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("steps", type=int, nargs="?", default=4)
parser.add_argument("batch", type=int, nargs="?", default=2)
parser.add_argument("length", type=int, nargs="?", default=256)
parser.add_argument("--size", choices=SIZES, default="gpt2")
parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
parser.add_argument("--fsdp2", action="store_true", help="shard each block, compute in bfloat16")
o = parser.parse_args()
rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
device = torch.device(o.device, int(os.environ.get("LOCAL_RANK", 0))) if o.device == "cuda" else torch.device("cpu")
if o.device == "cuda":
    torch.cuda.set_device(device)
if ranks > 1 or o.fsdp2:
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.distributed.init_process_group("nccl" if o.device == "cuda" else "gloo", rank=rank, world_size=ranks)

torch.manual_seed(1)
model = GPT2(o.size).to(device)
if o.fsdp2:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = {"mesh": init_device_mesh(o.device, (ranks,)), "mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)}
    for block in model.blocks:
        fully_shard(block, **policy)
    fully_shard(model, **policy)
elif ranks > 1:
    model = nn.parallel.DistributedDataParallel(model, device_ids=[device] if o.device == "cuda" else None)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
text = torch.randint(0, 256, (o.batch, o.length + 1), device=device)


def step(probe=None):
    worked = time.process_time()
    optimizer.zero_grad(set_to_none=True)
    loss = model(text[:, :-1], text[:, 1:])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if probe:
        probe.loss(loss)
    optimizer.step()
    return time.process_time() - worked


def turn(probe=None, steps=1):
    """Seconds of a step."""
    if o.device == "cpu":
        return min(step(probe) for _ in range(steps))
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(steps):
        step(probe)
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / steps


def recorded(folder, every, steps):
    probe = zs_probe.attach(model, optimizer, folder, every=every)
    step(probe)  # the tables, and the parameters as the training begins
    seconds = turn(probe, steps)
    probe.close()
    return seconds


for _ in range(2):
    step()
with tempfile.TemporaryDirectory() as folder:
    if ranks > 1:  # rank 0's, for all: the others read there how many steps it leaves out
        shared = [folder]
        torch.distributed.broadcast_object_list(shared, 0)
        folder = shared[0]
    chosen = zs_probe.attach(model, optimizer, folder + "/default")
    for _ in range(16):  # which are recorded whatever they cost
        step(chosen)
    every = chosen.every
    chosen.close()
    plain, probed = [], []
    memory = torch.cuda.max_memory_allocated() if o.device == "cuda" else 0
    for number in range(3 if o.device == "cuda" else o.steps):
        if o.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        plain.append(turn(steps=o.steps if o.device == "cuda" else 1))
        memory = torch.cuda.max_memory_allocated() if o.device == "cuda" else 0
        probed.append(recorded(f"{folder}/{number}", 1, o.steps if o.device == "cuda" else 1))
    more = torch.cuda.max_memory_allocated() - memory if o.device == "cuda" else 0
least, most = min(plain), min(probed)
share, sparse = (most - least) / least, (most - least) / every / least
if rank == 0:
    unit, scale, kind = ("ms", 1e3, "the clock") if o.device == "cuda" else ("s ", 1, "the processor")
    print(f"a step                 {least * scale:8.3f} {unit} of {kind} ({o.size}, {ranks} ranks, {o.batch} x {o.length} tokens each)")
    print(f"a step that is probed  {most * scale:8.3f} {unit}: {100 * share:.1f} % more (goal: 5)")
    print(f"by default every {every:4} {100 * sparse:8.2f} % of the time (goal: below 3)")
    if memory:
        print(f"memory                 {memory / 2**30:8.2f} GiB, probed {100 * more / memory:.2f} % more (goal: 1)")
    print(f"# PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
sys.exit(sparse >= 0.03)
