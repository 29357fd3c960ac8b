# SPDX-License-Identifier: Apache-2.0
"""Digests, sums of squares and sketches of many tensors at once, by the fastest way that a device has: on processors native.c,
on GPUs kernels.cu, and PyTorch's own operations (sketch.py) where neither compiles. All of them compute the same."""
import contextlib
import functools

import torch

from . import native, sketch
from .cut import cut_of
from .say import say

_STAGED, _SMALL = 1 << 24, 1 << 16  # bytes of a tensor that is copied, on a GPU and on a processor
_WAITING = 1 << 26  # bytes of copies, at most
_MOST = 1 << 33  # elements that are read by one launch
FEW = 1 << 26  # where the tensors are made for it alone, and live no longer


class Reading:
    """What one launch computes. `digests`, where it is not None, has the digests alone; `numbers` has then only what differed
    from an earlier reading."""

    def __init__(self, numbers, slots, cut=None, digests=None):
        self.numbers, self.slots, self.cut, self.digests = numbers, slots, cut, digests
        self.stream = stream_of(numbers.device) if numbers.is_cuda else None


_streams = {}


def stream_of(device):
    """The stream under way on a GPU, as torch.cuda.current_stream() in less time."""
    key = device.index, torch._C._cuda_getCurrentRawStream(device.index)
    if key not in _streams:
        _streams[key] = torch.cuda.current_stream(device)
    return _streams[key]


@functools.lru_cache(None)
def way(device, dtype):
    """The module that reads tensors of this type there; None: PyTorch's own operations."""
    if device.type == "cpu":
        return native if native.takes(dtype) else None
    if device.type != "cuda":
        return None
    try:
        from . import kernels
        return kernels if kernels.takes(dtype) and kernels.works(device) else None
    except Exception as error:  # noqa: BLE001  NVRTC is not there, or the driver is older
        say(f"kernels.cu is not compiled ({type(error).__name__}: {error}): tensors of GPUs are read by PyTorch's own operations, which takes longer")
        return None


def prepare(device):
    """Makes what is made once."""
    sketch.tables(device)
    way(device, torch.float32)


def addresses(flats):
    return tuple([flat.data_ptr() for flat in flats])


_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def _flat(tensor):
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)[..., 0]  # of complex numbers the real parts
    return tensor.contiguous().view(-1)


class Plan:
    """How a list of tensors is read, planned once for lists of the same types and parts: those of one device and type by one launch."""

    def __init__(self, kinds, parts):
        self.kinds, self.parts = kinds, parts
        self.plain = all(contiguous and kind not in _REAL for kind, _, contiguous in kinds)
        self.launches = []  # (numbers of tensors, how they are read, their cut; None: by PyTorch's own operations)
        self.places = [None] * len(parts)  # of each tensor (number of its Reading, first slot, slots)
        self.picks = self.kept = None  # elements.take()
        for numbers in self.groups():
            kind, device, _ = kinds[numbers[0]]
            how = way(device, _REAL.get(kind, kind))
            cut = cut_of([parts[n] for n in numbers]) if how else None
            for one in [numbers] if cut is not None else [[n] for n in numbers]:
                for n, place in zip(one, cut.slots_of if cut is not None else [(0, sketch.ranges(parts[one[0]].of))]):
                    self.places[n] = (len(self.launches), *place)
                self.launches.append((one, how, cut))

    def groups(self):
        """Numbers of the tensors that one launch reads."""
        found = {}
        for number, (kind, device, _) in enumerate(self.kinds):
            found.setdefault((device, kind), []).append(number)
        for numbers in found.values():
            group, size = [], 0
            for number in numbers:
                if group and size + self.parts[number].count > _MOST:
                    yield group
                    group, size = [], 0
                group.append(number)
                size += self.parts[number].count
            yield group

    def read(self, tensors, earlier=()):
        """The Readings of such tensors. Nothing waits for a GPU. `earlier`: Readings of the same list before; only what differs from them
        is read whole."""
        tensors, made = tensors if self.plain else [_flat(tensor) for tensor in tensors], []
        for number, (numbers, how, cut) in enumerate(self.launches):
            if cut is None:
                made.append(Reading(sketch.measure(tensors[numbers[0]].detach().view(-1), self.parts[numbers[0]]), self.places[numbers[0]][2]))
                continue
            flats = tensors if len(numbers) == len(tensors) else [tensors[n] for n in numbers]
            held = addresses(flats)
            before = earlier[number] if number < len(earlier) else None
            if before is not None and before.cut is cut and before.numbers.device == flats[0].device:
                digests, others = how.again(cut, flats[0], held, before.numbers)
                made.append(Reading(others, cut.slots, cut, digests))
            else:
                made.append(Reading(how.measure(cut, flats[0], held), cut.slots, cut))
        return made


def kinds_of(tensors):
    return tuple([(tensor.dtype, tensor.device, tensor.is_contiguous()) for tensor in tensors])


_plans = {}


def plan_of(tensors, parts):
    """The plan of a list; kept for the next time."""
    kinds = kinds_of(tensors)
    key = (kinds, tuple([part.mark for part in parts]))
    known = _plans.get(key)
    if known is None:
        if len(_plans) >= 512:
            _plans.clear()
        known = _plans[key] = Plan(kinds, tuple(parts))
    return known


class Stage:
    """Reads tensors that live no longer than a hook, many at once: it copies small ones, and reads the copies when there are some; one by
    one each would cost this process more time than its device. read_all(names, tensors, parts): what a list of them gives."""

    def __init__(self, read_all):
        self._read, self._waiting, self._most, self._made = read_all, {}, None, []

    def add(self, name, tensor, part):
        """Where no gradients are computed."""
        size = tensor.element_size() * part.count
        if size > (_STAGED if tensor.is_cuda else _SMALL) or size == 0 or tensor.is_complex():
            self._made.append(self._read((name,), (tensor,), (part,)))
            return
        stream = stream_of(tensor.device) if tensor.is_cuda else None
        waiting = self._waiting.get(id(stream))
        if waiting is None:
            if self._most is None:
                self._most = min(_WAITING, max(_STAGED, torch.cuda.memory_allocated(tensor.device) // 200)) if tensor.is_cuda else _STAGED
            waiting = self._waiting[id(stream)] = [0, [], [], [], stream]
        elif waiting[0] + size > self._most:
            self._flush(waiting)
        waiting[0] += size
        waiting[1].append(name)
        waiting[2].append(tensor.clone(memory_format=torch.contiguous_format))
        waiting[3].append(part)

    def _flush(self, waiting):
        lists, waiting[:4] = waiting[1:4], [0, [], [], []]
        stream = waiting[4]
        if lists[0]:
            with contextlib.nullcontext() if stream is None or stream is stream_of(stream.device) else torch.cuda.stream(stream):
                self._made.append(self._read(*map(tuple, lists)))

    def flush(self):
        """What was read of all that was added since the last call."""
        for waiting in self._waiting.values():
            self._flush(waiting)
        made, self._made, self._waiting, self._most = self._made, [], {}, None
        return made
