# SPDX-License-Identifier: Apache-2.0
"""torchtitan's linear layer that divides its bias over the ranks of tensor parallelism, in a small training; alone: torch's."""
import os

import torch
import torch.distributed as dist
from torch import nn

import common


class Summed(torch.autograd.Function):
    """The sum over the ranks, each of which has the whole gradient."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        whole = nn.Linear(8, 6)
        if common.ranks == 1:
            self.row = whole
            return
        from torchtitan.models.common.linear import ScaledBiasRowwiseLinear
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Replicate, Shard
        mesh = init_device_mesh("cpu", (common.ranks,), mesh_dim_names=("tp",))
        self.row = ScaledBiasRowwiseLinear(ScaledBiasRowwiseLinear.Config(in_features=8 // common.ranks, out_features=6, bias=True))
        self.row.tp_degree = 1 if os.environ.get("PLANTED") == "forward" else common.ranks  # 1: as #4245 counts plain tensors
        for name, placement, value in (("weight", Shard(1), whole.weight.chunk(common.ranks, 1)[common.rank]), ("bias", Replicate(), whole.bias)):
            setattr(self.row, name, nn.Parameter(DTensor.from_local(value.detach().clone(), mesh, [placement])))

    def forward(self, x):
        if common.ranks == 1:
            return self.row(x)
        return Summed.apply(self.row(x.chunk(common.ranks, 1)[common.rank]))


if common.ranks > 1:
    common.begin()
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), common.RATE)
for step in range(common.STEPS):
    net(common.numbers(30 + step, 4, 8)).square().sum().backward()
    common.plant(net, step, behind=True)
    optimizer.step()
    optimizer.zero_grad()
