# SPDX-License-Identifier: Apache-2.0
"""Digest, sum of squares and sketch of a tensor, or of the part of it that a rank holds.

Element i of a tensor, in row-major order, lies in row i // 65536 at column i % 65536.

digest   the sum of bits(i) * weight(column) * factor(row), modulo 2^64: bits is the element's pattern as a signed integer.
sketch   numbers[range][k] = the sum of sign_k(i) * x(i), in float64, over the elements of one of `ranges(of)` contiguous
         ranges: element i is in range i * ranges // of. sign_k(i) = column_sign_k * row_sign_k, k = 0..7.

Both are sums over elements: those of a tensor's parts add up to that of the whole, and the sketch is linear in the values.
"""
import torch

PATTERNS = 8
_ROW = 65536
_MASK = (1 << 64) - 1
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_MOST_ROWS = 64  # that are read at once


def ranges(of):
    """The number of ranges of a tensor of so many elements: 16, fewer where a range had less than 16 elements."""
    return max(1, min(16, of // 16))


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


def _factor(row):
    return _signed(mixed(row ^ 0x5A5A5A5A) | 1)


def _pattern(number):
    """Eight signs, from the number's bits."""
    return [1.0 - 2.0 * (number >> (8 + k) & 1) for k in range(PATTERNS)]


class _Tables:
    """What depends on the column, on one device; and rows' factors and signs, as they are needed."""
    made = {}

    def __init__(self, device):
        columns = mixed_all(torch.arange(_ROW))
        self.weights = (columns | 1).to(device)
        self.signs = torch.stack([1.0 - 2.0 * (columns >> (8 + k) & 1).double() for k in range(PATTERNS)]).to(device)
        self.device, self.rows = device, 0

    def of_rows(self, end):
        """Factors [rows] and signs [rows, 8] of at least `end` rows."""
        if self.rows < end:
            self.rows = max(64, end, 2 * self.rows)
            self.factors = torch.tensor([_factor(r) for r in range(self.rows)], dtype=torch.int64).to(self.device)
            self.row_signs = torch.tensor([_pattern(mixed(r ^ 0x3C3C3C3C)) for r in range(self.rows)], dtype=torch.float64).to(self.device)
        return self.factors, self.row_signs


def tables(device):
    """What is made once for a device; some milliseconds."""
    if device not in _Tables.made:
        _Tables.made[device] = _Tables(device)
    return _Tables.made[device]


def _bits(flat):
    return flat.view(_BITS[flat.element_size()])


def _numbers(flat):
    return flat.to(torch.float64)


def measure(flat, part):
    """(digest, numbers): an int64 and a float64 vector on the tensor's device, the sum of squares and then the sketch,
    range by range. `flat` has the part's elements in its order. Nothing waits for a device."""
    flat = flat.detach()
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)[::2].contiguous()  # of complex numbers the real parts
    flat = flat.contiguous().view(-1)
    if part.index is not None:
        return _scattered(flat, part)
    table, count, size = tables(flat.device), ranges(part.of), flat.numel()
    digest = torch.zeros((), dtype=torch.int64, device=flat.device)
    numbers = torch.zeros(1 + count * PATTERNS, dtype=torch.float64, device=flat.device)
    sketch = numbers[1:].view(count, PATTERNS)
    factors, row_signs = table.of_rows((part.begin + size) // _ROW + 1)
    at = 0
    while at < size:
        place = part.begin + at
        row, column = divmod(place, _ROW)
        bucket = place * count // part.of
        edge = min(part.begin + size, -(-(bucket + 1) * part.of // count))  # where this range ends
        rows = min((edge - place) // _ROW, _MOST_ROWS) if column == 0 else 0
        if rows > 0:  # whole rows, within one range
            block = flat[at:at + rows * _ROW].view(rows, _ROW)
            digest += ((_bits(block).to(torch.int64) * table.weights).sum(1) * factors[row:row + rows]).sum()
            values = _numbers(block)
            numbers[0] += values.square().sum()
            sketch[bucket] += ((values @ table.signs.t()) * row_signs[row:row + rows]).sum(0)
            at += rows * _ROW
            continue
        end = min(place - column + _ROW, edge)
        block = flat[at:at + end - place]
        columns = slice(column, column + end - place)
        digest += (_bits(block).to(torch.int64) * table.weights[columns]).sum() * factors[row]
        values = _numbers(block)
        numbers[0] += values.square().sum()
        sketch[bucket] += torch.mv(table.signs[:, columns], values) * row_signs[row]
        at += end - place
    return digest, numbers


def _scattered(flat, part):
    """The same where a part's elements do not follow one another."""
    table, count = tables(flat.device), ranges(part.of)
    digest = torch.zeros((), dtype=torch.int64, device=flat.device)
    numbers = torch.zeros(1 + count * PATTERNS, dtype=torch.float64, device=flat.device)
    factors, row_signs = table.of_rows(part.of // _ROW + 1)
    for at in range(0, flat.numel(), 1 << 18):
        index = part.index[at:at + (1 << 18)].to(flat.device)
        block, row, column = flat[at:at + (1 << 18)], index // _ROW, index % _ROW
        digest += (_bits(block).to(torch.int64) * table.weights[column] * factors[row]).sum()
        values = _numbers(block)
        numbers[0] += values.square().sum()
        signed = table.signs[:, column] * row_signs[row].t() * values
        sums = torch.zeros(PATTERNS, count, dtype=torch.float64, device=flat.device)
        sums.index_add_(1, index * count // part.of, signed)
        numbers[1:] += sums.t().reshape(-1)
    return digest, numbers


def perturb(flat, part, seed, name):
    """Moves each element that is not zero by one unit in the last place, up or down as seed, name and place say; whoever
    holds it. How many."""
    start = seed
    for letter in name.encode():
        start = mixed(start ^ letter)
    index = part.index if part.index is not None else torch.arange(part.begin, part.begin + part.count)
    up = (mixed_all(index ^ _signed(start)) & 1).bool().to(flat.device)
    bits = _bits(flat)
    moved = (bits << 1) != 0  # neither 0 nor -0
    bits += torch.where(up, 1, -1).to(bits.dtype) * moved
    return int(moved.sum())


def digest(flat, begin=0):
    """The digest alone, an int, of contiguous elements whose first stands at `begin` of the whole."""
    flat = flat.detach().contiguous().view(-1)
    table = tables(flat.device)
    factors, _ = table.of_rows((begin + flat.numel()) // _ROW + 1)
    total, at = torch.zeros((), dtype=torch.int64, device=flat.device), 0
    while at < flat.numel():
        row, column = divmod(begin + at, _ROW)
        block = flat[at:at + _ROW - column]
        total += (_bits(block).to(torch.int64) * table.weights[column:column + block.numel()]).sum() * factors[row]
        at += block.numel()
    return total.item() & _MASK


def samples(tensors):
    """A digest, as hexadecimal text, for each sample of a batch: for each index of the first axis, over all tensors that
    have as many as the first one."""
    tensors = [t for t in tensors if t.dim() > 0 and t.numel() > 0 and not t.is_complex()]
    if not tensors:
        return []
    count, total = tensors[0].shape[0], None
    for number, tensor in enumerate(t for t in tensors if t.shape[0] == tensors[0].shape[0]):
        bits = _bits(tensor.detach().contiguous()).reshape(count, -1).to(torch.int64)
        weights = tables(bits.device).weights
        if bits.shape[1] > _ROW:
            weights = weights.repeat(-(-bits.shape[1] // _ROW))
        sums = (bits * weights[:bits.shape[1]]).sum(1) * _factor(number)
        total = sums if total is None else total + sums
    return [f"{value & _MASK:016x}" for value in total.tolist()]
