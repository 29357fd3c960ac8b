#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training under share/probe/zs_probe, for tests/peers/probe and the records of tests/data/probe.

probe.py FOLDER [--fault [KIND]] [--values] [--steps N] [--stride N] [--accumulation N] [--layout NAME]
    Two linear layers on fixed data; plain, or, where it is started by torchrun, under FSDP2, FSDP1 or DDP with the same
    global batch. Each rank's part is cut into N micro-batches.
    --fault makes a gradient three times as large at step 3 (scale, the default), loses all micro-batches but the last of each
    rank (lost), steps with a tenth of the rate from step 2 on (rate), or keeps the gradients of the step before (stale).
"""
import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "share" / "probe"))
import torch  # noqa: E402
import zs_probe  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--fault", nargs="?", const="scale", choices=("scale", "lost", "rate", "stale"))
parser.add_argument("--layout", default="fsdp2", choices=("fsdp2", "fsdp1", "fsdp1-orig", "ddp"))
parser.add_argument("--accumulation", type=int, default=1)
parser.add_argument("--values", action="store_true")
parser.add_argument("--stride", type=int, default=0)
parser.add_argument("--steps", type=int, default=4)
asked = parser.parse_args()

ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
torch.manual_seed(1)
torch.set_num_threads(1)
size, batch = 5, 8
model = torch.nn.Sequential(torch.nn.Linear(size, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
inputs, targets = torch.randn(asked.steps, batch, size), torch.randn(asked.steps, batch, 3)
if ranks > 1:
    torch.distributed.init_process_group("gloo")
    if asked.layout == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        for layer in (model[0], model[2]):
            fully_shard(layer)
        fully_shard(model)
    elif asked.layout == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.fsdp import FullyShardedDataParallel
        model = FullyShardedDataParallel(model, use_orig_params=asked.layout == "fsdp1-orig", device_id=torch.device("cpu"))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
probe = zs_probe.attach(model, optimizer, asked.folder, every=1 if asked.stride == 0 else asked.stride, values=asked.values)
parts = ranks * asked.accumulation
sizes = [slice(part * batch // parts, (part + 1) * batch // parts) for part in range(parts)]
mine = sizes[rank * asked.accumulation:(rank + 1) * asked.accumulation]
for step in range(asked.steps):
    total = 0
    for number, share in enumerate(mine):
        loss = torch.nn.functional.mse_loss(model(inputs[step][share]), targets[step][share]) / asked.accumulation
        loss.backward()
        total += loss.detach()
        if asked.fault == "lost" and number + 1 < len(mine):
            optimizer.zero_grad()
    if asked.fault == "scale" and step == 2:
        first = model.module[0] if asked.layout == "ddp" and ranks > 1 else model[0]
        first.weight.grad.mul_(3)
    if asked.fault == "rate" and step == 1:
        optimizer.param_groups[0]["lr"] /= 10
    probe.loss(total)
    optimizer.step()
    if asked.fault != "stale":
        optimizer.zero_grad()
probe.close()
if ranks > 1:
    torch.distributed.destroy_process_group()
