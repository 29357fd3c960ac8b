# SPDX-License-Identifier: Apache-2.0
"""A training of two ranks under DDP that needs PyTorch alone: torchrun --nproc_per_node 2 train.py"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(1, 11):
    x = torch.randn(4, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(f"step {step} loss {loss.item()}", flush=True)
dist.destroy_process_group()
