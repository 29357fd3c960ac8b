# SPDX-License-Identifier: Apache-2.0
"""Digests, sums of squares and sketches of many tensors at once, by the fastest way that a device has: on processors native.c,
on GPUs kernels.cu, and PyTorch's own operations (sketch.py) where neither compiles. All of them compute the same."""
import functools

import torch

from . import native, sketch
from .cut import cut_of
from .say import say

_STAGED = 1 << 24  # bytes of a tensor that is copied
_WAITING = 1 << 26  # bytes of copies, at most
_MOST = 1 << 33  # elements that are read by one launch
FEW = 1 << 26  # where the tensors are made for it alone, and live no longer


class Reading:
    """What one launch computes. `digests`, where it is not None, has the digests alone; `numbers` has then only what differed
    from an earlier reading."""

    def __init__(self, numbers, slots, cut=None, digests=None):
        self.numbers, self.slots, self.cut, self.digests = numbers, slots, cut, digests
        self.stream = torch.cuda.current_stream(numbers.device) if numbers.is_cuda else None


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


def _flat(tensor):
    if tensor.is_contiguous() and not tensor.is_complex():
        return tensor
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)[..., 0]  # of complex numbers the real parts
    return tensor.contiguous().view(-1)


def groups(items):
    """Numbers of the items that one launch reads: of one device and type."""
    if len(items) == 1:  # as in a hook
        yield [0]
        return
    found = {}
    for number, (flat, _) in enumerate(items):
        key = (flat.get_device(), flat.dtype)
        if key not in found:
            found[key] = []
        found[key].append(number)
    for numbers in found.values():
        group, size = [], 0
        for number in numbers:
            if group and size + items[number][1].count > _MOST:
                yield group
                group, size = [], 0
            group.append(number)
            size += items[number][1].count
        yield group


def read(items, earlier=()):
    """Of each (flat tensor, Part) the (Reading, first slot, number of slots). Nothing waits for a GPU. `earlier`: Readings of
    the same list before; only what differs from them is read whole."""
    items = [(_flat(tensor), part) for tensor, part in items]
    found, launches = [None] * len(items), 0
    for numbers in groups(items):
        flats, parts = [items[n][0] for n in numbers], [items[n][1] for n in numbers]
        how = way(flats[0].device, flats[0].dtype)
        cut = cut_of(parts) if how else None
        if cut is None:
            for n in numbers:
                count = sketch.ranges(items[n][1].of)
                found[n] = (Reading(sketch.measure(items[n][0].detach().view(-1), items[n][1]), count), 0, count)
            continue
        before = earlier[launches] if launches < len(earlier) else None
        launches += 1
        if before is not None and before.cut is cut and before.numbers.device == flats[0].device:
            reading = _again(how, cut, flats, before)
        else:
            reading = Reading(how.measure(cut, flats), cut.slots, cut)
        for n, (slot, count) in zip(numbers, cut.slots_of):
            found[n] = (reading, slot, count)
    return found


def readings(found):
    """The launches of what read() gave, in order."""
    return list({id(reading): reading for reading, _, _ in found if reading.cut is not None}.values())


def _again(how, cut, flats, before):
    digests, numbers = how.again(cut, flats, before.numbers)
    return Reading(numbers, cut.slots, cut, digests)


class Stage:
    """Reads tensors that live no longer than a hook, many at once: on a GPU it copies small ones, and reads the copies when
    there are some; one by one each would cost this process more time than the GPU."""

    def __init__(self, read_all):
        self._read, self._waiting, self._most = read_all, {}, None

    def add(self, row, tensor, part):
        """row.measured is there after flush(). Where no gradients are computed."""
        size = tensor.element_size() * part.count
        if not tensor.is_cuda or size > _STAGED or size == 0 or tensor.is_complex():
            row.measured, = self._read([(tensor, part)])
            return
        if self._most is None:
            self._most = min(_WAITING, max(_STAGED, torch.cuda.memory_allocated(tensor.device) // 200))
        key = torch._C._cuda_getCurrentRawStream(tensor.get_device())
        if key not in self._waiting:
            self._waiting[key] = [0, [], torch.cuda.current_stream(tensor.device)]
        waiting = self._waiting[key]
        if waiting[0] + size > self._most:
            self._flush(waiting)
        waiting[0] += size
        waiting[1].append((row, tensor.clone(memory_format=torch.contiguous_format), part))

    def _flush(self, waiting):
        items, waiting[0], waiting[1] = waiting[1], 0, []
        if items:
            with torch.cuda.stream(waiting[2]):
                for (row, *_), measured in zip(items, self._read([(copy, part) for _, copy, part in items])):
                    row.measured = measured

    def flush(self):
        """Reads what waits."""
        for waiting in self._waiting.values():
            self._flush(waiting)
        self._waiting, self._most = {}, None
