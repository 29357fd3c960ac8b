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
    if flat.is_complex():
        flat = flat.real  # as measuring.py reads them
    where = _slice(part.of, part.begin, part.count) if part.index is None else places(part).to(flat.device)
    return flat[:0] if where is None else flat[where]


def _plan(plan, tensors):
    """Makes plan.picks, of each vector (tensors' numbers, how they are picked at once, their cut), and plan.kept, of each tensor (vector's
    number, first place, count), or None."""
    plan.picks, plan.kept = [], [None] * len(tensors)
    for numbers in plan.groups():
        numbers = [n for n in numbers if tensors[n].layout == torch.strided]
        kind, device, _ = plan.kinds[numbers[0]] if numbers else (torch.bool, None, None)
        if not (kind.is_floating_point or kind.is_complex) or tensors[numbers[0]].element_size() < 2:
            continue
        cut = cut_of([plan.parts[n] for n in numbers]) if plan.plain and measuring.way(device, kind) else None
        counts, at = [len(places(plan.parts[n])) for n in numbers], 0
        if cut is not None:
            cut.kept = [places(plan.parts[n]) for n in numbers]
        for n, count in zip(numbers, counts):
            if count:
                plan.kept[n] = (len(plan.picks), at, count)
            at += count
        plan.picks.append((numbers, measuring.way(device, kind), cut))


def take(plan, tensors):
    """Vectors of elements in float64, on their devices; plan.kept says which tensor's lie where. Nothing waits for a GPU."""
    if plan.picks is None:
        _plan(plan, tensors)
    made = []
    for numbers, how, cut in plan.picks:
        flats = tensors if len(numbers) == len(tensors) else [tensors[n] for n in numbers]
        if cut is not None:
            made.append(how.pick(cut, flats[0], measuring.addresses(flats)))
        else:
            made.append(torch.cat([_kept(flat.detach().reshape(-1), plan.parts[n]) for n, flat in zip(numbers, flats)]).double())
    return made
