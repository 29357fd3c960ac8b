# SPDX-License-Identifier: Apache-2.0
"""Stages of torch.distributed.pipelining: which modules are stages behind the first, and by what gradients are divided when all
micro-batches are through. Before its first step a stage calls its module, or autograd, to learn the shapes: that is no micro-batch."""
import functools
import weakref

from .boot import counted

_stages = weakref.WeakKeyDictionary()  # of a module its stage
_preparing = [0]  # stages that learn shapes


def watch(module, tell):
    """tell(name, value): a number of the step."""
    kind = module._PipelineStageBase
    made = kind.__init__

    def __init__(self, submodule, *args, **kwargs):
        made(self, submodule, *args, **kwargs)
        _stages[submodule] = weakref.ref(self)

    kind.__init__ = __init__
    for name in ("scale_grads", "perform_reduce_grad"):  # the second also where nothing is divided
        if hasattr(kind, name):
            setattr(kind, name, _telling(getattr(kind, name), tell))
    for one in list(vars(module).values()):
        for name in ("_prepare_forward_infra", "_prepare_backward_infra"):
            if isinstance(one, type) and issubclass(one, kind) and name in vars(one):
                setattr(one, name, counted(vars(one)[name], _preparing))


def is_preparing():
    return _preparing[0] > 0


def _telling(made, tell):
    @functools.wraps(made)
    def divide(self, factor, *args, **kwargs):
        tell("accumulation", self.chunks)
        tell("divided", factor)
        return made(self, factor, *args, **kwargs)
    return divide


def _stage(module):
    found = _stages.get(module)
    return found and found()


def is_later(module):
    stage = _stage(module)
    return stage is not None and stage.stage_index > 0


def axis(module):
    stage = _stage(module)
    return {} if stage is None else {"pipeline": [stage.group_size, stage.group_rank]}


def apart(modules, known):
    """Of each module {id(parameter): name}. Stages that count their layers by themselves, so that half of the names of one are those of
    another one's parameters, have their number in front, but the first; others where a name is there twice."""
    stages, keys = [_stage(module) for module in modules], {}
    for names in known:
        for key, name in names.items():
            keys.setdefault(name, set()).add(key)
    twice = {name for name, held in keys.items() if len(held) > 1}
    count = any(2 * sum(name in twice for name in names.values()) >= len(names) for names in known if names)
    chosen, first = set(keys) if count else twice, min((stage.stage_index for stage in stages if stage), default=0)
    return [{key: f"stage{stage.stage_index}.{name}" if name in chosen and stage.stage_index > (0 if count else first) else name
             for key, name in names.items()} if stage and twice else names for stage, names in zip(stages, known)]
