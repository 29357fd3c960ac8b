# SPDX-License-Identifier: Apache-2.0
"""Attaches by itself where $ZS_PROBE names a folder: to each optimizer of torch that a training makes, and to each engine
of DeepSpeed. Imports neither torch nor DeepSpeed: it waits until the training does."""
import functools
import importlib.abc
import importlib.util
import os
import sys
import time

inside = [0]  # calls under way, of deepspeed.initialize for example, that make optimizers of their own
_active, _ends = [], []


def activate():
    """Once a process; nothing without $ZS_PROBE."""
    if _active or os.environ.get("ZS_PROBE", "off") in ("", "off"):
        return
    _active.append(True)
    finder = _Finder({"torch.optim.optimizer": _watch_optimizers, "torch.nn.modules.module": lambda module: _watch_zeroing(module.Module), "torch.nn.utils": _watch_clipping, "torch._tensor": _watch_backward,
                      "torch.distributed.fsdp.fully_sharded_data_parallel": _watch_fsdp1, "torch.amp.grad_scaler": _watch_scaling,
                      "torch.distributed.optim.zero_redundancy_optimizer": _watch_shares,
                      "deepspeed": _watch_deepspeed, "megatron.core.optimizer.distrib_optimizer": _watch_megatron,
                      "megatron.core.optimizer.clip_grads": _watch_megatron_norm,
                      "transformers.generation.utils": _watch_generation, "trl.generation.vllm_generation": _watch_engine,
                      "torch.utils.cpp_extension": _watch_compiling, "torch.distributed.pipelining.stage": _watch_stages,
                      "verl.utils.debug.metrics": _watch_batches("watch_verl"),
                      "openrlhf.trainer.ppo_utils.experience_maker": _watch_batches("watch_openrlhf"), **_trainers()})
    for name in list(finder.watched):
        if name in sys.modules:
            finder.watched.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, finder)
    _watch_processes()
    _watch_exit()


class _Finder(importlib.abc.MetaPathFinder):
    """Calls back with a module when it has been imported."""

    def __init__(self, watched):
        self.watched, self.asking = watched, set()

    def find_spec(self, name, path, target=None):
        after = self.watched.get(name)
        if after is None or name in self.asking:
            return None
        self.asking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.asking.discard(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        # Who only asks whether there is such a module (transformers does of deepspeed) imports none.
        def exec_module(module):
            execute(module)
            if self.watched.pop(name, None):
                _quietly(after, module)

        spec.loader.exec_module = exec_module
        return spec


def _quietly(function, *args):
    from .say import guarded
    return guarded(function)(*args)


def _watch_optimizers(module):
    kind = module.Optimizer
    made = kind.__init__

    def __init__(self, *args, **kwargs):
        made(self, *args, **kwargs)
        _quietly(_rates, self)
        held = getattr(self, "optimizers", None)  # of one that only calls others, as torchtitan's
        if not inside[0] and not held and os.environ.get("ZS_PROBE", "off") not in ("", "off"):  # a test before may have been recorded
            _quietly(_optimizer, self)

    kind.__init__ = __init__
    _watch_zeroing(kind)


def _watch_zeroing(kind):
    made = kind.zero_grad

    @functools.wraps(made)
    def zero_grad(self, *args, **kwargs):
        _tell("zeroed", self)
        return made(self, *args, **kwargs)

    kind.zero_grad = zero_grad


def _rates(optimizer):
    from . import schedules
    schedules.begin(optimizer)


def _optimizer(optimizer):
    from . import attaching
    from .say import say
    roots = attaching.roots_of(optimizer)
    mine = [p for group in optimizer.param_groups for p in group["params"]]
    if not roots:
        say(f"an optimizer ({type(optimizer).__name__}) is not recorded, since its parameters belong to no module: call zs_probe.attach(model, optimizer)")
        _unrecorded(optimizer, "whose parameters belong to no module")
        return
    others = attaching.forget(mine)
    if attaching.recorders and not attaching.of_model(mine):
        _unrecorded(optimizer, "of another model")
        return
    for one in (optimizer, *others):
        attaching.of_optimizer(roots, one)


def _unrecorded(optimizer, which):
    """An optimizer that makes a step which is not recorded."""
    from .say import unseen
    text = f"another optimizer ({type(optimizer).__name__}), {which}, is not recorded"
    if hasattr(optimizer, "register_step_post_hook"):
        optimizer.register_step_post_hook(lambda *_: unseen(text))
    else:
        unseen(text)


def _trainers():
    """Of TRL: those that generate."""
    from .generating import TRAINERS

    def watcher(kind):
        def watch(module):
            from .generating import watch_trainer
            watch_trainer(kind, module)
        return watch
    return {module: watcher(kind) for module, kind in TRAINERS.items()}


def _watch_compiling(module):
    """DeepSpeed and others compile operations at their first use, and print nothing meanwhile."""
    made = module.load

    def load(name, *args, **kwargs):
        _quietly(_compiles, name, kwargs.get("build_directory") or module._get_build_directory(name, False))
        return made(name, *args, **kwargs)

    module.load = load


def _compiles(name, folder):
    from .say import say
    lock = os.path.join(folder, "lock")
    age = time.time() - os.path.getmtime(lock) if os.path.exists(lock) else 0
    if age > 60:
        say(f"{name} waits for another process to compile it: {lock} is {age / 60:.0f} minutes old; if no process compiles, delete that file")
    elif os.environ.get("LOCAL_RANK", "0") == "0" and not os.path.exists(os.path.join(folder, f"{name}.so")):
        say(f"PyTorch compiles {name} for its first use, which can take minutes; later runs find it in {folder}")


def _watch_batches(name):
    def watch(module):
        from . import batches
        getattr(batches, name)(module)
    return watch


def _watch_stages(module):
    from .pipelining import watch
    watch(module, lambda name, value: _tell("scalar", name, value))


def _watch_engine(module):
    from .engines import watch_engine
    watch_engine(module)


def _watch_generation(module):
    from .generating import watch_generation
    watch_generation(module)


def _watch_deepspeed(module):
    made = counted(module.initialize, inside)

    def initialize(*args, **kwargs):
        result = made(*args, **kwargs)
        _quietly(_engine, result[0])
        return result

    module.initialize = initialize


def _watch_shares(module):
    """The optimizer of a rank's share is the matter of the one that makes it."""
    kind = module.ZeroRedundancyOptimizer
    kind._init_local_optimizer = counted(kind._init_local_optimizer, inside)


def counted(made, calls):
    """made, which counts its calls under way in calls[0]."""
    @functools.wraps(made)
    def call(*args, **kwargs):
        calls[0] += 1
        try:
            return made(*args, **kwargs)
        finally:
            calls[0] -= 1
    return call


def _engine(engine):
    from . import attaching
    inner = getattr(engine.optimizer, "optimizer", engine.optimizer)
    if hasattr(inner, "param_groups") and attaching.recorders and not attaching.of_model(engine.module.parameters()):
        _unrecorded(inner, "of another model")
        return
    attaching.of_engine(engine)


def _watch_megatron(module):
    kind = module.DistributedOptimizer
    made = kind.__init__

    def __init__(self, *args, **kwargs):
        made(self, *args, **kwargs)
        _quietly(_distributed, self)

    kind.__init__ = __init__


def _watch_megatron_norm(module):
    """The norm and the bound by which an optimizer of Megatron-core clips."""
    made = getattr(module, "clip_grad_by_total_norm_fp32", None)
    if made is None:
        return

    def clip_grad_by_total_norm_fp32(parameters, max_norm, total_norm, *args, **kwargs):
        _tell("clipped", total_norm, max_norm)
        return made(parameters, max_norm, total_norm, *args, **kwargs)

    module.clip_grad_by_total_norm_fp32 = clip_grad_by_total_norm_fp32


def _distributed(optimizer):
    from . import attaching
    attaching.of_megatron(optimizer)


def _watch_backward(module):
    made, depth = module.Tensor.backward, [0]

    def backward(self, *args, **kwargs):
        if depth[0] == 0 and self.numel() == 1:
            _tell("backward", self)
        depth[0] += 1
        try:
            return made(self, *args, **kwargs)
        finally:
            depth[0] -= 1

    module.Tensor.backward = backward


def _watch_clipping(module):
    made = getattr(module, "clip_grad_norm_", None)
    if made is None:
        return

    def clip_grad_norm_(parameters, max_norm, norm_type=2.0, *args, **kwargs):
        parameters = parameters if hasattr(parameters, "grad") else list(parameters)
        norm = made(parameters, max_norm, norm_type, *args, **kwargs)
        _tell("clipped", norm, max_norm, norm_type, [parameters] if hasattr(parameters, "grad") else parameters)
        return norm

    module.clip_grad_norm_ = clip_grad_norm_
    with_norm, total, kind = getattr(module, "clip_grads_with_norm_", None), getattr(module, "get_total_norm", None), [2.0]
    if with_norm and total:  # the two halves of it, which a loop may call by itself

        def get_total_norm(tensors, norm_type=2.0, *args, **kwargs):
            kind[0] = norm_type
            return total(tensors, norm_type, *args, **kwargs)

        def clip_grads_with_norm_(parameters, max_norm, total_norm, *args, **kwargs):
            parameters = [parameters] if hasattr(parameters, "grad") else list(parameters)
            with_norm(parameters, max_norm, total_norm, *args, **kwargs)
            _tell("clipped", total_norm, max_norm, kind[0], parameters)

        module.get_total_norm, module.clip_grads_with_norm_ = get_total_norm, clip_grads_with_norm_
    by_value = module.clip_grad_value_

    def clip_grad_value_(parameters, clip_value, *args, **kwargs):
        by_value(parameters, clip_value, *args, **kwargs)
        _tell("clipped_by_value", clip_value)

    module.clip_grad_value_ = clip_grad_value_


def _watch_fsdp1(module):
    kind = module.FullyShardedDataParallel
    made = kind.clip_grad_norm_

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        norm = made(self, max_norm, norm_type)
        _tell("clipped", norm, max_norm, norm_type)
        return norm

    kind.clip_grad_norm_ = clip_grad_norm_


def _watch_scaling(module):
    """A class derived from it may scale by a method of its own, as FSDP's ShardedGradScaler does."""
    kind = module.GradScaler
    begins = kind.__init__

    @functools.wraps(begins)
    def __init__(self, *args, **kwargs):
        begins(self, *args, **kwargs)
        for one in type(self).__mro__:
            if "scale" in vars(one) and not hasattr(one.scale, "zs_probe"):
                one.scale = _telling_scale(one.scale)

    kind.__init__ = __init__
    steps = kind.step

    @functools.wraps(steps)
    def step(self, optimizer, *args, **kwargs):
        _tell("scaled", optimizer, False)
        result = steps(self, optimizer, *args, **kwargs)
        _tell("scaled", optimizer, True)
        return result

    kind.step = step


def _telling_scale(made):
    @functools.wraps(made)
    def scale(self, *args, **kwargs):
        scaled = made(self, *args, **kwargs)
        if getattr(self, "_scale", None) is not None:
            _tell("scalar", "loss_scale", self._scale)
        return scaled

    scale.zs_probe = True
    return scale


def _tell(what, *args):
    attaching = sys.modules.get("zs_probe.attaching")
    for recorder in attaching.recorders if attaching else ():
        getattr(recorder, what)(*args)


def _watch_processes():
    """Processes that are spawned begin without our hooks: their target brings them."""
    from multiprocessing import process
    made = process.BaseProcess.__init__

    def __init__(self, *args, **kwargs):
        made(self, *args, **kwargs)
        if self._target is not None and not isinstance(self._target, _Child):
            self._target = _Child(self._target)

    process.BaseProcess.__init__ = __init__


class _Child:
    """A process's target, with the probe."""

    def __init__(self, target):
        self.target = target

    def __call__(self, *args, **kwargs):
        activate()
        try:
            return self.target(*args, **kwargs)
        except BaseException as error:
            ends(error)
            raise
        finally:  # multiprocessing ends a process that it forked without atexit
            attaching = sys.modules.get("zs_probe.attaching")
            for recorder in list(attaching.recorders) if attaching else ():
                _quietly(recorder.close)


def ends(error):
    """Notes what ends the training."""
    if isinstance(error, SystemExit):
        if error.code not in (None, 0):
            _ends.append(f"exit {error.code}" if isinstance(error.code, int) else f"exit 1: {error.code}")
    else:
        _ends.append(f"exception {type(error).__name__}: {error}")


def how_it_ends():
    """`whole`, or what ended the training before its end: an exception that nobody caught, an exit status."""
    if not _ends:
        error = sys.exc_info()[1] or getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if error is not None:
            ends(error)
    return " ".join(_ends[0].split())[:200] if _ends else "whole"


def _watch_exit():
    """The status that a training hands to sys.exit(): nothing tells it at the end."""
    import threading
    leave = sys.exit

    def exit(status=None):
        if threading.current_thread() is threading.main_thread():
            ends(SystemExit(status))
        leave(status)

    sys.exit = exit
