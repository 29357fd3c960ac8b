#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training under share/probe/zs_probe.py, for tests/peers/probe and the records of tests/data/probe.

probe.py FOLDER [--fault] [--values] [--steps N] [--stride N]
    Two linear layers on fixed data; plain, or, where it is started by torchrun, under FSDP2 with the same global batch.
    --fault makes a gradient three times as large at step 3.
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
parser.add_argument("--fault", action="store_true")
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
    from torch.distributed.fsdp import fully_shard
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
probe = zs_probe.attach(model, optimizer, asked.folder, every=1 if asked.stride == 0 else asked.stride, values=asked.values)
share = slice(rank * batch // ranks, (rank + 1) * batch // ranks)
for step in range(asked.steps):
    loss = torch.nn.functional.mse_loss(model(inputs[step][share]), targets[step][share])
    loss.backward()
    if asked.fault and step == 2:
        model[0].weight.grad.mul_(3)
    probe.loss(loss)
    optimizer.step()
    optimizer.zero_grad()
probe.close()
if ranks > 1:
    torch.distributed.destroy_process_group()
