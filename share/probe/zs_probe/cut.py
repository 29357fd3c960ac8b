# SPDX-License-Identifier: Apache-2.0
"""How the parts of a list of tensors are cut into stretches, each of which one thread or one block of threads reads, and
how the stretches add up to slots: one slot for each range of each tensor (sketch.py)."""
import torch

from .sketch import ROW, ranges

WIDTH = 4096   # columns of a stretch
_HEIGHT = 16   # rows, at most
_MOST_RUNS = 1 << 16  # of a part whose elements do not follow one another


class Cut:
    """stretches [n, 5], int64: the tensor's number; what is to be taken from an element's index for its place in memory; the
    first and the last index, exclusive; the first column, a multiple of WIDTH. Of the elements between the two those of WIDTH columns
    from that column on belong to it. first [slots + 1]: the first stretch of each slot. tensor_of [slots]: the slot's tensor. slot_of [n],
    int32: the stretch's slot."""

    def __init__(self, parts):
        stretches, firsts, self.slots_of, slots, count = [], [], [], 0, 0
        for part in parts:
            rows, first = _of(part)
            stretches.append(rows)
            firsts.append(first + count)
            self.slots_of.append((slots, len(first)))
            slots, count = slots + len(first), count + len(rows)
        self.tensors, self.slots, self.count = len(parts), slots, count
        rows = torch.cat(stretches)
        rows[:, 0] = torch.repeat_interleave(torch.tensor([len(s) for s in stretches]))
        tensor_of = torch.repeat_interleave(torch.tensor([len(f) for f in firsts]))
        self.rows = int(rows[:, 3].max()) // ROW + 1 if count else 1
        first = torch.cat([*firsts, torch.tensor([count])])
        slot_of = torch.repeat_interleave(first[1:] - first[:-1]).to(torch.int32)
        self._held = {torch.device("cpu"): (rows, first, tensor_of, slot_of)}
        self.whole = bool((first[1:] > first[:-1]).all())  # no slot is without elements
        self.tables, self.kept, self._kept = {}, None, {}  # of a device: addresses, and the same there; elements.places() of each part

    def on(self, device):
        if device not in self._held:
            self._held[device] = tuple(t.to(device) for t in self._held[torch.device("cpu")])
        return self._held[device]

    def kept_on(self, device):
        """Of each element of self.kept its tensor and its place there."""
        if device not in self._kept:
            counts = torch.tensor([len(kept) for kept in self.kept])
            self._kept[device] = torch.repeat_interleave(counts).to(device), torch.cat(self.kept).to(device)
        return self._kept[device]


_known = {}


def _of(part):
    """(stretches, the first of each slot) of one part."""
    if part.key not in _known:
        if len(_known) >= 1 << 14:
            _known.clear()
        of_slot = [[] for _ in range(ranges(part.of))]
        for at, begin, end in _runs(part):
            _cut(of_slot, begin - at, begin, end, part.of)
        counts = torch.tensor([len(slot) for slot in of_slot])
        rows = torch.tensor([row for slot in of_slot for row in slot], dtype=torch.int64).view(-1, 5)
        _known[part.key] = rows, counts.cumsum(0) - counts
    return _known[part.key]


def _cut(of_slot, base, begin, end, of):
    """Puts the stretches of the elements [begin, end) into their slots; of a tensor that has no number yet."""
    count = len(of_slot)
    while begin < end:
        slot = begin * count // of
        edge = min(end, -(-(slot + 1) * of // count))  # where this range ends
        if edge - begin >= ROW:  # blocks of columns, over several rows
            for top in range(begin // ROW, (edge - 1) // ROW + 1, _HEIGHT):
                low, high = max(begin, top * ROW), min(edge, (top + _HEIGHT) * ROW)
                for column in range(0, ROW, WIDTH):
                    if _meets(low, high, column):
                        of_slot[slot].append((0, base, low, high, column))
        else:
            for low in _pieces(begin, edge):
                of_slot[slot].append((0, base, *low, low[0] % ROW // WIDTH * WIDTH))
        begin = edge


def _meets(low, high, column):
    """Whether elements [low, high) have any in WIDTH columns from that one on."""
    return high - low >= ROW or any(max(low, row + column) < min(high, row + column + WIDTH)
                                    for row in (low // ROW * ROW, (high - 1) // ROW * ROW))


def _pieces(begin, end):
    while begin < end:
        high = min(end, (begin // WIDTH + 1) * WIDTH)
        yield begin, high
        begin = high


def _breaks(part):
    """Where in a part's elements a run of consecutive ones ends and another begins."""
    return torch.nonzero(part.index[1:] - part.index[:-1] != 1).view(-1) + 1


def _runs(part):
    """(place in memory, begin, end) of each run of consecutive elements."""
    if part.index is None:
        return [(0, part.begin, part.begin + part.count)] if part.count else []
    edges = _breaks(part).tolist()
    starts = [0] + edges
    begins = part.index[torch.tensor(starts)].tolist()
    return [(at, begin, begin + end - at) for at, end, begin in zip(starts, edges + [part.index.numel()], begins)]


_cuts = {}


def cut_of(parts):
    """The cut of a list of parts; kept for the next time. None where a part has too many runs for it."""
    key = tuple([part.key for part in parts])
    if key not in _cuts:
        if len(_cuts) >= 512:
            _cuts.clear()
        _cuts[key] = None if any(part.index is not None and len(_breaks(part)) >= _MOST_RUNS for part in parts) else Cut(parts)
    return _cuts[key]
