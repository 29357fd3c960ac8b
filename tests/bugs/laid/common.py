# SPDX-License-Identifier: Apache-2.0
"""What the trainings of this folder share. FAULT=NAME multiplies a rank's gradient of that parameter by 1.5 in the second step."""
import os

import torch
import torch.distributed as dist

STEPS, RATE = 3, 0.01
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def setting(name, default=1):
    return int(os.environ.get(name, default))


def begin():
    dist.init_process_group("gloo")


def numbers(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens(step, samples, length, vocabulary=64):
    return torch.randint(0, vocabulary, (samples, length), generator=torch.Generator().manual_seed(100 + step))


def share(x, at=rank, of=ranks):
    """Of all samples those of a rank."""
    each = len(x) // of
    return x[at * each:at * each + each]


def patch(module, *lines):
    """Has the lines of an installed module otherwise, as a release with a bug had them."""
    import importlib
    made = importlib.import_module(module)
    with open(made.__file__) as file:
        source = file.read()
    for old, new in lines:
        assert old in source, f"{module} has no line {old!r}"
        source = source.replace(old, new)
    exec(compile(source, made.__file__, "exec"), made.__dict__)
    return made


def plant(model, step, behind=False):
    """The fault, behind what records gradients of micro-batches. behind: in the gradients that backward left."""
    wanted = os.environ.get("FAULT")
    for name, p in model.named_parameters() if wanted and step == 1 else ():
        if name.endswith(wanted) and behind:
            p.grad.mul_(1.5)
        elif name.endswith(wanted):
            p.register_hook(lambda gradient: gradient * 1.5)
