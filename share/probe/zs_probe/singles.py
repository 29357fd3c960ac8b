# SPDX-License-Identifier: Apache-2.0
"""Single numbers of a step, which may lie on a GPU or on several ranks, and digests of the random generators."""
import functools
import hashlib
import random

import torch

from .hooks import is_texts
from .part import is_dtensor
from .writer import raw


def single(value):
    """A number, as it lies on its device; without a collective: None where it is a summand of several ranks."""
    if not torch.is_tensor(value):
        return float(value)
    if is_dtensor(value):
        if any(not p.is_replicate() for p in value.placements):
            return None
        value = value.to_local()
    return value.detach()


def squares(norm):
    """Of a norm that is not joined over the ranks yet this rank's share of its square; None: another rank has it too."""
    if any(getattr(p, "norm_type", 2) != 2 for p in norm.placements):
        return None
    mesh = norm.device_mesh
    if any(at and not p.is_partial() for at, p in zip(mesh.get_coordinate(), norm.placements)):
        return None
    return norm.to_local().detach().double().square()


def joined(tensors):
    """(vectors of the first element of each, one of each type and device; the place of each tensor's, by its id)."""
    kinds, place = {}, {}
    if len({(t.get_device(), t.dtype, t.dim()) for t in tensors}) == 1 and tensors[0].dim() == 0:
        with torch.no_grad():
            return [torch.stack(tensors).double()], {id(t): n for n, t in enumerate(tensors)}
    for t in tensors:
        kinds.setdefault((t.get_device(), t.dtype, t.dim() == 0), {})[id(t)] = t.detach()
    for held in kinds.values():
        for key in held:
            place[key] = len(place)
    return [torch.stack([t if alone else t.reshape(-1)[0] for t in held.values()]).double() for (_, _, alone), held in kinds.items()], place


def numbers(value, number):
    """The same with numbers in place of tensors."""
    if torch.is_tensor(value):
        return number(value)
    if isinstance(value, dict):
        return {key: numbers(held, number) for key, held in value.items()}
    return [numbers(held, number) for held in value] if isinstance(value, (list, tuple)) and not is_texts(value) else value


def by_value(counters):
    """{"5": names} of [names, 5.0]."""
    found, texts = {}, {}
    for names, count in counters:
        text = texts.get(count)
        if text is None:
            text = texts[count] = str(int(count)) if float(count).is_integer() else repr(float(count))
        found.setdefault(text, []).extend(names)
    return found


def _short(data):
    return hashlib.blake2b(data, digest_size=8).hexdigest()


@functools.lru_cache(1)
def _of_python(state):
    return _short(repr(state).encode())


def generators():
    """A digest of each random generator's state."""
    found = {"python": _of_python(random.getstate()), "torch": _short(raw(torch.get_rng_state()))}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = _short(raw(torch.cuda.get_rng_state()))
    return found
