#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What zs_probe costs trainings of GPT-2 or Llama: steps without it, with each step recorded, and with its default stride, in turn.

    bench/probe.py [4 [2 256]]                                   one process, on processors: steps, samples, tokens of each
    torchrun --nproc_per_node 2 bench/probe.py 4 2 256           the same under DDP
    torchrun --nproc_per_node 2 bench/probe.py --device cuda --forms fsdp2 zero2 --size gpt2 Llama-3.2-1B
    torchrun --nproc_per_node 2 bench/probe.py --device cuda --forms fsdp2 --record FOLDER

A row for each size and form: seconds of a step (the median of turns), what recording each step adds to it, the stride that the
probe chooses by default, what it adds where it really runs with it, over two of its strides at least, and memory. On processors
a step is measured by their time, of all threads of a rank; on GPUs by the clock over all steps of a turn, behind a
synchronisation. --profile prints where a rank's Python and its GPU spend their time while each step is recorded. --record FOLDER
[--double NAME] trains three steps and no more, recorded; --double doubles on the last rank the gradient of what it holds of one
parameter."""
import argparse
import cProfile
import gc
import os
import pstats
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "share" / "probe"))
import zs_probe  # noqa: E402
from gpt2 import GPT2, SIZES  # noqa: E402
from llama import SIZES as LLAMAS, Llama  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("steps", type=int, nargs="?", default=4)
parser.add_argument("batch", type=int, nargs="?")
parser.add_argument("length", type=int, nargs="?")
parser.add_argument("--size", choices=[*SIZES, *LLAMAS], nargs="+", default=["gpt2"])
parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
parser.add_argument("--forms", nargs="+", choices=("plain", "fsdp2", "zero0", "zero1", "zero2", "zero3"), default=["plain"],
                    help="plain: of several ranks DDP; fsdp2: each block sharded; zeroN: DeepSpeed; the last two compute in bfloat16 [plain]")
parser.add_argument("--compile", action="store_true", help="compile each block")
parser.add_argument("--turns", type=int, default=4)
parser.add_argument("--each", action="store_true", help="each step recorded alone, without the default stride")
parser.add_argument("--profile", action="store_true")
parser.add_argument("--record", metavar="FOLDER")
parser.add_argument("--double", metavar="NAME")
o = parser.parse_args()
rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
cuda = o.device == "cuda"
device = torch.device(o.device, int(os.environ.get("LOCAL_RANK", 0))) if cuda else torch.device("cpu")
if cuda:
    torch.cuda.set_device(device)
    torch.set_float32_matmul_precision("high")
if ranks > 1 or o.forms != ["plain"]:
    for key, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        os.environ.setdefault(key, value)
    torch.distributed.init_process_group("nccl" if cuda else "gloo")


class Spent:
    """Where this process is while it makes steps: seconds of its main thread, of those the garbage collector's, and how often memory was
    asked for of the driver."""

    def __init__(self):
        self.collecting, self._begun = 0.0, 0.0
        gc.callbacks.append(self._collect)

    def _collect(self, phase, _):
        if phase == "start":
            self._begun = time.perf_counter()
        else:
            self.collecting += time.perf_counter() - self._begun

    def now(self):
        asked = torch.cuda.memory_stats().get("num_device_alloc", 0) + torch.cuda.host_memory_stats().get("num_host_alloc", 0) if cuda else 0
        return time.thread_time(), self.collecting, asked


spent = Spent()


class Training:
    """A model of one size in one form, which trains on one batch."""

    def __init__(self, size, form):
        batch, length = (16, 1024) if size not in LLAMAS else (4, 2048)
        batch, length = o.batch or (batch if cuda else 2), o.length or (length if cuda else 256)
        self.form, self.engine, self.optimizer, self.faulty = form, None, None, False
        torch.manual_seed(1)
        if size in LLAMAS:
            with torch.device("meta"):
                self.model = Llama(size, length)
        else:
            self.model = GPT2(size).to(device)
        if o.compile:
            for block in self.model.blocks:
                block.compile()
        if form == "fsdp2":
            self._shard()
        if size in LLAMAS:
            self.model.begin(device)
        if form.startswith("zero"):
            self._initialize(int(form[4:]), batch)
        else:
            if form == "plain" and ranks > 1:
                self.model = nn.parallel.DistributedDataParallel(self.model, device_ids=[device] if cuda else None)
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        torch.manual_seed(2 + rank)
        self.text = torch.randint(0, 256, (batch, length + 1), device=device)
        self.named = f"{size}, {'DDP' if form == 'plain' and ranks > 1 else form}, {ranks} ranks, {batch} x {length} tokens each"

    def _shard(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        policy = {"mesh": init_device_mesh(o.device, (ranks,)), "mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)}
        for block in self.model.blocks:
            fully_shard(block, **policy)
        fully_shard(self.model, **policy)

    def _initialize(self, stage, batch):
        import deepspeed
        settings = {"train_micro_batch_size_per_gpu": batch, "gradient_clipping": 1.0, "bf16": {"enabled": True}, "steps_per_print": 10**9,
                    "zero_optimization": {"stage": stage}, "zero_allow_untested_optimizer": True}
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.engine, *_ = deepspeed.initialize(model=self.model, optimizer=optimizer, config=settings)

    def double(self):
        """The fault: of what this rank holds of a parameter the gradient that the optimizer gets."""
        if self.engine:
            probed = next(r for r in zs_probe.attaching.recorders).layout
            for flat, slices in ((f, probed.slices()[id(f)]) for f in probed.flats()):
                for s in slices:
                    if s.name == o.double and flat.grad is not None:
                        s.of(flat.grad).mul_(2)
            return
        gradient = dict(self.model.named_parameters())[o.double].grad
        (gradient.to_local() if hasattr(gradient, "to_local") else gradient).mul_(2)

    def step(self, probe=None):
        worked = time.process_time()
        inputs, targets = self.text[:, :-1], self.text[:, 1:]
        if self.engine:
            self.engine.backward(self.engine(inputs, targets))
            self.engine.step()
            return time.process_time() - worked
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if probe:
            probe.loss(loss)
        if self.faulty:
            self.double()
        self.optimizer.step()
        return time.process_time() - worked

    def turn(self, steps, probe=None):
        """Seconds of a step."""
        if not cuda:
            return sum(self.step(probe) for _ in range(steps)) / steps
        torch.cuda.synchronize()
        started, before = time.perf_counter(), spent.now()
        for _ in range(steps):
            self.step(probe)
        after = spent.now()
        torch.cuda.synchronize()
        self.spent = [(b - a) / steps for a, b in zip(before, after)]
        return (time.perf_counter() - started) / steps

    def attached(self, folder, every):
        return zs_probe.attach(self.engine or self.model, self.optimizer, folder, every=every)

    def recorded(self, folder, every, steps):
        """The same, of steps that are recorded; what is made once was made before."""
        probe = self.attached(folder, every)
        for _ in range(4):
            self.step(probe)
        seconds = self.turn(steps, probe)
        probe.close()
        return seconds

    def by_default(self, folder):
        """(the stride that the probe chooses, seconds of a step with it, and of one without the probe, in turn)."""
        probe = self.attached(folder, None)
        while probe.every is None:
            self.step(probe)
        every, times = probe.every, ([], [])
        probe.close()
        for number in range(max(1, o.turns // 2)):
            times[1].append(self.turn(max(o.steps, 2 * every)))
            times[0].append(self.recorded(f"{folder}.{number}", every, max(o.steps, 2 * every)))
        return every, statistics.median(times[0]), statistics.median(times[1])


def peak():
    found = torch.cuda.max_memory_allocated() if cuda else 0
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    return found


def profiled(training, folder):
    probe = training.attached(folder, 1)
    for _ in range(4):
        training.step(probe)
    if cuda:
        for given in (probe, None):
            if given is None:
                probe.every = 1 << 60
            torch.cuda.synchronize()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as trace:
                training.step(given)
                torch.cuda.synchronize()
            events = [e for e in trace.events() if e.device_type == torch.autograd.DeviceType.CUDA]
            spans = sorted((e.time_range.start, e.time_range.end) for e in events)
            busy, until = 0, 0
            for begin, end in spans:
                busy, until = busy + max(0, end - max(begin, until)), max(until, end)
            print(f"# {training.named}, {'recorded' if given else 'not recorded'}: GPU busy {busy / 1e3:.2f} ms of {(until - spans[0][0]) / 1e3:.2f}, {len(events)} kernels")
            sums = {}
            for e in events:
                held = sums.setdefault(e.name[:60], [0, 0])
                held[0], held[1] = held[0] + 1, held[1] + e.time_range.elapsed_us()
            for name, (count, us) in sorted(sums.items(), key=lambda item: -item[1][1])[:12]:
                print(f"#   {us / 1e3:8.3f} ms {count:5} x {name}")
        probe.every = 1
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(5):
        training.step(probe)
    profile.disable()
    probe.close()
    if rank == 0:
        pstats.Stats(profile).sort_stats("tottime").print_stats("zs_probe|torch", 40)


def row(size, form, folder):
    training = Training(size, form)
    for _ in range(3):
        training.step()
    plain, probed, memory, more, where = [], [], 0, 0, []
    for number in range(o.turns if cuda else o.steps):
        peak()
        plain.append(training.turn(o.steps if cuda else 1))
        memory = peak()
        where.append(getattr(training, "spent", ()))
        probed.append(training.recorded(f"{folder}/{number}", 1, o.steps if cuda else 1))
        more = peak() - memory
        where[-1] = list(zip(where[-1], getattr(training, "spent", ())))
    if o.profile:
        profiled(training, f"{folder}/profile")
    every, sparse, without = (0, 1, 1) if o.each else training.by_default(f"{folder}/default")
    least, most = (statistics.median(plain), statistics.median(probed)) if cuda else (min(plain), min(probed))
    if rank == 0:
        unit, scale, kind = ("ms", 1e3, "the clock") if cuda else ("s ", 1, "the processor")
        print(f"a step                 {least * scale:8.3f} {unit} of {kind} ({training.named})")
        print(f"a step that is probed  {most * scale:8.3f} {unit}: {100 * (most - least) / least:.1f} % more (goal: 5)")
        if not o.each:
            print(f"by default every {every:4}  {sparse * scale:8.3f} {unit}, and {without * scale:.3f} beside it: {100 * (sparse - without) / without:.2f} % more (goal: 1)")
        if memory:
            print(f"memory                 {memory / 2**30:8.2f} GiB, probed {100 * more / memory:.2f} % more (goal: 1)")
        print(f"# each turn: {' '.join(f'{a * scale:.1f}/{b * scale:.1f}' for a, b in zip(plain, probed))}; PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
        for text, number in (("main thread", 0), ("garbage collector", 1)) if cuda else ():
            print(f"# ms of the {text}: {' '.join(f'{a * 1e3:.1f}/{b * 1e3:.1f}' for a, b in (w[number] for w in where))}", flush=True)
        if cuda:
            print(f"# calls for memory: {' '.join(f'{a:.1f}/{b:.1f}' for a, b in (w[2] for w in where))}", flush=True)
    return (sparse - without) / without


def record(size, form):
    training = Training(size, form)
    probe = training.attached(o.record, 1)
    if o.double and training.engine and rank == ranks - 1:  # before the recorder's own hook reads them
        training.engine.optimizer.optimizer.register_step_pre_hook(lambda *_: training.double())
        hooks = training.engine.optimizer.optimizer._optimizer_step_pre_hooks
        hooks.move_to_end(next(reversed(hooks)), last=False)
    training.faulty = bool(o.double) and not training.engine and rank == ranks - 1
    for _ in range(3):
        training.step(probe)
    probe.close()


shares = []
if o.record:
    record(o.size[0], o.forms[0])
else:
    with tempfile.TemporaryDirectory() as folder:
        if ranks > 1:  # rank 0's, for all: the others read there how many steps it leaves out
            shared = [folder]
            torch.distributed.broadcast_object_list(shared, 0)
            folder = shared[0]
        for size in o.size:
            for form in o.forms:
                shares.append(row(size, form, f"{folder}/{size}-{form}"))
                gc.collect()
                if cuda:
                    torch.cuda.empty_cache()
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
sys.exit(any(share >= 0.01 for share in shares) and not cuda)
