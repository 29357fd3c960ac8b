# SPDX-License-Identifier: Apache-2.0
"""Trainers that call back: transformers' and Lightning's."""
from . import attaching, deepspeed
from .say import guarded

try:
    from transformers import TrainerCallback as _Base
except ImportError:  # pragma: no cover
    _Base = object


class TrainerCallback(_Base):
    """`Trainer(..., callbacks=[zs_probe.TrainerCallback("probe-a")])`."""

    def __init__(self, folder="probe", every=None, values=None, trainer=None):
        self.asked, self.trainer, self.probe = (folder, every, values), trainer, None

    @guarded
    def _begin(self, model, optimizer):
        wrapped = getattr(self.trainer, "model_wrapped", None)
        for engine in (wrapped, model):
            if engine is not None and deepspeed.is_engine(engine):
                self.probe = attaching.attach(engine, None, *self.asked)
                return
        self.probe = attaching.attach(wrapped if wrapped is not None else model, optimizer, *self.asked)

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
        if model is not None and optimizer is not None:
            self._begin(model, optimizer)

    def on_train_end(self, args, state, control, **kwargs):
        if self.probe is not None:
            guarded(self.probe.close)()


def lightning_callback(folder="probe", every=None, values=None):
    """A callback of Lightning, of whichever of its packages is imported."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

    class Probe(Callback):
        def __init__(self):
            self.probes = []

        @guarded
        def _begin(self, trainer, module):
            model = trainer.strategy.model or module
            if deepspeed.is_engine(model):
                self.probes.append(attaching.attach(model, None, folder, every, values))
                return
            for optimizer in trainer.optimizers:
                self.probes.append(attaching.attach(model, optimizer, folder, every, values))

        def on_train_start(self, trainer, pl_module):
            self._begin(trainer, pl_module)

        def on_train_end(self, trainer, pl_module):
            for probe in self.probes:
                guarded(probe.close)()

    return Probe()
