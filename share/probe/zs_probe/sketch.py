# SPDX-License-Identifier: Apache-2.0
"""Digest, sum of squares and sketch of a tensor, or of the part of it that a rank holds.

Element i of a tensor, in row-major order, lies in row i // 65536 at column i % 65536.

digest   the sum of bits(i) * weight(column) * factor(row), modulo 2^64: bits is the element's pattern as a signed integer.
sketch   numbers[range][k] = the sum of sign_k(i) * x(i), in float64, over the elements of one of `ranges(of)` contiguous
         ranges: element i is in range i * ranges // of. sign_k(i) = column_sign_k * row_sign_k, k = 0..7.

Both are sums over elements: those of a tensor's parts add up to that of the whole, and the sketch is linear in the values.
"""
import os

import torch


def is_golden():
    """ZS_PROBE=golden or golden:FOLDER: the recording is short."""
    return os.environ.get("ZS_PROBE", "").partition(":")[0] == "golden"


SHORT = is_golden()  # one range, however large a tensor is
PATTERNS = 8
ROW = 65536
_MASK = (1 << 64) - 1
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_MOSTROWS = 64  # that are read at once


def ranges(of):
    """The number of ranges of a tensor of so many elements: 16, fewer where a range had less than 16 elements. 1 in a golden."""
    return 1 if SHORT else max(1, min(16, of // 16))


def mixed(number):
    """splitmix64 of a number."""
    z = (number + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def mixed_all(numbers):
    """The same of an int64 vector: its sums and products wrap around."""
    def shifted(z, by):  # of the pattern, not of the signed number
        return z >> by & ((1 << (64 - by)) - 1)

    z = numbers + _signed(0x9E3779B97F4A7C15)
    z = (z ^ shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ shifted(z, 31)


def _signed(number):
    return number - (1 << 64) if number >> 63 else number


class _Tables:
    """What depends on the column or on the row, on one device. hashes [columns and some more]: the digest's weight is the hash
    with its last bit set, sign k its bit 8 + k. factors, row_signs [rows]: sign k of a row is bit 8 + k."""
    made = {}

    def __init__(self, device):
        self.device, self.rows, self._signs = device, 0, None
        self.hashes = mixed_all(torch.arange(2 * ROW)).to(device)

    def of_rows(self, end):
        """(hashes, factors, row_signs), of at least `end` rows."""
        if self.rows < end:
            self.rows = max(1024, end, 2 * self.rows)
            rows = torch.arange(self.rows)
            self.factors, self.row_signs = (mixed_all(rows ^ 0x5A5A5A5A) | 1).to(self.device), mixed_all(rows ^ 0x3C3C3C3C).to(self.device)
        return self.hashes, self.factors, self.row_signs

    def signs(self):
        """[8, columns] in float64."""
        if self._signs is None:
            self._signs = _signs(self.hashes[:ROW])
        return self._signs


def _signs(hashes):
    return torch.stack([1.0 - 2.0 * (hashes >> (8 + k) & 1).double() for k in range(PATTERNS)])


def tables(device):
    """What is made once for a device; some milliseconds."""
    if device not in _Tables.made:
        _Tables.made[device] = _Tables(device)
    return _Tables.made[device]


def _bits(flat):
    return flat.view(_BITS[flat.element_size()])


def measure(flat, part):
    """The tensor's numbers by PyTorch's own operations, on its device: float64 [10 * ranges], first the digest's pattern, then
    the sum of squares, each in the first of `ranges` places, then the sketch. `flat` has the part's elements in its order.
    Nothing waits for a device."""
    table, count = tables(flat.device), ranges(part.of)
    out = torch.zeros((2 + PATTERNS) * count, dtype=torch.float64, device=flat.device)
    digest, squares, sketch = out.view(torch.int64)[0], out[count], out[2 * count:].view(count, PATTERNS)
    _, factors, row_signs = table.of_rows(part.of // ROW + 1)
    for at, size, place in _blocks(part):
        block = flat[at:at + size]
        values = block.to(torch.float64)
        squares += values.square().sum()
        if isinstance(place, int):
            row, column = divmod(place, ROW)
            digest += (_bits(block).to(torch.int64) * (table.hashes[column:column + size] | 1)).sum() * factors[row]
            sketch[place * count // part.of] += torch.mv(table.signs()[:, column:column + size], values) * _signs(row_signs[row])
            continue
        place = place.to(flat.device)
        row, column = place // ROW, place % ROW
        digest += (_bits(block).to(torch.int64) * (table.hashes[column] | 1) * factors[row]).sum()
        signed = table.signs()[:, column] * _signs(row_signs[row]) * values
        sums = torch.zeros(PATTERNS, count, dtype=torch.float64, device=flat.device)
        sketch += sums.index_add_(1, place * count // part.of, signed).t()
    return out


def _blocks(part):
    """(place in memory, size, place in the tensor) of what is read at once: within one row and range; or, where elements do not
    follow one another, their places."""
    count, at = ranges(part.of), 0
    while at < part.count:
        if part.index is not None:
            place = part.index[at:at + (1 << 18)]
            yield at, len(place), place
            at += len(place)
            continue
        place = part.begin + at
        edge = -(-(place * count // part.of + 1) * part.of // count)  # where this range ends
        end = min(part.begin + part.count, edge, (place // ROW + 1) * ROW)
        yield at, end - place, place
        at += end - place


def perturb(flat, part, seed, name):
    """Moves each element that is not zero by one unit in the last place, up or down as seed, name and place say; whoever
    holds it. How many."""
    start = seed
    for letter in name.encode():
        start = mixed(start ^ letter)
    flat = flat.detach().view(-1)
    index = part.index if part.index is not None else torch.arange(part.begin, part.begin + part.count)
    up = (mixed_all(index ^ _signed(start)) & 1).bool().to(flat.device)
    bits = _bits(flat)
    moved = (bits << 1) != 0  # neither 0 nor -0
    bits += torch.where(up, 1, -1).to(bits.dtype) * moved
    return int(moved.sum())


def digest(flat, begin=0):
    """The digest alone, an int, of contiguous elements whose first stands at `begin` of the whole."""
    flat = flat.detach().contiguous().view(-1)
    weights = tables(flat.device).hashes | 1
    _, factors, _ = tables(flat.device).of_rows((begin + flat.numel()) // ROW + 1)
    total, at = torch.zeros((), dtype=torch.int64, device=flat.device), 0
    while at < flat.numel():
        row, column = divmod(begin + at, ROW)
        block = flat[at:at + ROW - column]
        total += (_bits(block).to(torch.int64) * weights[column:column + block.numel()]).sum() * factors[row]
        at += block.numel()
    return total.item() & _MASK


def samples(tensors):
    """A digest for each sample of a batch, an int64 vector on its device: for each index of the first axis, over all tensors
    that have as many as the first one. None: there is no sample."""
    tensors = [t.to_local() if hasattr(t, "to_local") else t for t in tensors]  # of a DTensor what this rank holds
    tensors = [t for t in tensors if t.dim() > 0 and t.numel() > 0 and not t.is_complex()]
    if not tensors:
        return None
    count, total = tensors[0].shape[0], None
    for number, tensor in enumerate(t for t in tensors if t.shape[0] == tensors[0].shape[0]):
        bits = _bits(tensor.detach().contiguous()).reshape(count, -1).to(torch.int64)
        weights = tables(bits.device).hashes[:ROW] | 1
        if bits.shape[1] > ROW:
            weights = weights.repeat(-(-bits.shape[1] // ROW))
        sums = (bits * weights[:bits.shape[1]]).sum(1) * _signed(mixed(number ^ 0x5A5A5A5A) | 1)
        total = sums if total is None else total + sums.to(total.device)
    return total
