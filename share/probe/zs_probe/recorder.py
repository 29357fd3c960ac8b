# SPDX-License-Identifier: Apache-2.0
"""Records the steps of a model's optimizers: what a layout shows of its tensors, in causal order."""
import hashlib
import os
import random
import sys

import torch

from . import elements, measuring, say as said_so, schedules, sketch
from .boot import how_it_ends, inside
from .cost import Cost
from .environment import environment
from .hooks import is_texts, tensors_in
from .part import is_dtensor, whole
from .say import guarded, say, unseen
from .sketch import perturb, samples
from .writer import Pen, Row, Taken, Transfer, Writer, finish, raw, vectors

_MASK = (1 << 64) - 1
_GOLDEN, _ROW = 100_000, 185  # bytes: of a golden, beside its floor of as many; of a row with a short sketch
_BEGIN = {"param": "begin/", "model": "begin.model/"}  # a place, and that of the same tensors as forward finds them


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
        self._loss, self._losses, self._scalars, self._batch, self._targets = None, [], {}, [], []
        self._locals, self._micro, self._fired = [], {}, {}
        self._outputs, self._inside, self._perturbed = [], False, False
        self._rows, self._kept, self._groups, self._schedules, self._open, self._stepped = [], {}, [], [], False, set()
        self._buffers, self._constant = [], {}  # of buffers that have not changed the digests
        self._found, self._computed, self._left, self._digests = None, None, (None, ()), {}
        self._pen, self._cost, self._written, self._started = Pen(), Cost(every is None and not sketch.SHORT), 0, False
        self._since, self._told = None if every is None else 0, 0  # the stride holds from this step on; sentences that the record has
        self._stage = measuring.Stage(self._cost.read)
        for device in layout.devices():
            measuring.prepare(device)  # what is made once is no cost of a step

    # ---- what the training's hooks call ------------------------------------------------------------------------------
    def due(self):
        """Whether the step under way (the one after `step`) is recorded."""
        if self._off:
            return False
        step = self.step + 1
        return self.every is None or step % self.every == 0 or step == 1

    @guarded
    def local(self, name, gradient, part, by=0, root=0):
        """A micro-batch's gradient of a parameter, while backward has it. root: the number of its module: virtual stages take turns."""
        if not self.due():
            return
        with self._cost:
            fired = self._fired.get(root)
            if fired is None:
                fired = self._fired[root] = set()
            elif name in fired:  # the next micro-batch has begun
                self._micro[root] = self._micro.get(root, 0) + 1
                fired.clear()
            fired.add(name)
            row = Row(name, gradient.dtype, part, None, (("micro", self._micro.get(root, 0)), ("by", by)))
            self._stage.add(row, gradient.detach() if gradient.requires_grad else gradient, part)
            self._locals.append(row)

    @guarded
    def samples(self, tensors, targets=None):
        """A micro-batch. targets: how many of its labels the loss counts; None where the model gets no labels."""
        if self.due():
            with self._cost:
                digests = samples(tensors)
                self._batch.append(torch.zeros(0, dtype=torch.int64) if digests is None else digests)
                self._targets.append(targets)

    @guarded
    def output(self, name, tensor):
        """What a module made of the micro-batch under way: of each sample, which is known by its digest."""
        if not self._inside or not self.due():
            return
        micro = len(self._batch) - 1
        if tensor.dim() < 1 or tensor.shape[0] != (len(self._batch[-1]) if self._batch else 0) or hasattr(tensor, "placements"):
            unseen(f"outputs of {name} are not recorded: their first axis is not that of samples")
            return
        with self._cost, torch.no_grad():
            made = [(sample, whole(sample)) for sample in tensor.detach().unbind()]
            for number, ((sample, part), measured) in enumerate(zip(made, self._cost.read(made))):
                self._outputs.append((micro, number, Row(name, sample.dtype, part, measured)))

    def left(self):
        """The end of a forward: what runs modules after it, in backward, computes again what was there before."""
        self._inside = False

    @guarded
    def forward(self, computed):
        """A step's first forward: what it computes with, where that is not what the last update left; and in which type."""
        self._end_step()
        self._inside = True
        if not self._perturbed:
            self._perturbed = True
            if os.environ.get("ZS_PROBE_PERTURB"):
                self._perturb(int(os.environ["ZS_PROBE_PERTURB"]))
        if not self.due():
            return
        self._computed = computed or self._computed
        if self._found is None and self._left[0] == self.step:
            with self._cost, torch.no_grad():
                self._found = self._taken(self.layout.parameters(), self._left[1])
                for row in self._found:
                    place, _, name = row.name.partition("/")
                    row.name = _BEGIN[place] + name

    @guarded
    def backward(self, loss):
        """The loss that a micro-batch's backward begins with."""
        if self.due() and len(self._losses) < 4096:
            self._losses.append(_single(loss))

    @property
    def begun(self):
        """The loss that the last backward began with; None where it was not seen."""
        return self._losses[-1] if self._losses else None

    @guarded
    def scalar(self, name, value):
        """A number of this step: norm, clip, loss_scale."""
        if self.due() and value is not None:
            if is_dtensor(value) and any(p.is_partial() for p in value.placements):
                self._scalars[name + "_squares"] = _squares(value)
            else:
                self._scalars[name] = _single(value)

    @guarded
    def clipped(self, norm, bound, norm_type=2.0, parameters=None):
        """The norm of gradients and its bound: of all that the optimizers move. Of a part of them only how often it was clipped."""
        if not self.due():
            return
        ids = None if parameters is None else {id(p) for p in parameters}
        if float(norm_type) == 2 and (ids is None or all(id(p) in ids for p in self.layout.moved() if p.grad is not None)):
            self.scalar("norm", norm)
            self.scalar("clip", bound)
        else:
            self._scalars["clips"] = self._scalars.get("clips", 0) + 1

    def loss(self, value):
        """The loss of the step, if it is to be compared. A number of a GPU is waited for where it is written alone."""
        self._loss = _single(value)

    @guarded
    def before(self, optimizer):
        """As the optimizer gets its gradients; several times a step where it steps group by group."""
        if inside[0]:  # DeepSpeed makes its optimizers' state by a step without gradients: it is none of the training
            return
        if id(optimizer) in self._stepped:
            self._end_step()
        if not self._open:
            self._open = True
            self._begin()
        if not self._due_now:
            return
        with self._cost, torch.no_grad():
            self._stage.flush()
            self._take(self.layout.gradients(optimizer), measuring.FEW if getattr(optimizer, "grad_scale", None) is not None else None)
            self._groups.extend(self.layout.options(optimizer))
            if not self._schedules:
                self._schedules = self.layout.schedules()

    @guarded
    def after(self, optimizer=None):
        """As an optimizer leaves the parameters. A step ends when each has moved its own, at the latest with the next forward."""
        if not self._open:
            if not inside[0]:
                self._clear()  # an overflow: the update was skipped
            return
        if optimizer is not None:
            self._stepped.add(id(optimizer))
            if not all(id(one) in self._stepped for one in self.layout.optimizers):
                return
        self._finish_step()

    def _end_step(self):
        """A step that not all optimizers took part in."""
        if self._open and self._stepped:
            self._finish_step()

    def _finish_step(self):
        self._open = False
        if self._due_now:
            if self._written and self._locals and not self._batch and self.layout.sees_forward:
                unseen("no call of the model was seen: batches, outputs and the parameters that forward finds are not recorded; "
                    "where torch.compile(model) follows attach, attach behind it")
            with self._cost:
                self._take_after()
                self._write()
        if self.every is None:
            self.every = self._golden() if sketch.SHORT else self._cost.stride(self.step - (self._offset or 0))
            if self.every is not None:
                self._since = self.step
        self._clear()

    def _golden(self):
        """None while a golden has room for a step more; every rank finds the same, so that all have the same steps."""
        of_all = self.world_size * len(self.layout.names()) * _ROW
        step, rest = of_all * (max(self._micro.values(), default=0) + 6), of_all * 3  # rest: the start
        if rest + step > _GOLDEN:
            say(f"golden: a step takes about {(rest + step) // 1000} kB, more than {_GOLDEN // 1000}: record a smaller model")
        made = self.step - (self._offset or 0)
        return None if rest + (made + 1) * step <= _GOLDEN else 1 << 62

    @property
    def closed(self):
        return self._off

    def close(self):
        self.layout.detach()
        if self._off or self._pid != os.getpid():
            return
        self._end_step()
        if self._written < self.step and not sketch.SHORT:  # so that the end is compared, whatever the stride
            self._clear()
            self._take_after(state=False)
            self._write(only=("param", "model", "buffer"))
        last = self._last()
        self._pen.close()
        moved = sorted(name.partition("/")[2] for name, digest in last.items() if self._digests.get("begin/" + name.partition("/")[2], digest) != digest)
        if moved:
            unseen(f"what moved {moved[0]}{f' and {len(moved) - 1} more parameters' if moved[1:] else ''} after the last step")
        if self._writer:
            self._writer.line({"end": self.step, "rank": self.rank, "every": self.every, "since": self._since, "lines": self._writer.steps,
                               "how": how_it_ends(), "unseen": self._unseen()})
            self._writer.close()
        self._off = True

    def _last(self):
        """Digests of the parameters as they are, where what the last step left is known: something else may have moved them since."""
        if self._written < self.step or self._left[0] != self.step or how_it_ends() != "whole":
            return {}
        try:
            with torch.no_grad():
                rows = [row for row in self._taken(self.layout.parameters()) if row.name.startswith("param/")]
            return dict(zip((row.name for row in rows), finish(rows, Transfer([row.measured[0] for row in rows], vectors(rows)))[1]))
        except Exception:  # noqa: BLE001  what the training has taken apart is not its last state
            return {}

    def _unseen(self):
        """What is not seen and the record does not say yet."""
        known = [*self.layout.unseen, *said_so.not_seen]
        new, self._told = known[self._told:], len(known)
        return new

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
            with torch.no_grad():
                rows = self._taken(self.layout.states()) + self._taken(self.layout.parameters()) + self._taken(self.layout.buffers(True))
            transfer, said = Transfer([row.measured[0] for row in rows], vectors(rows)), {"start": self.step - 1, "counted": self._counted}

            def start():
                texts, digests = finish(rows, transfer)
                self._constant = {row.name: digest for row, digest in zip(rows, digests) if row.name.startswith("buffer/")}
                self._writer.line(said, tensors=texts)

            self._pen.later(start, transfer.waits)

    def _make(self):
        self.rank, self.world_size = ranks()
        if self.world_size > 1:
            self.layout.begin()
        head = {"zs_probe": 2, "rank": self.rank, "world_size": self.world_size, "id": os.urandom(8).hex(), "torch": torch.__version__,
                "layout": self.layout.name, "framework": self.layout.framework or _loop(), "tied": self.layout.ties,
                "frozen": self.layout.frozen, "loose": self.layout.loose(), "axes": guarded(self.layout.axes)() or {}, "unseen": self._unseen(),
                "environment": environment(self.layout.devices())}
        try:
            try:
                self._writer = Writer(self.folder, self.rank, head, self.step)
            except Taken as taken:
                if not self._continues(taken):
                    taken.leave_word()
                    raise
                self._offset = taken.last  # whose counter began again: the start says what it counted
                self.step = taken.last + 1
                self._due_now = self.every is None or self.step % self.every == 0
                self._writer = Writer(self.folder, self.rank, head, self.step)
        except (Taken, OSError) as error:
            say(f"nothing is recorded: {error}")
            self._off, self._due_now = True, False
            return
        schedules.find()
        if not self.layout.names():
            say("the optimizer has no parameter that a module names")
        for text in self.layout.unseen:
            say(text)

    def _continues(self, taken):
        """Whether the parameters are those that the training of that folder left."""
        with torch.no_grad():
            rows = self._taken(self.layout.parameters())
        digests = finish(rows, Transfer([row.measured[0] for row in rows], vectors(rows)))[1]
        return bool(rows) and all(taken.left.get(row.name) == digest for row, digest in zip(rows, digests) if row.name.startswith("param/"))

    def _taken(self, shown, earlier=(), keep=False):
        """Rows of what a layout shows."""
        shown = list(shown)
        if keep and (self.values is True or (self.values and self.step in self.values)):
            self._kept.update((name, flat.detach().clone().reshape(-1)) for name, flat, part in shown if part.index is None)
        items = [(flat, part) for _, flat, part in shown]
        found = self._cost.read(items, earlier)
        some = [None] * len(items) if sketch.SHORT else elements.take(items)
        return [Row(name, self.layout.types.get(name, flat.dtype), part, measured, () if part.summand is None else (("by", part.summand),), kept) for (name, flat, part), measured, kept in zip(shown, found, some)]

    def _take(self, shown, most=None):
        """Rows of this step. most: elements that are held at once, where a layout makes tensors as it shows them."""
        rows, waiting, held = [], [], 0
        for item in shown:
            waiting.append(item)
            held += item[2].count
            if most and held > most:
                rows += self._taken(waiting, keep=True)
                waiting, held = [], 0
        rows += self._taken(waiting, keep=True)
        self._rows += rows
        return rows

    def _take_after(self, state=True):
        with torch.no_grad():
            most = measuring.FEW if self.layout.makes() else None
            if state:
                self._take(self.layout.states(), most)
            rows = self._take(self.layout.parameters(), most)
            self._buffers = self._taken(self.layout.buffers())
        self._left = (self.step, measuring.readings([row.measured for row in rows]))

    def _write(self, only=None):
        """Begins to move the step's numbers; the pen writes them when they are there. only: places, of a row that has no others."""
        if self._writer is None:
            return
        scalars = {key: value for key, value in {**self.layout.scalars(), **self._scalars}.items() if value is not None}
        said = {"step": self.step, "computed": self._computed, "loss": self._loss, "losses": self._losses, "scalars": scalars,
                "groups": self._groups, "schedules": self._schedules, "batch": self._batch, "targets": self._targets, "rng": _generators(),
                "counters": []}
        counted, steps = [], []
        for names, count in () if only else self.layout.counters():
            counted.append(names)
            steps.append(count)
        if only:
            said = {"step": self.step, "only": list(only), "computed": None, "loss": None, "losses": [], "scalars": {}, "groups": [], "schedules": [],
                    "batch": [], "targets": [], "counters": []}
        said["counters"] = steps
        new = self._unseen()
        if new:
            said["unseen"] = new
        rows, found, outputs, micros, kept, step = self._rows, self._found or [], self._outputs, self._locals, self._kept, self.step
        buffers = self._buffers
        joined, place = _joined(tensors_in([said[key] for key in ("loss", "losses", "scalars", "groups", "targets", "counters")]))
        transfer = Transfer([row.measured[0] for row in (*rows, *found, *micros, *buffers, *(row for _, _, row in outputs))],
                            [*joined, *self._batch, *vectors((*rows, *found, *buffers))])
        timed = self._cost.timed()

        def write():
            said["batch"] = [[f"{digest & _MASK:016x}" for digest in transfer.numbers(vector, "q")] for vector in said["batch"]]
            singles = [number for vector in joined for number in transfer.numbers(vector)]
            for key in ("loss", "losses", "scalars", "groups", "counters"):
                said[key] = _numbers(said[key], lambda t: singles[place[id(t)]])
            said["targets"] = _numbers(said["targets"], lambda t: int(singles[place[id(t)]]))
            said["counters"] = _by_value(zip(counted, said["counters"]))
            said["values"] = self._writer.values(step, kept) if kept else None
            for micro, number, row in outputs:
                row.more = (("sample", said["batch"][micro][number]),)
            made, digests = finish(rows, transfer)
            begun = dict(zip((row.name for row in found), finish(found, transfer)[1]))
            changed = [row for row in found if begun[row.name] != self._digests.get(row.name, begun[row.name])]
            self._digests = {_BEGIN[kind] + of: digest for (kind, _, of), digest in zip((row.name.partition("/") for row in rows), digests)
                             if kind in _BEGIN}
            moved = [row for row, digest in zip(buffers, finish(buffers, transfer)[1]) if self._constant.get(row.name) != digest]
            for row in moved:
                self._constant.pop(row.name, None)
            self._writer.line(said, outputs=finish([row for _, _, row in outputs], transfer)[0], locals=finish(micros, transfer)[0],
                              tensors=b", ".join(text for text in (finish(changed, transfer)[0], made, finish(moved, transfer)[0]) if text))
            timed()

        self._pen.later(write, transfer.waits)
        self._written = self.step

    def _clear(self):
        self._stage.flush()
        self._found = None
        self._loss, self._losses, self._scalars, self._batch, self._targets = None, [], {}, [], []
        self._locals, self._micro, self._fired = [], {}, {}
        self._outputs, self._inside = [], False
        self._rows, self._kept, self._groups, self._schedules, self._stepped = [], {}, [], [], set()


def _loop():
    """The program whose training loop calls: it seeds generators, measures norms and hands labels to the model as no other does."""
    frame = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == "transformers.trainer" or name.startswith(("lightning.pytorch.loops", "pytorch_lightning.loops")):
            program = name.partition(".")[0]
            return f"{program} {sys.modules[program].__version__}"
        frame = frame.f_back
    return ""


def _single(value):
    """A number, as it lies on its device; without a collective: None where it is a summand of several ranks."""
    if not torch.is_tensor(value):
        return float(value)
    if is_dtensor(value):
        if any(not p.is_replicate() for p in value.placements):
            return None
        value = value.to_local()
    return value.detach()


def _squares(norm):
    """Of a norm that is not joined over the ranks yet this rank's share of its square; None: another rank has it too."""
    if any(getattr(p, "norm_type", 2) != 2 for p in norm.placements):
        return None
    mesh = norm.device_mesh
    if any(at and not p.is_partial() for at, p in zip(mesh.get_coordinate(), norm.placements)):
        return None
    return norm.to_local().detach().double().square()


def _joined(tensors):
    """(vectors of the first element of each, one of each type and device; the place of each tensor's, by its id)."""
    kinds, place = {}, {}
    for t in tensors:
        kinds.setdefault((t.get_device(), t.dtype, t.dim() == 0), {})[id(t)] = t.detach()
    for held in kinds.values():
        for key in held:
            place[key] = len(place)
    return [torch.stack([t if single else t.reshape(-1)[0] for t in held.values()]).double() for (_, _, single), held in kinds.items()], place


def _numbers(value, number):
    """The same with numbers in place of tensors."""
    if torch.is_tensor(value):
        return number(value)
    if isinstance(value, dict):
        return {key: _numbers(held, number) for key, held in value.items()}
    return [_numbers(held, number) for held in value] if isinstance(value, (list, tuple)) and not is_texts(value) else value


def _by_value(counters):
    """{"5": names} of [names, 5.0]."""
    found = {}
    for names, count in counters:
        text = str(int(count)) if float(count).is_integer() else repr(float(count))
        found.setdefault(text, []).extend(names)
    return found


def _generators():
    """A digest of each random generator's state."""
    def of(data):
        return hashlib.blake2b(data, digest_size=8).hexdigest()

    found = {"python": of(repr(random.getstate()).encode()), "torch": of(raw(torch.get_rng_state()))}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = of(raw(torch.cuda.get_rng_state()))
    return found
