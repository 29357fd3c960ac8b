# SPDX-License-Identifier: Apache-2.0
"""Digest, sum of squares and sketch of tensors on GPUs, in one read and one launch of Triton for a list of tensors. The numbers
do not depend on timing: each program writes its own, and they are added up in order."""
import functools

import torch
import triton
import triton.language as tl

from .cut import WIDTH
from .sketch import PATTERNS, tables

_TYPES = {torch.float32: (tl.float32, tl.int32), torch.float64: (tl.float64, tl.int64), torch.bfloat16: (tl.bfloat16, tl.int16),
          torch.float16: (tl.float16, tl.int16), torch.int8: (tl.int8, tl.int8), torch.int16: (tl.int16, tl.int16),
          torch.int32: (tl.int32, tl.int32), torch.int64: (tl.int64, tl.int64), torch.uint8: (tl.uint8, tl.int8)}
_BLOCK, _DEEP, _WARPS = 128, 8, 2  # columns, and how many times as many, that a block of threads loads at once


@triton.jit
def _signed(bits, signs, k: tl.constexpr):
    """The sum over the first axis of values whose sign turns where bit 8 + k of `signs` is set."""
    turned = (bits ^ ((signs << (55 - k)) & -0x8000000000000000)).to(tl.float64, bitcast=True)
    return tl.sum(turned, 0)


@triton.jit(do_not_specialize=["address", "count"])
def _read(stretches, addresses, address, wanted, hashes, factors, row_signs, sums, count,
          kind: tl.constexpr, pattern: tl.constexpr, one: tl.constexpr, some: tl.constexpr, digests_only: tl.constexpr,
          width: tl.constexpr, block: tl.constexpr, deep: tl.constexpr):
    number = tl.program_id(0)
    at = stretches + number * 5
    tensor, base, begin, end, column = tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3), tl.load(at + 4)
    column = tl.multiple_of(column.to(tl.int32), width)
    if some:
        end = tl.where(tl.load(wanted + tensor) != 0, end, begin)
    if one:
        place = address
    else:
        place = tl.load(addresses + tensor)
    held = place.to(tl.int64).to(tl.pointer_type(kind))
    lanes = tl.arange(0, deep)[:, None] * block + tl.arange(0, block)[None, :]
    digest = tl.zeros([block], tl.int64)
    squares = tl.zeros([block], tl.float64)
    a0, a1, a2, a3 = squares, squares, squares, squares
    a4, a5, a6, a7 = squares, squares, squares, squares
    for row in range(begin // 65536, (end + 65535) // 65536):
        start = row * 65536
        low = tl.maximum(begin - start, column).to(tl.int32)
        high = tl.minimum(end - start, column + width).to(tl.int32)
        of_row = tl.zeros([block], tl.int64)
        row_sign = tl.load(row_signs + row)
        here = held + (start - base)
        for c in range(column + (low - column) // (deep * block) * (deep * block), high, deep * block):
            columns = tl.multiple_of(c, block) + lanes
            x = tl.load(here + columns, mask=(columns >= low) & (columns < high), other=0)
            hashed = tl.load(hashes + columns)
            of_row += tl.sum(x.to(pattern, bitcast=True).to(tl.int64) * (hashed | 1), 0)
            if not digests_only:
                values = x.to(tl.float64)
                squares += tl.sum(values * values, 0)
                bits, signs = values.to(tl.int64, bitcast=True), hashed ^ row_sign
                a0 += _signed(bits, signs, 0)
                a1 += _signed(bits, signs, 1)
                a2 += _signed(bits, signs, 2)
                a3 += _signed(bits, signs, 3)
                a4 += _signed(bits, signs, 4)
                a5 += _signed(bits, signs, 5)
                a6 += _signed(bits, signs, 6)
                a7 += _signed(bits, signs, 7)
        digest += of_row * tl.load(factors + row)
    tl.store(sums + number, tl.sum(digest, 0))
    if not digests_only:
        into = sums.to(tl.pointer_type(tl.float64)) + count
        tl.store(into + number, tl.sum(squares, 0))
        into += count + number * 8
        tl.store(into, tl.sum(a0, 0))
        tl.store(into + 1, tl.sum(a1, 0))
        tl.store(into + 2, tl.sum(a2, 0))
        tl.store(into + 3, tl.sum(a3, 0))
        tl.store(into + 4, tl.sum(a4, 0))
        tl.store(into + 5, tl.sum(a5, 0))
        tl.store(into + 6, tl.sum(a6, 0))
        tl.store(into + 7, tl.sum(a7, 0))


@triton.jit(do_not_specialize=["count", "slots"])
def _add(sums, first, out, count, slots, digests_only: tl.constexpr, block: tl.constexpr):
    slot = tl.program_id(0)
    begin, end = tl.load(first + slot), tl.load(first + slot + 1)
    lanes, patterns = tl.arange(0, block), tl.arange(0, 8)
    numbers = sums.to(tl.pointer_type(tl.float64))
    digest = tl.zeros([block], tl.int64)
    squares = tl.zeros([block], tl.float64)
    sketch = tl.zeros([block, 8], tl.float64)
    for at in range(begin, end, block):
        inside = at + lanes < end
        digest += tl.load(sums + at + lanes, mask=inside, other=0)
        if not digests_only:
            squares += tl.load(numbers + count + at + lanes, mask=inside, other=0)
            sketch += tl.load(numbers + 2 * count + (at + lanes)[:, None] * 8 + patterns[None, :], mask=inside[:, None], other=0)
    tl.store(out + slot, tl.sum(digest, 0))
    if not digests_only:
        into = out.to(tl.pointer_type(tl.float64)) + slots
        tl.store(into + slot, tl.sum(squares, 0))
        tl.store(into + slots + slot * 8 + patterns, tl.sum(sketch, 0))


@triton.jit(do_not_specialize=["count"])
def _pick(addresses, tensors, places, out, count, kind: tl.constexpr, block: tl.constexpr):
    lanes = tl.program_id(0) * block + tl.arange(0, block)
    inside = lanes < count
    held = tl.load(addresses + tl.load(tensors + lanes, mask=inside, other=0)).to(tl.pointer_type(kind))
    tl.store(out + lanes, tl.load(held + tl.load(places + lanes, mask=inside, other=0), mask=inside, other=0).to(tl.float64), mask=inside)


def takes(dtype):
    return dtype in _TYPES


def _addresses(cut, flats, device):
    """A table of where tensors lie, on their device: made again where they moved."""
    held = tuple([flat.data_ptr() for flat in flats])
    known = cut.tables.setdefault(device, {})
    if held not in known:
        if len(known) >= 8:
            known.pop(next(iter(known)))
        known[held] = torch.tensor(held, dtype=torch.int64, pin_memory=True).to(device, non_blocking=True)
    return known[held]


def measure(cut, flats, digests_only=False, wanted=None):
    """As native.measure(), on the tensors' device, without waiting for it."""
    device = flats[0].device
    kind, pattern = _TYPES[flats[0].dtype]
    stretches, first, _ = cut.on(device)
    hashes, factors, row_signs = tables(device).of_rows(cut.rows)
    numbers = 1 if digests_only else 2 + PATTERNS
    sums = torch.empty(numbers * cut.count, dtype=torch.int64, device=device)
    out = torch.empty(numbers * cut.slots, dtype=torch.int64, device=device)
    one = cut.tensors == 1
    with torch.cuda.device(device):
        if cut.count:
            _read[(cut.count,)](stretches, stretches if one else _addresses(cut, flats, device), flats[0].data_ptr() if one else 0,
                                stretches if wanted is None else wanted, hashes, factors, row_signs, sums, cut.count, kind, pattern, one,
                                wanted is not None, digests_only, WIDTH, _BLOCK, _DEEP, num_warps=_WARPS)
        _add[(cut.slots,)](sums, first, out, cut.count, cut.slots, digests_only, 32, num_warps=1)
    return out.view(torch.float64)


def pick(cut, flats):
    """The elements of cut.kept, of contiguous tensors, as one float64 vector on their device."""
    device, known = flats[0].device, cut.tables.setdefault("kept", {})
    if device not in known:
        counts = torch.tensor([len(kept) for kept in cut.kept])
        known[device] = torch.repeat_interleave(counts).to(device), torch.cat(cut.kept).to(device)
    tensors, places = known[device]
    out = torch.empty(len(places), dtype=torch.float64, device=device)
    if len(places):
        with torch.cuda.device(device):
            _pick[(-(-len(places) // 256),)](_addresses(cut, flats, device), tensors, places, out, len(places), _TYPES[flats[0].dtype][0], 256, num_warps=4)
    return out


@functools.lru_cache(None)
def works(device):
    """Whether kernels compile here: raises what Triton does."""
    from .cut import Cut
    from .part import Part
    flat = torch.ones(64, device=device)
    measure(Cut([Part([64])]), [flat])
    return True
