# SPDX-License-Identifier: Apache-2.0
"""Some elements of each tensor, evenly spaced, by which an element's update is computed again: number k of at most 32 lies at
k * spacing(of) of the whole, in row-major order, whoever holds it."""
import functools

import torch

from . import measuring
from .cut import cut_of

KEPT = 32


def spacing(of):
    every = of // min(of, KEPT)
    return every - 1 if every > 1 and every % 2 == 0 else every  # an odd one visits all columns of a matrix


@functools.lru_cache(1 << 16)
def _slice(of, begin, count):
    """The slice of a part's elements that are kept, or None."""
    if of == 0 or count == 0:
        return None
    every = spacing(of)
    first, end = -(-begin // every), min(min(of, KEPT), -(-(begin + count) // every))
    return slice(first * every - begin, (end - 1) * every - begin + 1, every) if first < end else None


def places(part):
    """Where the part's elements that are kept lie in memory, int64."""
    if part.kept is None:
        every = spacing(part.of) if part.of else 1
        if part.index is None:
            where = _slice(part.of, part.begin, part.count)
            part.kept = torch.arange(where.start, where.stop, where.step) if where else torch.zeros(0, dtype=torch.int64)
        elif len(part.runs) != len(part.shape):  # a slice of what its axes hold
            part.kept = torch.zeros(0, dtype=torch.int64)
        else:
            part.kept = torch.nonzero((part.index % every == 0) & (part.index < every * min(part.of, KEPT))).view(-1)
    return part.kept


def _kept(flat, part):
    where = _slice(part.of, part.begin, part.count) if part.index is None else places(part).to(flat.device)
    return flat[:0] if where is None else flat[where]


def take(items):
    """Of each (tensor, Part) the (float64 vector on its device, first place, count), or None. Nothing waits for a GPU."""
    found = [None] * len(items)
    for numbers in measuring.groups(items):
        numbers = [n for n in numbers if items[n][0].layout == torch.strided]
        flats, parts = [items[n][0] for n in numbers], [items[n][1] for n in numbers]
        if not flats or not flats[0].is_floating_point() or flats[0].element_size() < 2:
            continue
        pick = getattr(measuring.way(flats[0].device, flats[0].dtype), "pick", None)
        cut = cut_of(parts) if pick and all(flat.is_contiguous() for flat in flats) else None
        if cut is None:
            kept = [_kept(flat.detach().reshape(-1), part) for flat, part in zip(flats, parts)]
            vector, counts = torch.cat(kept).double(), [one.numel() for one in kept]
        else:
            if cut.kept is None:
                cut.kept = [places(part) for part in parts]
            vector, counts = pick(cut, flats), [len(one) for one in cut.kept]
        at = 0
        for number, count in zip(numbers, counts):
            if count:
                found[number] = (vector, at, count)
            at += count
    return found
