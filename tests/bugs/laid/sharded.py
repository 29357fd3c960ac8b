# SPDX-License-Identifier: Apache-2.0
"""Megatron-FSDP on processors: ZERO=1 or 2; PLAIN=1: PyTorch in one process."""
import no_gpu  # noqa: F401  before all else
import torch
from torch.distributed.device_mesh import init_device_mesh

import common

torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))
if common.setting("PLAIN", 0):
    optimizer = torch.optim.AdamW(net.parameters(), common.RATE, weight_decay=0.0)
else:
    common.begin()
    from megatron_fsdp.fully_shard import fully_shard_model, fully_shard_optimizer
    mesh = init_device_mesh("cpu", (common.ranks, 1), mesh_dim_names=("dp", "tp"))
    net = fully_shard_model(net, fsdp_unit_modules=[torch.nn.Linear], device_mesh=mesh, dp_shard_dim="dp", tp_dim="tp", zero_dp_strategy=common.setting("ZERO"),
                            device=torch.device("cpu"))
    optimizer = fully_shard_optimizer(torch.optim.AdamW(net.parameters(), common.RATE, weight_decay=0.0))
for step in range(common.STEPS):
    optimizer.zero_grad()
    x, y = common.numbers(10 + step, 8, 8), common.numbers(20 + step, 8, 8)
    ((net(common.share(x)) - common.share(y)) ** 2).mean().backward()
    optimizer.step()
