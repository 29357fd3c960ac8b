# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with PyTorch alone, on one process or on several: torchrun --nproc_per_node 2 train.py

Every number of processes trains on the same 8 samples a step. The script knows nothing of zs.
"""
import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--mistake", action="store_true", help="add up the gradients of all ranks and forget to divide by their number")
options = parser.parse_args()

rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
if ranks > 1:
    dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(1, 11):
    samples = torch.randn(8, 8, generator=torch.Generator().manual_seed(step))[rank::ranks]
    loss = (model(samples) - samples.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    if ranks > 1:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            if not options.mistake:
                parameter.grad /= ranks
    optimizer.step()
    optimizer.zero_grad()
    if rank == 0:
        print(f"step {step} loss {loss.item()}", flush=True)
if ranks > 1:
    dist.barrier()
