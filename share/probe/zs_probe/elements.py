# SPDX-License-Identifier: Apache-2.0
"""Some elements of each tensor, evenly spaced, by which an element's update is computed again: number k of at most 32 lies at
k * spacing(of) of the whole, in row-major order, whoever holds it."""
import functools

import torch

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


def _kept(flat, part):
    if not flat.is_floating_point() or flat.element_size() < 2 or flat.layout != torch.strided:
        return None
    if part.index is None:
        where = _slice(part.of, part.begin, part.count)
        return None if where is None else (flat if flat.dim() == 1 else flat.reshape(-1))[where]
    if len(part.runs) != len(part.shape):  # a slice of what its axes hold
        return None
    if part.kept is None:
        every = spacing(part.of)
        part.kept = torch.nonzero((part.index % every == 0) & (part.index < every * min(part.of, KEPT))).view(-1)
    return flat.reshape(-1)[part.kept.to(flat.device)]


def take(items):
    """Of each (tensor, Part) the (float64 vector on its device, first place, count), or None. Nothing waits for a GPU."""
    found, groups = [None] * len(items), {}
    for number, (flat, part) in enumerate(items):
        kept = _kept(flat.detach(), part)
        if kept is not None:
            groups.setdefault((flat.device, flat.dtype), []).append((number, kept))
    for held in groups.values():
        vector, at = torch.cat([kept for _, kept in held]).double(), 0
        for number, kept in held:
            found[number] = (vector, at, kept.numel())
            at += kept.numel()
    return found
