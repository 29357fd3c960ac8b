# SPDX-License-Identifier: Apache-2.0
"""Records the steps of one optimizer: what a layout shows of its tensors, in causal order."""
import hashlib
import math
import os
import random
import time

import torch

from .boot import inside
from .part import Part, Unseen
from .say import guarded, say
from .sketch import measure, perturb, tables
from .writer import Taken, Writer, finish, type_name

_FIRST = 16  # steps that are recorded whatever they cost


def ranks():
    """(rank, world size) of this process."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


class Recorder:
    """What attach() gives. `layout` shows the tensors (layouts.py)."""

    def __init__(self, layout, folder, every=None, values=False, outputs=()):
        self.layout, self.folder, self.every, self.values, self.patterns = layout, str(folder), every, values, outputs
        self.rank, self.world_size = ranks()
        self.step, self._offset, self._counted, self._writer, self._off, self._pid = 0, None, None, None, False, os.getpid()
        self._loss, self._losses, self._scalars, self._batch = None, [], {}, []
        self._locals, self._micro, self._fired = [], 0, set()
        self._outputs, self._inside, self._perturbed = [], False, False
        self._rows, self._kept, self._groups, self._open = [], {}, [], False
        self._found, self._computed, self._left = None, None, (None, {})
        self._last, self._spent, self._begun, self._written, self._started = time.monotonic(), 0.0, 0.0, 0, False
        for device in layout.devices():
            tables(device)  # what is made once is no cost of a step

    # ---- what the training's hooks call ------------------------------------------------------------------------------
    def due(self):
        """Whether the step under way (the one after `step`) is recorded."""
        if self._off:
            return False
        step = self.step + 1
        return self.every is None or step % self.every == 0 or step == 1

    @guarded
    def local(self, name, gradient, part, by=0):
        """A micro-batch's gradient of a parameter, while backward has it."""
        if not self.due():
            return
        if name in self._fired:  # the next micro-batch has begun
            self._micro, self._fired = self._micro + 1, set()
        self._fired.add(name)
        begun = time.monotonic()
        self._locals.append({"name": name, "micro": self._micro, "by": by, **self._row(gradient.reshape(-1), part)})
        self._spent += time.monotonic() - begun

    @guarded
    def samples(self, digests):
        if self.due():
            self._batch.append(digests)

    @guarded
    def output(self, name, tensor):
        """What a module made of the micro-batch under way: of each sample, which is known by its digest."""
        samples = self._batch[-1] if self._batch else []
        if not self._inside or not self.due():
            return
        if tensor.dim() < 1 or tensor.shape[0] != len(samples) or hasattr(tensor, "placements"):
            say(f"outputs of {name} are not recorded: their first axis is none of samples")
            return
        begun = time.monotonic()
        with torch.no_grad():
            for digest, sample in zip(samples, tensor.detach()):
                self._outputs.append({"name": name, "sample": digest, **self._row(sample.reshape(-1), Part(sample.shape))})
        self._spent += time.monotonic() - begun

    def left(self):
        """The end of a forward: what runs modules after it, in backward, computes again what was there before."""
        self._inside = False

    @guarded
    def forward(self, computed):
        """A step's first forward: what it computes with, where that is not what the last update left; and in which type."""
        self._inside = True
        if not self._perturbed:
            self._perturbed = True
            if os.environ.get("ZS_PROBE_PERTURB"):
                self._perturb(int(os.environ["ZS_PROBE_PERTURB"]))
        if not self.due():
            return
        self._computed = computed or self._computed
        if self._found is None and self._left[0] == self.step:
            begun = time.monotonic()
            with torch.no_grad():
                self._found = [{"name": name, **self._row(flat, part)} for name, flat, part in self.layout.parameters()]
            self._spent += time.monotonic() - begun

    @guarded
    def backward(self, loss):
        """The loss that a micro-batch's backward begins with."""
        if self.due() and len(self._losses) < 4096:
            self._losses.append(loss.detach())

    @guarded
    def scalar(self, name, value):
        """A number of this step: norm, clip, loss_scale."""
        if self.due() and value is not None:
            self._scalars[name] = value.detach() if torch.is_tensor(value) else float(value)

    def loss(self, value):
        """The loss of the step, if it is to be compared. A number of a GPU is waited for where it is written alone."""
        self._loss = value.detach() if torch.is_tensor(value) else float(value)

    @guarded
    def before(self, optimizer):
        """As the optimizer gets its gradients; several times a step where it steps group by group."""
        if inside[0]:  # DeepSpeed makes its optimizers' state by a step without gradients: it is none of the training
            return
        if not self._open:
            self._open = True
            self._begin()
        if not self._due_now:
            return
        begun = time.monotonic()
        with torch.no_grad():
            for name, tensor, part in self.layout.gradients(optimizer):
                self._take(name, tensor, part)
            self._groups.extend(self.layout.options(optimizer))
        self._spent += time.monotonic() - begun

    @guarded
    def after(self):
        """As it leaves the parameters, once a step."""
        if not self._open:
            if not inside[0]:
                self._clear()  # an overflow: the update was skipped
            return
        self._open = False
        begun = time.monotonic()
        if self._due_now:
            self._take_after()
            self._write()
            self._spent += time.monotonic() - begun
        self._measure()
        self._clear()

    def close(self):
        self.layout.detach()
        if self._off or self._pid != os.getpid():
            return
        if self._written < self.step:  # so that the end is compared, whatever the stride
            self._take_after(state=False)
            self._write()
        if self._writer:
            self._writer.line({"end": self.step, "rank": self.rank, "every": self.every})
            self._writer.close()
        self._off = True

    def _perturb(self, seed):
        """Moves each element of each parameter by one unit in the last place: a floor for what rounding does."""
        moved = 0
        with torch.no_grad():
            for name, flat, part in self.layout.parameters():
                moved += perturb(flat, part, seed, name.split("/", 1)[1])
        say(f"ZS_PROBE_PERTURB: {moved} elements of the parameters were moved by one unit in the last place")

    # ---- a step ------------------------------------------------------------------------------------------------------
    def _begin(self):
        self._due_now = self.due()
        self.layout.outside()
        counted = self.layout.counter()
        if self._offset is None:
            self._counted = counted if counted is not None else self.layout.steps_before()
            self._offset = self.step = int(os.environ.get("ZS_PROBE_STEPS_DONE") or self._counted or 0)
        self.step = counted + 1 + self._offset - self._counted if counted is not None else self.step + 1
        if self._off:
            self._due_now = False
            return
        if self._writer is None:
            self._make()
        if not self._started and self._writer:
            self._started = True
            rows, self._rows, self._kept = self._rows, [], {}
            with torch.no_grad():
                self._all(self.layout.states())
                self._all(self.layout.parameters())
            self._writer.line({"start": self.step - 1, "counted": self._counted, "tensors": finish(self._rows)})
            self._rows, self._kept = rows, {}

    def _make(self):
        self.rank, self.world_size = ranks()
        head = {"zs_probe": 2, "rank": self.rank, "world_size": self.world_size, "id": os.urandom(8).hex(), "torch": torch.__version__,
                "layout": self.layout.name, "framework": self.layout.framework, "tied": self.layout.ties,
                "frozen": self.layout.frozen, "unseen": self.layout.unseen}
        try:
            self._writer = Writer(self.folder, self.rank, head, self.step)
        except (Taken, OSError) as error:
            say(f"nothing is recorded: {error}")
            self._off, self._due_now = True, False
            return
        if not self.layout.names():
            say("the optimizer has no parameter that a module names")
        for text in self.layout.unseen:
            say(text)

    def _row(self, flat, part):
        row = {"dtype": type_name(flat.dtype), "of": part.of, "shape": part.shape, "begin": part.begin, "count": part.count}
        if part.runs is not None:
            row["runs"] = part.runs
        row["measured"] = measure(flat, part)
        return row

    def _take(self, name, flat, part):
        self._rows.append({"name": name, **self._row(flat, part)})
        if part.index is None and (self.values is True or (self.values and self.step in self.values)):
            self._kept[name] = flat.detach().clone()

    def _all(self, items):
        for name, flat, part in items:
            self._take(name, flat, part)

    def _take_after(self, state=True):
        with torch.no_grad():
            if state:
                self._all(self.layout.states())
            self._all(self.layout.parameters())

    def _write(self):
        if self._writer is None:
            return
        scalars = {**self.layout.scalars(), **self._scalars}
        left, found = self._left[1], finish(self._found or [])
        found = [{**row, "name": ("begin/" if row["name"].startswith("param/") else "begin.model/") + row["name"].split("/", 1)[1]}
                 for row in found if row["digest"] != left.get(row["name"], row["digest"])]
        rows = finish(self._rows)
        self._left = (self.step, {row["name"]: row["digest"] for row in rows if row["name"].startswith(("param/", "model/"))})
        self._writer.line({
            "step": self.step, "computed": self._computed, "loss": _number(self._loss), "losses": [_number(x) for x in self._losses],
            "scalars": {key: _number(value) for key, value in scalars.items() if value is not None}, "groups": self._groups,
            "batch": self._batch, "rng": _generators(), "outputs": finish(self._outputs), "locals": finish(self._locals), "tensors": found + rows,
            "values": self._writer.values(self.step, self._kept) if self._kept else None})
        self._written = self.step

    def _measure(self):
        """After the first steps every 2^n-th is recorded, so that recording takes at most 3 % of the time."""
        now = time.monotonic()
        if self.every is None and self.step - (self._offset or 0) == _FIRST:
            share = self._spent / max(1e-9, now - self._last - self._spent)
            self.every = 1 if share < 0.03 else 1 << math.ceil(math.log2(share / 0.03))
        self._last, self._spent = now, 0.0

    def _clear(self):
        self._found = None
        self._loss, self._losses, self._scalars, self._batch = None, [], {}, []
        self._locals, self._micro, self._fired = [], 0, set()
        self._outputs, self._inside = [], False
        self._rows, self._kept, self._groups = [], {}, []


def _number(value):
    if value is None:
        return None
    return float(value.double().item() if torch.is_tensor(value) else value)


def _generators():
    """A digest of each random generator's state."""
    def of(data):
        return hashlib.blake2b(data, digest_size=8).hexdigest()

    found = {"python": of(repr(random.getstate()).encode()), "torch": of(bytes(torch.get_rng_state().tolist()))}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = of(bytes(torch.cuda.get_rng_state().tolist()))
    return found


__all__ = ["Recorder", "Unseen", "ranks"]
