# SPDX-License-Identifier: Apache-2.0
"""Which optimizer, which modules, which layout: of whatever a training has."""
import atexit
import gc
import os

import torch

from . import deepspeed, fsdp, megatron
from .layouts import Layout
from .recorder import Recorder
from .say import guarded, say
from .sketch import is_golden

recorders = []  # that record


class Off:
    """What attach() gives where nothing is recorded."""

    every = 0

    def loss(self, value):
        pass

    def close(self):
        pass


def _settings(folder, every, values, outputs=()):
    folder = os.environ.get("ZS_PROBE") or folder
    if is_golden():  # ZS_PROBE=golden or golden:FOLDER
        folder = folder.partition(":")[2] or "golden"
    if every is None and os.environ.get("ZS_PROBE_EVERY"):
        every = int(os.environ["ZS_PROBE_EVERY"])
        if every < 1:
            raise ValueError("ZS_PROBE_EVERY: expected a whole number of at least 1")
    asked = os.environ.get("ZS_PROBE_VALUES", "")
    if values is None and asked:
        values = True if asked == "all" else {int(step) for step in asked.split(",")}
    return folder, every, values or False, tuple(p for p in os.environ.get("ZS_PROBE_OUTPUTS", "").split(",") if p) or tuple(outputs)


def roots_of(optimizer):
    """The outermost modules that own parameters of an optimizer, of all that live in this process."""
    wanted = {id(p) for group in optimizer.param_groups for p in group["params"]}
    modules = [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module) and "_modules" in m.__dict__]
    children = {id(c) for m in modules for c in m._modules.values()}
    return [m for m in modules if id(m) not in children and any(id(p) in wanted for p in m.parameters())]


def forget(parameters):
    """Ends the recorders whose optimizers move one of these parameters, which another one moves now; the other optimizers of
    such a recorder, which move none of them."""
    ids, others = {id(p) for p in parameters}, []
    for recorder in list(recorders):
        if any(id(p) in ids for p in recorder.layout.moved()):
            recorder.layout.detach()
            recorders.remove(recorder)
            others += [o for o in recorder.layout.optimizers if not any(id(p) in ids for g in o.param_groups for p in g["params"])]
    return others


def end(parameters):
    """Ends the recorders of a model that an engine has taken."""
    ids = {id(p) for p in parameters}
    for recorder in list(recorders):
        if any(id(p) in ids for p in recorder.parameters):
            recorder.layout.detach()
            recorders.remove(recorder)


def of_model(parameters):
    """The recorder of a model that these parameters belong to, which another optimizer moves in part."""
    ids = {id(p) for p in parameters}
    return next((r for r in recorders if not r.closed and any(id(p) in ids for p in r.parameters)), None)


def start(layout, folder, every, values, outputs=()):
    """A recorder of a layout, with its hooks."""
    recorder = Recorder(layout, folder, every, values, outputs)
    know(recorder)
    layout.attach(recorder)
    recorders.append(recorder)
    atexit.register(guarded(recorder.close))
    return recorder


def know(recorder):
    """The parameters of its model, and which of them are frozen."""
    layout = recorder.layout
    recorder.parameters = layout.moved()
    if layout.roots and hasattr(layout.roots[0], "parameters"):
        known = {id(p) for p in recorder.parameters}
        recorder.parameters += [p for root in layout.roots for p in root.parameters() if id(p) not in known]
    still = {id(p) for p in recorder.parameters if not p.requires_grad}
    layout.frozen = sorted(name for key, name in layout.names().items() if key in still)


def of_engine(engine, folder="probe", every=None, values=None, outputs=()):
    layout = deepspeed.layout(engine)
    if layout is None:
        return Off()
    end(engine.module.parameters())
    return start(layout, *_settings(folder, every, values, outputs))


def of_megatron(optimizer, folder="probe", every=None, values=None, outputs=()):
    """Megatron-core chains distributed optimizers: one for experts, one for the rest."""
    known = next((r for r in recorders if isinstance(r.layout, megatron.Megatron)), None)
    for one in megatron.inner(optimizer):
        if known and one in known.layout.distributed or getattr(one, "is_stub_optimizer", False):
            continue
        if known:
            known.layout.join(one)
            continue
        end([p for chunk in one.model_chunks for p in chunk.parameters()])
        layout = megatron.layout(one)
        known = layout and start(layout, *_settings(folder, every, values, outputs))
    return known or Off()


def of_optimizer(roots, optimizer, folder="probe", every=None, values=None, outputs=()):
    known = of_model([p for group in optimizer.param_groups for p in group["params"]])
    if known and known.folder == str(_settings(folder, every, values)[0]):
        known.layout.add(optimizer)
        know(known)
        return known
    modules = [r for r in roots if hasattr(r, "_modules")]
    kind = megatron.Chunks if any(megatron.is_model(r) for r in modules) else Layout
    layout = fsdp.layout(modules, optimizer) or kind(roots, optimizer)
    known = layout.names()
    lost = sum(id(p) not in known for group in optimizer.param_groups for p in group["params"])
    if lost:
        say(f"{lost} of the optimizer's parameters are in none of the given modules: they are recorded as unnamed.N")
    return start(layout, *_settings(folder, every, values, outputs))


def _torch_optimizer(optimizer):
    """What a wrapper (Accelerate's, Lightning's) holds."""
    while hasattr(optimizer, "optimizer") and not (isinstance(optimizer, torch.optim.Optimizer) and "defaults" in vars(optimizer)):
        optimizer = optimizer.optimizer
    return getattr(optimizer, "_optimizer", optimizer)


def attach(x, optimizer=None, folder="probe", every=None, values=None, outputs=()):
    """Records the steps of a training into `folder`; on every rank, each of which writes its own file. `x` is a DeepSpeed
    engine, a Trainer of transformers, a Trainer of Lightning, (model, optimizer), or a model, with its optimizer."""
    if os.environ.get("ZS_PROBE", folder) == "off":
        return Off()
    if isinstance(x, (tuple, list)) and len(x) == 2:
        x, optimizer = x
    if deepspeed.is_engine(x):
        for recorder in recorders:  # ZS_PROBE attached it already
            if getattr(recorder.layout, "engine", None) is x and not recorder.closed:
                return recorder
        return of_engine(x, folder, every, values, outputs)
    kinds = {kind.__name__ for kind in type(x).__mro__}
    if hasattr(x, "add_callback") and "Trainer" in kinds:
        from .callbacks import TrainerCallback
        x.add_callback(TrainerCallback(folder, every, values, trainer=x))
        return x
    if "Trainer" in kinds and hasattr(x, "callbacks"):
        from .callbacks import lightning_callback
        x.callbacks.append(lightning_callback(folder, every, values))
        return x
    if optimizer is None:
        raise TypeError(f"zs_probe.attach: a {type(x).__name__} is neither an engine nor a trainer: call attach(model, optimizer)")
    if megatron.inner(optimizer):
        return of_megatron(optimizer, folder, every, values, outputs)
    inner = _torch_optimizer(optimizer)
    if not isinstance(inner, torch.optim.Optimizer):
        raise TypeError(f"zs_probe.attach: a {type(optimizer).__name__} is no torch optimizer; for DeepSpeed pass the engine")
    for recorder in list(recorders):
        if inner in recorder.layout.optimizers:
            if len(recorder.layout.optimizers) > 1:
                return recorder
            recorder.layout.detach()
            recorders.remove(recorder)
    return of_optimizer([x], inner, folder, every, values, outputs)
