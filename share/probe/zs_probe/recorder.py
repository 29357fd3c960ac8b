# SPDX-License-Identifier: Apache-2.0
"""Records the steps of a model's optimizers: what a layout shows of its tensors, in causal order."""
import os

import torch

from . import elements, measuring, say as said_so, schedules, singles, sketch
from .boot import how_it_ends, inside
from .cost import Cost
from .environment import environment, loop
from .hooks import tensors_in
from .micro_batches import MicroBatches, parameters_of
from .part import is_dtensor, whole
from .say import guarded, say, unseen
from .sketch import perturb, samples
from .writer import Listed, Pen, Rows, Taken, Transfer, Writer, digests_of, finish, moved, rows_of, texts_of

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
        self._locals, self._waiting, self.micro, self._called = [], {}, MicroBatches(), False
        self._clipped = None  # the progress of micro at which gradients were clipped, and the smallest bound
        self._changing = set()  # keys of groups whose gradients are copied in their hooks
        self._outputs, self._inside, self._perturbed = [], False, False
        self._rows, self._kept, self._groups, self._schedules, self._open, self._stepped = [], {}, [], [], False, set()
        self._buffers, self._constant = [], {}  # of buffers that have not changed the digests
        self._found, self._computed, self._left, self._digests = None, None, (None, ()), {}
        self._pen, self._cost, self._written, self._started = Pen(), Cost(every is None and not sketch.SHORT), 0, False
        self._since, self._told = None if every is None else 0, 0  # the stride holds from this step on; sentences that the record has
        self._stage, self._lists = measuring.Stage(self._listed), {}  # what a layout showed: names, parts, Rows
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
    def local(self, name, gradient, part, by=0, root=0, owner=None):
        """A micro-batch's gradient of a parameter, while backward has it, in a step that is due. root: the number of its module: virtual stages
        take turns. owner: (key, tensor): it is read when waited(key) is called, as the tensor's .grad."""
        with self._cost:
            number = self.micro.number(name, root)
            if number is None:
                return
            said = (name, (("micro", number), ("by", by)))
            if owner is None or owner[0] in self._changing:
                self._stage.add(said, gradient.detach() if gradient.requires_grad else gradient, part)
            else:
                self._waiting.setdefault(owner[0], []).append((said, owner[1], part, gradient._version))

    @guarded
    def waited(self, *keys):
        """Reads the gradients that wait under these keys."""
        for key in keys:
            rows = []
            for said, owner, part, version in self._waiting.pop(key, ()):
                if owner.grad is not None and owner.grad._version in (0, version):  # what its hook got, or a copy of it
                    rows.append((said, owner.grad, part))
                else:
                    unseen(f"a gradient of one micro-batch is not recorded of {said[0]}: another hook changed it before it was reduced")
                    self._changing.add(key)
            if rows:
                with self._cost, torch.no_grad():
                    self._locals.append(self._listed(*zip(*rows)))

    @guarded
    def samples(self, tensors, targets=None):
        """A micro-batch. targets: how many of its labels the loss counts; None where the model gets no labels."""
        if self.due() and not self._complete():
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
            made = tensor.detach().unbind()
            if made:
                plan = measuring.plan_of(made, [whole(sample) for sample in made])
                self._outputs.append((micro, name, plan, self._cost.read(plan, made)))

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
        self.layout.follow()
        self._computed = computed or self._computed
        if self._found is None and self._left[0] == self.step:
            with self._cost, torch.no_grad():
                self._found = self._taken(self.layout.parameters(), self._left[1], begin=True)

    @guarded
    def backward(self, loss):
        """The loss that a micro-batch's backward begins with."""
        if self.due() and not self._complete() and len(self._losses) < 4096:
            self._losses.append(singles.single(loss))

    def _complete(self):
        """Whether each optimizer has its gradients: what is computed now is no part of the step, as where LBFGS looks for a rate."""
        return self._open and all(id(one) in self.micro.given for one in self.layout.optimizers)

    @guarded
    def zeroed(self, owner):
        """Before a module's or an optimizer's gradients are set to zero: those that no optimizer has taken are dropped."""
        if self.micro.waiting:
            self.micro.drop({name for p in parameters_of(owner) for name in self.layout.called(p)})

    @guarded
    def scaled(self, optimizer, made):
        """Around a scaler's step, which makes none of the optimizer where a gradient is not finite."""
        if made and not self._called and self.layout.optimizers == [optimizer]:
            self._clear()
        self._called = False

    @property
    def begun(self):
        """The loss that the last backward began with; None where it was not seen."""
        return self._losses[-1] if self._losses else None

    @guarded
    def scalar(self, name, value):
        """A number of this step: norm, clip, loss_scale."""
        if self.due() and value is not None:
            if is_dtensor(value) and any(p.is_partial() for p in value.placements):
                self._scalars[name + "_squares"] = singles.squares(value)
            else:
                self._scalars[name] = singles.single(value)

    @guarded
    def clipped(self, norm, bound, norm_type=2.0, parameters=None):
        """The norm of gradients and its bound: of all that the optimizers move; the first norm and the smallest bound where the same
        gradients are clipped again. Of a part of them only how often it was clipped."""
        if not self.due():
            return
        ids = None if parameters is None else {id(p) for p in parameters}
        if float(norm_type) == 2 and (ids is None or all(id(p) in ids for p in self.layout.moved() if p.grad is not None)):
            seen = self.micro.progress()  # another one: backward has added to them
            again = self._clipped is not None and self._clipped[0] == seen
            self._clipped = seen, min(bound, self._clipped[1]) if again else bound
            self.scalar("norm", None if again else norm)
            self.scalar("clip", self._clipped[1])
        else:
            self._scalars["clips"] = self._scalars.get("clips", 0) + 1

    @guarded
    def clipped_by_value(self, bound):
        """The bound of each element: the largest one, where parts have several."""
        if self.due():
            self.scalar("clip_value", max(bound, self._scalars.get("clip_value", bound)))

    def loss(self, value):
        """The loss of the step, if it is to be compared."""
        self._loss = singles.single(value)

    @guarded
    def before(self, optimizer):
        """As the optimizer gets its gradients; several times a step where it steps group by group."""
        self._called = True
        if inside[0]:  # DeepSpeed makes its optimizers' state by a step without gradients: it is none of the training
            return
        if float(getattr(optimizer, "found_inf", None) or 0):  # of a scaler, for optimizers that skip a step by themselves
            return
        if id(optimizer) in self._stepped:
            self._end_step()
        if not self._open:
            self._open = True
            self._begin()
        if not self._due_now:
            return
        self.waited(*self._waiting)
        with self._cost, torch.no_grad():
            self._locals += self._stage.flush()
            self._take(self.layout.gradients(optimizer), measuring.FEW if getattr(optimizer, "grad_scale", None) is not None else None)
            self._groups.extend(self.layout.options(optimizer))
            if not self._schedules:
                self._schedules = self.layout.schedules()
        self.micro.give({id(optimizer), *(name for p in parameters_of(optimizer) for name in self.layout.called(p))})

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
                unseen(f"no call of the model was seen ({type(self.layout.roots[0]).__name__}): batches, outputs and the parameters that forward "
                       "finds are not recorded; attach to the module that the loop calls, and behind torch.compile(model) where it is compiled")
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
        step, rest = of_all * (self.micro.last() + 6), of_all * 3  # rest: the start
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
                found = digests_of(self._taken(self.layout.parameters()))
            return {name: digest for name, digest in found.items() if name.startswith("param/")}
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
                lists = self._taken(self.layout.states()) + self._taken(self.layout.parameters())
                buffers = self._taken(self.layout.buffers(True))
            transfer, said = moved(lists + buffers), {"start": self.step - 1, "counted": self._counted}

            def start():
                self._constant = digests_of(buffers, transfer)
                self._writer.line(said, tensors=texts_of(lists + buffers, transfer))

            self._pen.later(start, transfer.waits)

    def _make(self):
        self.rank, self.world_size = ranks()
        if self.world_size > 1:
            self.layout.begin()
        head = {"zs_probe": 2, "rank": self.rank, "world_size": self.world_size, "id": os.urandom(8).hex(), "torch": torch.__version__,
                "layout": self.layout.name, "framework": self.layout.framework or loop(), "tied": self.layout.ties,
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
            found = digests_of(self._taken(self.layout.parameters()))
        return bool(found) and all(taken.left.get(name) == digest for name, digest in found.items() if name.startswith("param/"))

    def _listed(self, names, tensors, parts, earlier=(), begin=None):
        """The Listed of a list of tensors. begin: None of gradients of micro-batches, else what a layout shows, which is read with its
        elements; True where that is as forward finds it."""
        key, kinds = (names[0], names[-1], len(names), begin), measuring.kinds_of(tensors)
        known = self._lists.get(key)
        if known is None or self.layout.types or known[0] != names or known[1] != parts or known[2].plan.kinds != kinds:
            if len(self._lists) >= 1 << 10:
                self._lists.clear()
            known = self._lists[key] = names, parts, self._said(names, tensors, parts, begin)
        rows = known[2]
        readings = self._cost.read(rows.plan, tensors, earlier)
        return Listed(rows, readings, () if begin is None or sketch.SHORT else elements.take(rows.plan, tensors))

    def _said(self, names, tensors, parts, begin):
        """The Rows of such a list."""
        plan = measuring.plan_of(tensors, parts)
        if begin is None:
            return rows_of(names, plan)
        types = self.layout.types and tuple([self.layout.types.get(name, tensor.dtype) for name, tensor in zip(names, tensors)])
        if any([part.summand is not None for part in parts]):
            names = [name if part.summand is None else (name, (("by", part.summand),)) for name, part in zip(names, parts)]
        if begin:
            names = tuple([_BEGIN[place] + name for place, _, name in [name.partition("/") for name in names]])
        return rows_of(names, plan, types or None)

    def _taken(self, shown, earlier=(), keep=False, begin=False):
        """What was read of all that a layout shows: a list of one Listed, or of none. begin: as forward finds it."""
        names, tensors, parts = tuple(zip(*shown)) or ((), (), ())
        if not names:
            return []
        if keep and (self.values is True or (self.values and self.step in self.values)):
            self._kept.update((name, flat.detach().clone().reshape(-1)) for name, flat, part in zip(names, tensors, parts) if part.index is None)
        return [self._listed(names, tensors, parts, earlier, begin)]

    def _take(self, shown, most=None):
        """Lists of this step. most: elements that are held at once, where a layout makes tensors as it shows them."""
        lists, waiting, held = [], [], 0
        for item in shown if most else ():
            waiting.append(item)
            held += item[2].count
            if held > most:
                lists += self._taken(waiting, keep=True)
                waiting, held = [], 0
        lists += self._taken(waiting if most else shown, keep=True)
        self._rows += lists
        return lists

    def _take_after(self, state=True):
        # On the training's own stream. A second one beside the next forward saves nothing (Llama 1B on an H100: 7.7 % of a step for 7.7), since
        # products fill the GPU, and all that changes a tensor between two steps would have to wait for it.
        with torch.no_grad():
            most = measuring.FEW if self.layout.makes() else None
            if state:
                self._take(self.layout.states(), most)
            lists = self._take(self.layout.parameters(), most)
            self._buffers = self._taken(self.layout.buffers())
        self._left = (self.step, [reading for one in lists for reading in one.readings])

    def _write(self, only=None):
        """Begins to move the step's numbers; the pen writes them when they are there. only: places, of a row that has no others."""
        if self._writer is None:
            return
        scalars = {key: value for key, value in {**self.layout.scalars(), **self._scalars, **self.micro.scalars()}.items() if value is not None}
        said = {"step": self.step, "computed": self._computed, "loss": self._loss, "losses": self._losses, "scalars": scalars,
                "groups": self._groups, "schedules": self._schedules, "batch": self._batch, "targets": self._targets, "rng": singles.generators(),
                "counters": []}
        counted, steps = [], []
        for names, count in () if only else self.layout.counters():
            counted.append(names)
            steps.append(count)
        if only:
            said = {"step": self.step, "only": list(only), "computed": None, "loss": None, "losses": [], "scalars": {}, "groups": [], "schedules": [],
                    "batch": [], "targets": [], "counters": []}
        new = self._unseen()
        if new:
            said["unseen"] = new
        rows, found, outputs, micros, kept, step = self._rows, self._found or [], self._outputs, self._locals, self._kept, self.step
        buffers = self._buffers
        joined, place = singles.joined(tensors_in([said[key] for key in ("loss", "losses", "scalars", "groups", "targets")]))
        counts, place_of_count = singles.joined([one for one in steps if torch.is_tensor(one)])
        lists = (*rows, *found, *micros, *buffers)
        transfer = Transfer([reading for one in (*(one.readings for one in lists), *(held for *_, held in outputs)) for reading in one],
                            [*joined, *counts, *self._batch, *(vector for one in lists for vector in one.elements)])
        timed = self._cost.timed()

        def write():
            said["batch"] = [[f"{digest & _MASK:016x}" for digest in transfer.numbers(vector, "q")] for vector in said["batch"]]
            values = [number for vector in joined for number in transfer.numbers(vector)]
            for key in ("loss", "losses", "scalars", "groups"):
                said[key] = singles.numbers(said[key], lambda t: values[place[id(t)]])
            said["targets"] = singles.numbers(said["targets"], lambda t: int(values[place[id(t)]]))
            values = [number for vector in counts for number in transfer.numbers(vector)]
            said["counters"] = singles.by_value(zip(counted, [values[place_of_count[id(one)]] if torch.is_tensor(one) else one for one in steps]))
            said["values"] = self._writer.values(step, kept) if kept else None
            samples = [Listed(Rows([(name, (("sample", digest),)) for digest in said["batch"][micro]], plan), held) for micro, name, plan, held in outputs]
            made = [finish(one, transfer) for one in rows]
            changed = texts_of(found, transfer, lambda name, digest: self._digests.get(name, digest) != digest)
            self._digests = {name: digests[n] for one, (_, digests) in zip(rows, made) for n, name in _found(one.rows)}
            written = texts_of(buffers, transfer, self._changes)
            self._writer.line(said, outputs=texts_of(samples, transfer), locals=texts_of(micros, transfer),
                              tensors=b", ".join(text for text in (changed, *(text for text, _ in made), written) if text))
            timed()

        self._pen.later(write, transfer.waits)
        self._written = self.step

    def _changes(self, name, digest):
        """Whether a buffer has changed since the start."""
        if self._constant.get(name) == digest:
            return False
        self._constant.pop(name, None)
        return True

    def _clear(self):
        self._stage.flush()
        self._found = None
        self._loss, self._losses, self._scalars, self._batch, self._targets = None, [], {}, [], []
        self._locals, self._waiting, self.micro = [], {}, MicroBatches()
        self._outputs, self._inside, self._clipped = [], False, None
        self._rows, self._kept, self._groups, self._schedules, self._stepped = [], {}, [], [], set()


def _found(rows):
    """(number, name as forward finds it) of the parameters among rows."""
    if rows.found is None:
        places = [name.partition("/") for name in rows.names]
        rows.found = [(number, _BEGIN[place] + name) for number, (place, _, name) in enumerate(places) if place in _BEGIN]
    return rows.found
