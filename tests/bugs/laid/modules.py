# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own layouts: MODE=whole (one process), hsdp, tpfsdp (tensor parallelism and FSDP2), tp (SEQ=1: with sequence parallel norms; 2: plain ones,
whose gradients the training sums), pp, vpp (virtual stages), vppfsdp (those under FSDP2); SCALE=0: a pipeline that does not divide by its micro-batches."""
import copy
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import common

MODE, MICROS = os.environ["MODE"], 4
if MODE != "whole":
    common.begin()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(16, 32), nn.Linear(32, 16), nn.LayerNorm(16)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.ModuleDict({str(i): Block() for i in range(4)}), nn.Linear(16, 8)

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
        return x if self.head is None else self.head(x)


torch.manual_seed(0)
net = Net()
moved, step_of = [net], None


def whole_step(x, y):
    F.mse_loss(net(x), y).backward()


def sharded():
    global step_of
    at, of = common.rank, common.ranks
    if MODE == "hsdp":
        mesh = init_device_mesh("cpu", (2, of // 2), mesh_dim_names=("dp_replicate", "dp_shard"))
    else:
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
        from torch.distributed.tensor import Replicate, Shard
        both = init_device_mesh("cpu", (of // 2, 2), mesh_dim_names=("dp", "tp"))
        sequence = common.setting("SEQ", 0)
        for layer in net.layers.values():
            plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
            if sequence:  # the norm gets a part of each sequence
                plan = {**({"norm": SequenceParallel()} if sequence == 1 else {}), "up": ColwiseParallel(input_layouts=Shard(1)),
                        "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=sequence == 2)}
            parallelize_module(layer, both["tp"], plan)
        if sequence:
            from torch.distributed.tensor import DTensor
            parts, whole = [Shard(1)], [Replicate()]
            net.layers["0"].register_forward_pre_hook(lambda _, x: (DTensor.from_local(x[0], both["tp"], whole).redistribute(placements=parts),))
            if sequence == 2:
                net.layers["0"].register_forward_pre_hook(lambda _, x: (x[0].to_local(),))
                net.head.register_forward_pre_hook(lambda _, x: (DTensor.from_local(x[0], both["tp"], parts),))
            net.head.register_forward_pre_hook(lambda _, x: (x[0].redistribute(placements=whole).to_local(grad_placements=whole),))

        def step_by_hand(x, y):
            whole_step(x, y)
            for layer in net.layers.values():
                for p in layer.norm.parameters():
                    torch.distributed.all_reduce(p.grad)

        if MODE == "tp":
            step_of = step_by_hand if sequence == 2 else whole_step
            return
        mesh, at, of = both["dp"], both["dp"].get_local_rank(), of // 2
    for layer in net.layers.values():
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)

    def step_of_share(x, y):
        whole_step(common.share(x, at, of), common.share(y, at, of))

    step_of = step_of_share


def pipelined():
    global moved, step_of
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
    size = 2 if MODE == "vppfsdp" else common.ranks
    both = init_device_mesh("cpu", (common.ranks // size, size), mesh_dim_names=("dp", "pp"))
    at, of, first = both["dp"].get_local_rank(), common.ranks // size, both["pp"].get_local_rank()
    mine = [first] if MODE == "pp" else [first, first + size]
    stages = size * len(mine)

    def part(stage):
        each, cut = 4 // stages, copy.deepcopy(net)
        for key in list(cut.layers):
            if not stage * each <= int(key) < (stage + 1) * each:
                del cut.layers[key]
        if stage != stages - 1:
            cut.head = None
        return cut

    moved = [part(stage) for stage in mine]
    for one in moved if MODE == "vppfsdp" else ():
        for layer in one.layers.values():
            fully_shard(layer, mesh=both["dp"])
        fully_shard(one, mesh=both["dp"])
    made = [PipelineStage(one, stage, stages, torch.device("cpu"), group=both.get_group("pp")) for one, stage in zip(moved, mine)]
    kind = {"loss_fn": F.mse_loss, "scale_grads": bool(common.setting("SCALE"))}
    schedule = Schedule1F1B(made[0], MICROS, **kind) if MODE == "pp" else ScheduleInterleaved1F1B(made, MICROS, **kind)

    def run(x, y):
        x, y = common.share(x, at, of), common.share(y, at, of)
        schedule.step(*([x] if 0 in mine else []), **({"target": y} if stages - 1 in mine else {}))

    step_of = run


{"whole": lambda: None, "pp": pipelined, "vpp": pipelined, "vppfsdp": pipelined}.get(MODE, sharded)()
step_of = step_of or whole_step
optimizer = torch.optim.AdamW([p for one in moved for p in one.parameters()], common.RATE)
for step in range(common.STEPS):
    x, y = common.numbers(10 + step, 8, 4, 16), common.numbers(20 + step, 8, 4, 8)
    if MODE == "whole" and common.setting("MICRO", 0):
        for i in range(MICROS):
            (F.mse_loss(net(common.share(x, i, MICROS)), common.share(y, i, MICROS)) / MICROS).backward()
    else:
        step_of(x, y)
    for one in moved:
        common.plant(one, step, behind=True)
    optimizer.step()
    optimizer.zero_grad()
