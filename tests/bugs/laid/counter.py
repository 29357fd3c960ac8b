# SPDX-License-Identifier: Apache-2.0
"""PyTorch, one process: READ=1 reads the optimizer's state before its first step, which moves Adam's counter."""
import torch
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

import common

torch.manual_seed(0)
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.AdamW(net.parameters(), common.RATE, weight_decay=0)
if common.setting("READ", 0):
    get_optimizer_state_dict(net, optimizer)
for step in range(common.STEPS):
    net(common.numbers(30 + step, 3, 4)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
