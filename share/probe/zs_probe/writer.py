# SPDX-License-Identifier: Apache-2.0
"""A rank's file. FOLDER/rank-R.jsonl has one object a line:

{"zs_probe": 2, "rank", "world_size", "id", "torch", "layout", "framework", "tied", "frozen", "loose", "axes", "unseen", "environment"}   first, and again where a training resumes
{"start": S, "counted", "tensors": [...]}                               parameters, state and buffers before step S + 1
{"step": N, "computed": the type of autocast or null, "loss", "losses", "scalars", "groups", "schedules", "counters", "batch", "targets", "rng", "outputs": [...], "locals": [...], "tensors": [...], "values"}
{"end": N, "rank", "every", "since", "lines", "how", "unseen"}          steps made, where the training ended

tensors   {"name": "PLACE/PARAMETER", "dtype", "shape", "of": elements of the whole, "begin", "count": what is held here, in
          row-major order, "digest": 16 hex digits, "squares", "sketch": base64 of little-endian float64, "elements": the same, those
          of elements.py}. "runs", where it
          is there, has for each axis the [begin, end) that are held. PLACE is, in causal order:
          begin and begin.model (param and model as forward found them, where the last update left something else), grad (as
          the optimizer gets it) or direction (what replaces it under Muon), state.KEY, param (the copy that the optimizer moves), model (that
          which computes, where it is another), buffer (of the modules, those that have changed since the start).
loose     trained parameters that no optimizer moves. axes: of data, tensor, pipeline, sequence and expert parallelism the number of
          ranks and this one's place.
only      where it is there, the step has these places alone: the parameters with which a training ends, whatever the stride.
locals    the same for one micro-batch's gradient on this rank, before it is reduced or added: with "micro", counted from 0,
          and "by", the rank among those that share the parameter's data parallelism.
outputs   the same of what a module made of one sample, in the order in which modules end: "name", "sample": its digest.
batch     of each micro-batch the digest of each sample.
targets   of each micro-batch how many labels the loss counts, those that are not -100; null where the model gets no labels.
scalars   norm, clip, loss_scale, accumulation; clip_value: the bound of each element; clips: how often a part of the gradients was clipped, or by another norm; dropped: micro-batches, the first of them, whose gradients were set to zero before an optimizer took them; norm_squares: this rank's share of the norm's square, where the ranks have not joined it.
groups    of each group of each optimizer its options, whatever their type, before the update; with "params", the names of
          its parameters, "optimizer", the name of its class, "package" where it is not torch's, and "tags", the names of what
          the training added to the options of the class.
schedules of each optimizer the classes of its schedules of torch, joined by " with ", how often they have moved ("count"), before the
          update the "rates" of the groups and what a formula, or the last move, says of them, or null.
counters  {"5": [names]}: the number of steps that an optimizer's state counts, after the update.
every     the stride, or null: each step was written. since: the stride holds behind this step, up to it each step was written.
lines     the lines of this file that are steps.
how       how the training ended: whole, "exception TYPE: TEXT", "exit STATUS".
environment  environment.py: where it was computed.
unseen    sentences: what of the training the record does not have; where it is known, in the first line or later.
values    the safetensors file of this step's values, or null.
"""
import array
import binascii
import ctypes
import functools
import json
import math
import operator
import os
import queue
import struct
import threading

import torch

from . import native
from .measuring import stream_of
from .say import guarded

_TYPES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16", getattr(torch, "float8_e4m3fn", None): "F8_E4M3"}
_MASK = (1 << 64) - 1


def type_name(dtype):
    return _TYPES.get(dtype, str(dtype).replace("torch.", ""))


class Transfer:
    """What readings and single numbers of a step hold on their devices, on its way to this process: one copy for each device,
    which nothing waits for until the numbers are asked for."""

    def __init__(self, readings, scalars=()):
        self._copies, self._raw, self._places, at, of_device = [], None, {}, 0, {}
        for held in {id(r): r for r in readings}.values():
            for vector in (held.numbers, held.digests):
                if vector is not None:
                    of_device.setdefault(vector.device, []).append((vector, held.stream))
        for tensor in scalars:
            of_device.setdefault(tensor.device, []).append((tensor, None))
        for device, held in of_device.items():
            for vector, _ in held:
                self._places[id(vector)] = at
                at += vector.numel()
            self._copies.append(_copied(device, held))
        self.waits = any(event is not None for _, event in self._copies)  # for a device

    def bytes(self):
        """All numbers, of 8 bytes each."""
        if self._raw is None:
            for _, event in self._copies:
                if event is not None:
                    event.synchronize()
            self._raw = b"".join([raw(copy) for copy, _ in self._copies])
            self._copies = []
        return self._raw

    def place(self, vector):
        """Where its numbers begin, as a number of them."""
        return self._places[id(vector)]

    def numbers(self, vector, kind="d"):
        """Its numbers; q: as patterns."""
        return struct.unpack_from(f"={vector.numel()}{kind}", self.bytes(), self.place(vector) * 8)


def _copied(device, held):
    """(the numbers on their way to the CPU, what says that they are there)."""
    if device.type != "cuda":
        return torch.cat([vector.reshape(-1).view(torch.float64) for vector, _ in held]).cpu(), None
    stream = stream_of(device)
    for vector, other in held:
        if other is not None and other is not stream:
            stream.wait_stream(other)
            vector.record_stream(stream)
    with torch.cuda.device(device):
        whole = torch.cat([vector.reshape(-1).view(torch.float64) for vector, _ in held])
        copy = torch.empty(whole.shape, dtype=torch.float64, pin_memory=True)
        copy.copy_(whole, non_blocking=True)
        event = torch.cuda.Event(blocking=True)
        event.record()
    return copy, event


class Rows:
    """What is said of a list of tensors before their numbers; made once for lists that are alike. said: of each PLACE/PARAMETER, or
    that and what else is said of it. types: theirs, where they are not those of the plan's tensors."""

    def __init__(self, said, plan, types=None):
        pairs = [(one, ()) if isinstance(one, str) else one for one in said]
        self.plan, self.names = plan, [name for name, _ in pairs]
        self.heads = [_head(name, kind, part, more) for (name, more), kind, part in
                      zip(pairs, types or [kind for kind, _, _ in plan.kinds], plan.parts)]
        self._at, self._places, self.found = None, None, None  # found: recorder.py

    def find(self, bases, vectors):
        """(four numbers of each row: where its digests, sums of squares and sketch begin among those of a transfer, and slots; (where its
        elements begin, how many), or None)."""
        at = (bases, vectors)
        if self._at != at:
            places = array.array("q")
            for number, slot, count in self.plan.places:
                digests, squares, sketch = bases[number]
                places.extend((digests + slot, squares + slot, sketch + 8 * slot, count))
            kept = [(0, 0) if one is None else (vectors[one[0]] + one[1], one[2]) for one in self.plan.kept] if vectors else None
            self._places = places, kept and tuple(array.array("q", column) for column in zip(*kept))
            self._at = at
        return self._places


class Listed:
    """A list of tensors that was read: Rows, Readings, vectors of elements."""
    __slots__ = ("rows", "readings", "elements")

    def __init__(self, rows, readings, elements=()):
        self.rows, self.readings, self.elements = rows, readings, elements


_rows_of = {}


def rows_of(said, plan, types=None):
    """The Rows of a list; kept for the next time."""
    key = (tuple(said), plan, types)
    known = _rows_of.get(key)
    if known is None:
        if len(_rows_of) >= 1 << 10:
            _rows_of.clear()
        known = _rows_of[key] = Rows(said, plan, types)
    return known


def _head(name, kind, part, more):
    """What is said of a row before its numbers, as JSON that is not closed."""
    said = {"name": name, **dict(more), "dtype": type_name(kind), "of": part.of, "shape": part.dims, "begin": part.begin, "count": part.count}
    if part.runs is not None:
        said["runs"] = part.runs
    return json.dumps(said)[:-1].encode()


def moved(lists):
    """A Transfer of the lists alone."""
    return Transfer([reading for one in lists for reading in one.readings], [vector for one in lists for vector in one.elements])


def _placed(listed, transfer):
    """(heads, places, elements) of a list's rows, as native.rows() takes them."""
    bases = []
    for held in listed.readings:
        first = transfer.place(held.numbers)
        bases.append((first if held.digests is None else transfer.place(held.digests), first + held.slots, first + 2 * held.slots))
    places, elements = listed.rows.find(tuple(bases), tuple([transfer.place(vector) for vector in listed.elements]))
    return listed.rows.heads, places, elements


def finish(listed, transfer, only=None):
    """(the JSON texts of a list's rows, joined by commas; their digests). only: numbers of rows."""
    heads, places, elements = _placed(listed, transfer)
    if only is not None:
        heads = [heads[n] for n in only]
        places = array.array("q", [place for n in only for place in places[4 * n:4 * n + 4]])
        elements = elements and tuple(array.array("q", [column[n] for n in only]) for column in elements)
    return _texts(heads, places, elements, transfer)


def _texts(heads, places, elements, transfer):
    return (native.rows if native.library() else _rows)(heads, places, elements, transfer.bytes())


def texts_of(lists, transfer, chosen=None):
    """The texts of all lists. chosen: a function of a row's name and digest that says whether it is one of them."""
    texts = []
    if chosen is None and len(lists) > 1 and not any(one.elements for one in lists):  # many short ones
        heads, places, _ = zip(*[_placed(one, transfer) for one in lists])
        return _texts([head for part in heads for head in part], array.array("q", b"".join(places)), None, transfer)[0]
    for one in lists:
        text, digests = finish(one, transfer)
        if chosen is not None:
            numbers = [n for n, (name, digest) in enumerate(zip(one.rows.names, digests)) if chosen(name, digest)]
            text = finish(one, transfer, numbers)[0] if numbers else b""
        texts.append(text)
    return b", ".join(text for text in texts if text)


def digests_of(lists, transfer=None):
    """{name: digest} of what was read."""
    transfer = transfer or moved(lists)
    return {name: digest for one in lists for name, digest in zip(one.rows.names, finish(one, transfer)[1])}


def _rows(heads, places, elements, numbers):
    """As native.rows()."""
    texts, digests, held = [], array.array("Q"), memoryview(numbers)
    for i, head in enumerate(heads):
        if elements is not None and elements[1][i]:
            begin, end = 8 * elements[0][i], 8 * (elements[0][i] + elements[1][i])
            head = b'%s, "elements": "%s"' % (head, binascii.b2a_base64(held[begin:end], newline=False))
        at, squares, sketch, count = places[4 * i:4 * i + 4]
        digest = sum(struct.unpack_from(f"={count}q", numbers, at * 8)) & _MASK
        squared = functools.reduce(operator.add, struct.unpack_from(f"={count}d", numbers, squares * 8))  # sum() rounds otherwise since Python 3.12
        squared = repr(squared) if math.isfinite(squared) else f'"{squared}"'
        text = binascii.b2a_base64(numbers[sketch * 8:(sketch + 8 * count) * 8], newline=False)
        texts.append(b'%s, "digest": "%016x", "squares": %s, "sketch": "%s"}' % (head, digest, squared.encode(), text))
        digests.append(digest)
    return b", ".join(texts), digests


def raw(tensor):
    """The bytes of a tensor on the CPU, without numpy; its storage as a sequence gives one at a time, which takes seconds."""
    tensor = tensor.contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def write_safetensors(path, tensors):
    header, at = {}, 0
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    for name in order:
        size = tensors[name].numel() * tensors[name].element_size()
        header[name] = {"dtype": _TYPES[tensors[name].dtype], "shape": [tensors[name].numel()], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".tmp", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(raw(tensors[name].detach().cpu()))
    os.replace(path + ".tmp", path)


def _quoted(value):
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _quoted(held) for key, held in value.items()}
    return [_quoted(held) for held in value] if isinstance(value, (list, tuple)) else value


class Taken(Exception):
    """The folder has the record of another training, whose last step and the digests of what it left are `last` and `left`."""

    def __init__(self, path, last, left):
        super().__init__(f"{path} is there already, the record of another training up to step {last}: name another folder with ZS_PROBE")
        self.path, self.last, self.left = path, last, left

    def leave_word(self):
        """Beside the record, so that who compares it learns that there was a training more."""
        with open(self.path[:-len(".jsonl")] + ".refused", "w") as file:
            file.write(f"another training began in this folder, behind step {self.last}, and is not recorded\n")


class Writer:
    """Makes its file with the first line. Where there is one already it goes on with it, if `step` is later than its last:
    a training that resumed."""

    def __init__(self, folder, rank, head, step):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.rank = folder, rank
        path, self.steps = os.path.join(folder, f"rank-{rank}.jsonl"), 0
        if os.path.exists(path):
            last, left, self.steps = self._last(path)
            if step <= last:
                raise Taken(path, last, left)
        self._file = open(path, "ab")
        self.line(head)

    @staticmethod
    def _last(path):
        """The last step of a file, the digests of the tensors in its line, and the number of steps that the file has. Cuts off a
        line that a kill has torn."""
        last, left, steps = 0, {}, 0
        with open(path, "rb+") as file:
            whole = 0
            for line in file:
                if not line.endswith(b"\n"):
                    file.truncate(whole)
                    break
                whole += len(line)
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                last = max(last, int(row.get("step", 0)), int(row.get("end", 0)))
                if "step" in row:
                    steps += 1
                    left = {tensor["name"]: int(tensor["digest"], 16) for tensor in row.get("tensors", ())}
        return last, left, steps

    def line(self, row, **lists):
        """A line: a JSON object, and lists in it whose members are texts already, joined by commas."""
        try:
            text = json.dumps(row, allow_nan=False)
        except ValueError:  # what is not finite is a value: as text
            text = json.dumps(_quoted(row))
        parts = [text[:-1].encode()]
        for key, texts in lists.items():
            parts += [f', "{key}": ['.encode(), texts, b"]"]
        self._file.write(b"".join((*parts, b"}\n")))
        self._file.flush()
        self.steps += "step" in row

    def values(self, step, tensors):
        name = f"step-{step:08d}.rank-{self.rank}.safetensors"
        write_safetensors(os.path.join(self.folder, name), tensors)
        return name

    def close(self):
        self._file.close()


_pens = []


class Pen:
    """Writes what was taken, in order: at once, or, where it is on its way from a GPU, in a thread, while the training goes on,
    at most two steps behind it."""

    def __init__(self):
        self._process, self._jobs, self._thread = os.getpid(), queue.Queue(2), None

    def later(self, job, waits):
        """Calls `job` when the calls before it are done; waits where two wait already."""
        if self._process != os.getpid():  # a fork has no threads
            self._process, self._jobs, self._thread = os.getpid(), queue.Queue(2), None
        if waits and self._thread is None:
            self._begin()
        if self._thread is None:
            guarded(job)()
        else:
            self._jobs.put(job)

    def _begin(self):
        self._thread = threading.Thread(target=self._run, name="zs_probe", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter ends, and starts no thread
            self._thread = None
            return
        if not _pens:
            _wait_at_exit()
        _pens.append(self)

    def _run(self):
        while True:
            job = self._jobs.get()
            if job is None:
                return
            guarded(job)()

    def close(self, seconds=None):
        """Returns when all is written; or after so many seconds, where a GPU does not answer."""
        if self._thread is not None and self._process == os.getpid():
            try:
                self._jobs.put(None, timeout=seconds)
                self._thread.join(seconds)
            except queue.Full:
                pass
            self._thread = None


def _wait_at_exit():
    """os._exit() asks nobody: what it would lose is written before."""
    exit_now = os._exit

    def _exit(status):
        for pen in _pens:
            guarded(pen.close)(10)
        exit_now(status)

    os._exit = _exit
