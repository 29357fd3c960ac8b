#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What zs_probe costs a training of GPT-2 or Llama: steps without it, with each step recorded, and with its default stride, in turn.

    bench/probe.py [4 [2 256]]                                   one process, on processors: steps, samples, tokens of each
    torchrun --nproc_per_node 2 bench/probe.py 4 2 256           the same under DDP
    torchrun --nproc_per_node 2 bench/probe.py --device cuda --fsdp2 --size gpt2-xl 20 8 1024
    torchrun --nproc_per_node 2 bench/probe.py --device cuda --zero 2 20 8 1024        DeepSpeed, bfloat16

On processors a step is measured by their time, of all threads of a rank; on GPUs by the clock over all steps of a turn, behind a
synchronisation. --profile prints where a rank's Python spends its time while each step is recorded. --record FOLDER [--double NAME]
trains three steps and no more, recorded; --double doubles on the last rank the gradient of what it holds of one parameter."""
import argparse
import cProfile
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
parser.add_argument("batch", type=int, nargs="?", default=2)
parser.add_argument("length", type=int, nargs="?", default=256)
parser.add_argument("--size", choices=[*SIZES, *LLAMAS], default="gpt2")
parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
parser.add_argument("--fsdp2", action="store_true", help="shard each block, compute in bfloat16")
parser.add_argument("--compile", action="store_true", help="compile each block")
parser.add_argument("--zero", type=int, choices=(0, 1, 2, 3), help="DeepSpeed, of this stage, in bfloat16")
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
if ranks > 1 or o.fsdp2 or o.zero is not None:
    for key, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        os.environ.setdefault(key, value)
    torch.distributed.init_process_group("nccl" if cuda else "gloo")


def built():
    torch.manual_seed(1)
    if o.size not in LLAMAS:
        return GPT2(o.size).to(device)
    with torch.device("meta"):
        model = Llama(o.size, o.length)
    return model


def begun(model):
    if o.size in LLAMAS:
        model.begin(device)
    return model


model, engine = built(), None
if o.compile:
    for block in model.blocks:
        block.compile()
if o.zero is not None:
    import deepspeed
    begun(model)
    settings = {"train_micro_batch_size_per_gpu": o.batch, "gradient_clipping": 1.0, "bf16": {"enabled": True},
                "zero_optimization": {"stage": o.zero}, "zero_allow_untested_optimizer": True}
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), config=settings)
elif o.fsdp2:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = {"mesh": init_device_mesh(o.device, (ranks,)), "mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)}
    for block in model.blocks:
        fully_shard(block, **policy)
    fully_shard(model, **policy)
    begun(model)
else:
    begun(model)
    if ranks > 1:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[device] if cuda else None)
optimizer = None if engine else torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
torch.manual_seed(2 + rank)
text = torch.randint(0, 256, (o.batch, o.length + 1), device=device)


def doubled():
    """The fault: of what this rank holds of a parameter the gradient that the optimizer gets."""
    if engine:
        zero = engine.optimizer
        probed = next(r for r in zs_probe.attaching.recorders).layout
        for flat, slices in ((f, probed.slices()[id(f)]) for f in probed.flats()):
            for s in slices:
                if s.name == o.double and flat.grad is not None:
                    s.of(flat.grad).mul_(2)
        return zero
    gradient = dict(model.named_parameters())[o.double].grad
    (gradient.to_local() if hasattr(gradient, "to_local") else gradient).mul_(2)
    return None


def step(probe=None):
    worked = time.process_time()
    if engine:
        loss = engine(text[:, :-1], text[:, 1:])
        engine.backward(loss)
        engine.step()
        return time.process_time() - worked
    optimizer.zero_grad(set_to_none=True)
    loss = model(text[:, :-1], text[:, 1:])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if probe:
        probe.loss(loss)
    if faulty:
        doubled()
    optimizer.step()
    return time.process_time() - worked


def turn(steps, probe=None):
    """Seconds of a step."""
    if not cuda:
        return min(step(probe) for _ in range(steps))
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        step(probe)
    torch.cuda.synchronize()
    return (time.perf_counter() - started) / steps


def attached(folder, every):
    return zs_probe.attach(engine, folder=folder, every=every) if engine else zs_probe.attach(model, optimizer, folder, every=every)


def recorded(folder, every, steps):
    probe = attached(folder, every)
    for _ in range(4):  # the tables, the kernels, and the parameters as the training begins
        step(probe)
    seconds = turn(steps, probe)
    probe.close()
    return seconds


faulty = False
if o.record:
    probe = attached(o.record, 1)
    if o.double and engine and rank == ranks - 1:  # before the recorder's own hook reads them
        engine.optimizer.optimizer.register_step_pre_hook(lambda *_: doubled() and None)
        hooks = engine.optimizer.optimizer._optimizer_step_pre_hooks
        hooks.move_to_end(next(reversed(hooks)), last=False)
    faulty = bool(o.double) and not engine and rank == ranks - 1
    for _ in range(3):
        step(probe)
    probe.close()
    torch.distributed.destroy_process_group()
    sys.exit()

for _ in range(3):
    step()
with tempfile.TemporaryDirectory() as folder:
    if ranks > 1:  # rank 0's, for all: the others read there how many steps it leaves out
        shared = [folder]
        torch.distributed.broadcast_object_list(shared, 0)
        folder = shared[0]
    plain, probed = [], []
    memory = more = 0
    for number in range(4 if cuda else o.steps):
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        plain.append(turn(o.steps if cuda else 1))
        if cuda:
            memory = torch.cuda.max_memory_allocated()
            torch.cuda.reset_peak_memory_stats()
        probed.append(recorded(f"{folder}/{number}", 1, o.steps if cuda else 1))
        if cuda:
            more = torch.cuda.max_memory_allocated() - memory
    if o.profile:
        profile = cProfile.Profile()
        probe = attached(f"{folder}/profile", 1)
        step(probe)
        profile.enable()
        for _ in range(5):
            step(probe)
        profile.disable()
        probe.close()
        if rank == 0:
            pstats.Stats(profile).sort_stats("tottime").print_stats("zs_probe|triton|torch", 40)
    chosen = attached(folder + "/default", None)
    while chosen.every is None:
        step(chosen)
    every = chosen.every
    chosen.close()
least, most = statistics.median(plain), statistics.median(probed)
if not cuda:
    least, most = min(plain), min(probed)
share = (most - least) / least
sparse = share / every
if rank == 0:
    unit, scale, kind = ("ms", 1e3, "the clock") if cuda else ("s ", 1, "the processor")
    form = f"ZeRO-{o.zero}" if engine else "FSDP2" if o.fsdp2 else "DDP" if ranks > 1 else "plain"
    print(f"a step                 {least * scale:8.3f} {unit} of {kind} ({o.size}, {form}, {ranks} ranks, {o.batch} x {o.length} tokens each)")
    print(f"a step that is probed  {most * scale:8.3f} {unit}: {100 * share:.1f} % more (goal: 5)")
    print(f"by default every {every:4} {100 * sparse:8.2f} % of the time (goal: 1)")
    if memory:
        print(f"memory                 {memory / 2**30:8.2f} GiB, probed {100 * more / memory:.2f} % more (goal: 1)")
    print(f"# each turn: {' '.join(f'{a * scale:.1f}/{b * scale:.1f}' for a, b in zip(plain, probed))}; PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
sys.exit(sparse >= 0.01 and not cuda)
