# SPDX-License-Identifier: Apache-2.0
"""Parts of parameters within the flat tensors that an optimizer moves."""


class Slice:
    """A part of a parameter within a flat tensor."""

    def __init__(self, name, part, at):
        self.name, self.part, self.at = name, part, at

    def of(self, flat):
        return (flat if flat.dim() == 1 else flat.reshape(-1)).narrow(0, self.at, self.part.count)


_splits = {}  # by the id of a list of slices: it, which keeps its id; numbers of a flat tensor; sizes of its pieces; of each slice its piece


def _split(slices, count):
    sizes, which, at = [], [0] * len(slices), 0
    for n in sorted(range(len(slices)), key=lambda n: slices[n].at):
        size, begin = slices[n].part.count, slices[n].at
        if size and begin < at:
            return None, None  # they overlap
        if size and begin > at:
            sizes.append(begin - at)
        which[n] = len(sizes)
        sizes.append(size)
        at = begin + size if size else at
    return sizes + [count - at], which


def pieces(slices, flat):
    """The values of all slices of a flat tensor: views of it, by one call."""
    flat, known = flat.detach().reshape(-1), _splits.get(id(slices))
    if known is None or known[0] is not slices or known[1] != flat.numel() or len(known[3] or slices) != len(slices):
        if len(_splits) >= 256:
            _splits.clear()
        known = _splits[id(slices)] = (slices, flat.numel(), *_split(slices, flat.numel()))
    if known[2] is None:
        return [s.of(flat) for s in slices]
    made = flat.split(known[2])
    return [made[n] for n in known[3]]
