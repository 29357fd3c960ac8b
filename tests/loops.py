# SPDX-License-Identifier: Apache-2.0
"""loops.py NAME...: trainings as pages of PyTorch write them, each in a process of its own, recorded in a folder of its name. A name that ends with -bug is the same with a mistake that zs-verify must find."""
import os
import sys
import traceback

import torch
from torch import nn

schedules, steps, rank, name, bug = torch.optim.lr_scheduler, 6, 0, "", False


def net():
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))


def data(step, kind=torch.float32):
    random = torch.Generator().manual_seed(1000 + step)
    return torch.randn(8, 8, generator=random).to(kind), torch.randn(8, 4, generator=random)


def loss_of(model, step):
    x, y = data(step)
    return (model(x) - y).square().mean()


def two_rates(model, kind=torch.optim.AdamW, **more):
    return kind([{"params": model[0].parameters(), "lr": 1e-2}, {"params": model[2].parameters(), "lr": 1e-3}], lr=1e-2, **more)


def scheduled(make, model=None, optimizer=None):
    """make(optimizer): what is called at the end of each step."""
    model = model or net()
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), 0.01)
    after = make(optimizer)
    for step in range(steps):
        loss_of(model, step).backward()
        if bug and step == 3:
            optimizer.param_groups[0]["lr"] *= 2
        optimizer.step()
        optimizer.zero_grad()
        after(step)


def sequential():
    def make(o):
        one = schedules.SequentialLR(o, [schedules.LinearLR(o, 0.1, total_iters=3), schedules.CosineAnnealingLR(o, 8)], [3])
        return lambda step: one.step()
    scheduled(make)


def chained():
    def make(o):
        one = schedules.ChainedScheduler([schedules.ConstantLR(o, 0.1, total_iters=3), schedules.ExponentialLR(o, 0.9)])
        return lambda step: one.step()
    scheduled(make)


def two():
    def make(o):
        some = schedules.ExponentialLR(o, 0.9), schedules.MultiStepLR(o, [3, 5], 0.1)
        return lambda step: [one.step() for one in some]
    scheduled(make)


def multiplied():
    def make(o):
        one = schedules.MultiplicativeLR(o, lambda count: 0.9)
        return lambda step: one.step()
    scheduled(make)


def averaged():  # the second schedule is made when it begins
    def make(o):
        some = [schedules.CosineAnnealingLR(o, 20)]

        def after(step):
            if step == 2:
                some.append(torch.optim.swa_utils.SWALR(o, swa_lr=0.02, anneal_epochs=3))
            some[-1].step()
        return after
    model = net()
    scheduled(make, model, torch.optim.SGD(model.parameters(), 0.05, momentum=0.9))


def cyclic():
    def make(o):
        one = schedules.CyclicLR(o, [1e-3, 1e-4], [1e-2, 1e-2], step_size_up=3)
        return lambda step: one.step()
    model = net()
    scheduled(make, model, two_rates(model, torch.optim.SGD, momentum=0.9))


def restarts():
    def make(o):
        one = schedules.CosineAnnealingWarmRestarts(o, 4, eta_min=1e-4)
        return lambda step: one.step()
    model = net()
    scheduled(make, model, two_rates(model))


def derived():
    class Warm(schedules.CosineAnnealingLR):
        def get_lr(self):
            return [base * min(1, (self.last_epoch + 1) / 4) for base in self.base_lrs]

    def make(o):
        one = Warm(o, 8)
        return lambda step: one.step()
    scheduled(make)


def scaled(kind=None, **more):  # the first scales are too large: steps are left out
    model = net()
    optimizer, scaler = torch.optim.AdamW(model.parameters(), 0.01, **more), (kind or torch.amp.GradScaler)("cpu", init_scale=2.0**22)
    for step in range(10):
        with torch.autocast("cpu", torch.float16):
            loss = loss_of(model, step)
        scaler.scale(loss).backward()
        if bug and step == 9:
            model[0].weight.grad.mul_(2)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def fused():
    scaled(fused=True)


def scaled_by_another():
    class Scaler(torch.amp.GradScaler):
        def scale(self, outputs):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale
    scaled(Scaler)


def finite():  # the loop leaves out a step whose loss is not finite
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    for step in range(steps):
        loss = loss_of(model, step) * (float("nan") if step == 2 else 1)
        loss.backward()
        if bug or loss.isfinite():
            optimizer.step()
        optimizer.zero_grad()


def sharpness(by_hand=False):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for step in range(steps):
        loss_of(model, step).backward()
        with torch.no_grad():
            moves = [0.05 * p.grad / (p.grad.norm() + 1) for p in model.parameters()]
            for p, move in zip(model.parameters(), moves):
                p.add_(move)
        if by_hand:
            for p in model.parameters():
                p.grad = None
        else:
            model.zero_grad()
        loss_of(model, step).backward()
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves):
                p.sub_(move)
        if bug:
            model[0].weight.grad.mul_(2)
        optimizer.step()
        optimizer.zero_grad()


def by_hand():
    sharpness(True)


def search():
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    for step in range(steps):
        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, step)
            loss.backward()
            return loss
        optimizer.step(closure)


def adversaries():
    critic, made = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1)), nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 8))
    of_critic, of_made = torch.optim.Adam(critic.parameters(), 1e-3), torch.optim.Adam(made.parameters(), 1e-3)
    loss = nn.functional.binary_cross_entropy_with_logits
    for step in range(steps):
        critic.zero_grad()
        false = made(torch.randn(8, 4))
        for sample, label in ((data(step)[0], torch.ones(8, 1)), (false.detach(), torch.zeros(8, 1))):
            loss(critic(sample), label).backward()
        of_critic.step()
        made.zero_grad()
        loss(critic(false), torch.ones(8, 1)).backward()
        of_made.step()


def pairs():  # a loss that compares two calls with the same samples
    model = nn.Sequential(nn.Dropout(0.1), net())
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    for step in range(steps):
        x = data(step)[0]
        if bug and step == 2:
            for _ in range(2):
                model(x).square().mean().backward()
        else:
            (model(x) * model(x)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def accumulated():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    for step in range(steps):
        for micro in range(4):
            loss_of(model, 4 * step + micro).backward()
            if bug and step == 3 and micro == 1:
                optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()


def summed():  # by the loop itself
    model, total = net(), {}
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    for step in range(steps):
        for micro in range(2):
            loss_of(model, 2 * step + micro).backward()
            for p in model.parameters():
                total[p] = p.grad.double() + total.get(p, 0)
            model.zero_grad()
        for p in model.parameters():
            p.grad = total.pop(p).float()
        optimizer.step()
        optimizer.zero_grad()


def sparse():
    model = nn.Sequential(nn.Embedding(20, 4, sparse=True), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(steps):
        model(torch.randint(0, 20, (4, 3))).square().mean().backward()
        if bug:
            model[1].bias.grad.mul_(2)
        optimizer.step()
        optimizer.zero_grad()


def complex_numbers():
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(8, 4, dtype=torch.complex64))

        def forward(self, x):
            return (x.to(torch.complex64) @ self.w).abs()

    model = Turned()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    for step in range(steps):
        loss_of(model, step).backward()
        optimizer.step()
        optimizer.zero_grad()
        if bug:
            model.w.data.real.mul_(1.001)


def forked(train):
    """A process that trains and records."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        train()
        for recorder in sys.modules["zs_probe.attaching"].recorders if "zs_probe.attaching" in sys.modules else ():
            recorder.close()
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


def ended(children):
    if any([os.waitpid(child, 0)[1] for child in children]):
        raise RuntimeError("a process failed")


def ranked(train, count=2):
    """Trains on ranks."""
    import torch.distributed as dist

    def one():
        os.environ["RANK"] = str(rank)
        dist.init_process_group("gloo", init_method=f"file://{os.path.abspath(name)}.store", rank=rank, world_size=count)
        train()
        dist.barrier()

    global rank
    children = []
    for rank in range(count):
        children.append(forked(one))
    ended(children)


def shares():
    def train():
        from torch.distributed.optim import ZeroRedundancyOptimizer
        model = net()
        whole = nn.parallel.DistributedDataParallel(model)
        optimizer = ZeroRedundancyOptimizer(whole.parameters(), torch.optim.AdamW, lr=0.01)
        schedule = schedules.LinearLR(optimizer, 0.1, total_iters=4)
        for step in range(3):
            x, y = [part.chunk(2)[rank] for part in data(step)]
            nn.functional.mse_loss(whole(x), y).backward()
            if bug and step == 1:
                model[2].bias.grad.mul_(2)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
    ranked(train)


def pipeline(each=1, name_of=str):
    def train():
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
        mine, parts = range(rank, 2 * each, 2), []
        for number in mine:
            parts.append(nn.Sequential())
            parts[-1].add_module(name_of(number), nn.Linear(8, 8))
        stages = [PipelineStage(part, number, 2 * each, torch.device("cpu")) for part, number in zip(parts, mine)]
        loss = {"n_microbatches": 4, "loss_fn": nn.functional.mse_loss}
        schedule = Schedule1F1B(stages[0], **loss) if each == 1 else ScheduleInterleaved1F1B(stages, **loss)
        optimizer = torch.optim.AdamW([p for part in parts for p in part.parameters()], 0.01)
        for step in range(3):
            x, _ = data(step)
            schedule.step(*([x] if rank == 0 else []), **({"target": x.tanh()} if rank else {}))
            if bug and rank == (name_of != str) and step == 1:
                parts[0][0].weight.grad.mul_(2)
            optimizer.step()
            optimizer.zero_grad()
    ranked(train)


def alike(each=1):  # each stage counts its layers by itself
    pipeline(each, lambda number: "0")


def virtual():
    alike(2)


def experts():
    """A DTensor over a mesh of experts, which have all samples; each rank has samples of its own, and sums all else by hand."""
    def train():
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Shard, distribute_tensor

        class Gathered(torch.autograd.Function):
            @staticmethod
            def forward(_, x):
                parts = [torch.empty_like(x) for _ in range(2)]
                dist.all_gather(parts, x.contiguous())
                return torch.cat(parts)

            @staticmethod
            def backward(_, gradient):
                gradient = gradient.contiguous()
                dist.all_reduce(gradient)
                return gradient.chunk(2)[rank].contiguous()

        class Returned(torch.autograd.Function):
            @staticmethod
            def forward(_, x):
                x = x.contiguous().clone()
                dist.all_reduce(x)
                return x.chunk(2)[rank].contiguous()

            @staticmethod
            def backward(_, gradient):
                parts = [torch.empty_like(gradient) for _ in range(2)]
                dist.all_gather(parts, gradient.contiguous())
                return torch.cat(parts)

        class Routed(nn.Module):
            def __init__(self):
                super().__init__()
                mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("ep",))
                self.dense, self.w = nn.Linear(8, 8), nn.Parameter(distribute_tensor(torch.randn(2, 8, 4), mesh, [Shard(0)]))

            def forward(self, x):
                return Returned.apply(Gathered.apply(self.dense(x)).tanh() @ self.w.to_local()[0])

        model = Routed()
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        for step in range(3):
            x, y = [part.chunk(2)[rank] for part in data(step)]
            nn.functional.mse_loss(model(x), y).backward()
            model.w.grad.to_local().div_(2)
            for p in model.dense.parameters():
                dist.all_reduce(p.grad)
                p.grad.div_(1 if bug and step == 1 else 2)
            optimizer.step()
            optimizer.zero_grad()
    ranked(train)


torch.set_num_threads(1)
os.environ["ZS_PROBE"] = "off"  # what the first step imports, each process has
scheduled(lambda o: lambda step: None)
import zs_probe.attaching  # noqa: E402, F401
torch.manual_seed(0)
for name in sys.argv[1:]:
    bug, os.environ["ZS_PROBE"] = name.endswith("-bug"), name
    ended([forked(globals()[name.partition("-")[0]])])
