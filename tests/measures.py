#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether each way in which zs_probe reads a tensor gives what PyTorch's own operations do: the digest to the bit, the sum of
squares and the sketch up to float64's rounding. measures.py [cpu | cuda | driver]: of types, parts, beginnings; prints what differs.
driver: on processors, as if they were GPUs: native.c does what kernels.py tells a driver."""
import ctypes
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "share" / "probe"))
from zs_probe import elements, kernels, measuring, native, sketch, writer  # noqa: E402
from zs_probe.part import Part  # noqa: E402

driven = sys.argv[1:] == ["driver"]
device = torch.device("cpu" if driven or len(sys.argv) < 2 else sys.argv[1])
TYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
# Elements of the whole, the first that is held, how many.
PARTS = ((0, 0, 0), (1, 0, 1), (15, 3, 7), (16, 0, 16), (31, 0, 31), (32, 1, 30), (768, 0, 768), (65536, 0, 65536), (65537, 5, 65532),
         (70000, 65530, 20), (200003, 17, 150001), (3000000, 100003, 2500000), (2097152, 0, 2097152), (40000, 10, 0))
wrong = compared = 0


def scattered(index, shape):
    return Part(shape, int(index[0]), len(index), index, [["as", "they", "lie"], [len(index), int(index[-1])]])


def parts():
    for of, begin, count in PARTS:
        yield Part([of], begin, count)
    yield scattered(torch.arange(300 * 700).view(300, 700)[:, 100:333].reshape(-1), [300, 700])
    yield scattered(torch.arange(0, 90000, 3), [90000])


def drawn(count, dtype):
    values = torch.randn(count) * 100
    values[::7] = 0
    if count > 3 and dtype.is_floating_point:
        values[1], values[2] = -0.0, 3e-7  # in float16 below the smallest normal number
    return (values.abs().clamp(max=255) if dtype == torch.uint8 else values.clamp(-100, 100) if dtype == torch.int8 else values).to(dtype).to(device)


def agree(flat, part, numbers, slot, count, slots):
    own = sketch.measure(flat, part)
    digests, its = own.view(torch.int64)[:count], numbers.view(torch.int64)[slot:slot + count]
    size = float(flat.double().abs().sum()) + 1e-300
    squares, theirs = float(own[count:2 * count].sum()), float(numbers[slots + slot:slots + slot + count].sum())
    apart = (own[2 * count:] - numbers[2 * slots + 8 * slot:2 * slots + 8 * (slot + count)]).abs().max()
    return int(digests.sum()) == int(its.sum()) and abs(squares - theirs) <= 1e-13 * abs(squares) and float(apart) <= 1e-14 * size


class Driver:
    """What kernels.py needs of a GPU."""

    def __init__(self):
        self.launch, self.tensor, self.cut, self.dtype = kernels.launch, torch.tensor, None, None
        kernels.launch, kernels._run, kernels._functions, measuring.way = self.launched, self.run, self.functions, lambda *_: kernels
        torch._C._cuda_getCurrentRawStream = lambda index: 0
        torch.tensor = lambda *args, pin_memory=False, **more: self.tensor(*args, **more)

    def functions(self, index, dtype):
        self.dtype = dtype
        return {name: name for name in ("read_all", "read_digests", "pick")}

    def launched(self, cut, *args):
        self.cut = cut
        return self.launch(cut, *args)

    def run(self, index, name, blocks, told, *more):
        if name == "pick":
            tensors, places, out, count = [one.value for one in more]
            native.library().zs_pick(told, tensors, places, native._TYPES[self.dtype], count, out)
            return
        cut, like = self.cut, torch.zeros(0, dtype=self.dtype)
        held = [told.address] if cut.tensors == 1 else (ctypes.c_int64 * cut.tensors).from_address(told.addresses)
        wanted = torch.frombuffer((ctypes.c_int32 * cut.tensors).from_address(told.wanted), dtype=torch.int32) if told.wanted else None
        numbers = native.measure(cut, like, held, name == "read_digests", wanted)
        ctypes.memmove(told.out, numbers.data_ptr(), 8 * (cut.slots if name == "read_digests" else numbers.numel()))
        if told.before:
            before = (ctypes.c_int64 * cut.slots).from_address(told.before)
            for slot, tensor in enumerate(cut.on(device)[2].tolist()):
                if before[slot] != int(numbers.view(torch.int64)[slot]):
                    ctypes.c_int32.from_address(told.changed + 4 * tensor).value = 1


def read(items, earlier=()):
    """Of each (tensor, Part) the (Reading, first slot, number of slots)."""
    tensors, held = zip(*items)
    plan = measuring.plan_of(tensors, held)
    made = plan.read(tensors, earlier)
    return [(made[number], slot, count) for number, slot, count in plan.places]


if driven:
    Driver()
torch.manual_seed(1)
ways = set()
for dtype in TYPES:
    items = [(drawn(part.count, dtype), part) for part in parts()]
    items.append((items[-1][0].flip(0)[5:], Part([100000], 7, items[-1][0].numel() - 5)))  # at an odd place in memory
    for found in (read(items), [read([item])[0] for item in items]):
        for (flat, part), (reading, slot, count) in zip(items, found):
            compared += 1
            ways.add("at once" if reading.cut is not None else "PyTorch's own operations")
            if not agree(flat, part, reading.numbers, slot, count, reading.slots):
                wrong += 1
                print(f"{dtype}, {part.count} of {part.of} from {part.begin}: other numbers")
    tensors, held = zip(*items)
    plan = measuring.plan_of(tensors, held)
    vectors = elements.take(plan, tensors)
    for (flat, part), kept in zip(items, plan.kept):
        compared += 1
        wanted = flat.reshape(-1)[elements.places(part).to(device)].double() if dtype.is_floating_point else flat[:0]
        if kept is None and wanted.numel() or kept and not torch.equal(vectors[kept[0]][kept[1]:kept[1] + kept[2]], wanted):
            wrong += 1
            print(f"{dtype}, {part.count} of {part.of} from {part.begin}: other elements")
    before = plan.read(tensors)  # what is equal to an earlier reading is not read again; a change is seen
    flat = items[6][0]
    flat.view(-1)[5] += 1
    for (_, part), (reading, slot, count), (whole, at, _) in zip(items, read(items, before), read(items)):
        compared += 1
        if reading.digests is None:
            continue
        changed = reading.numbers[2 * reading.slots + 8 * slot:2 * reading.slots + 8 * (slot + count)].abs().sum() > 0
        own = reading.digests.view(torch.int64)[slot:slot + count], whole.numbers.view(torch.int64)[at:at + count]
        if not torch.equal(*own) or bool(changed) != (part is items[6][1]):
            wrong += 1
            print(f"{dtype}, {part.count} of {part.of} from {part.begin}: read again wrongly")
    rows = writer.Listed(writer.Rows(["param/a"] * len(items), plan), plan.read(tensors), vectors)
    transfer = writer.moved([rows])
    texts = []
    for compiled in (True, False):  # rows as texts, by native.c and by Python
        library = writer.native.library
        writer.native.library = library if compiled else lambda: None
        texts.append(writer.finish(rows, transfer))
        writer.native.library = library
    compared += 1
    if texts[0][1] != texts[1][1] or json.loads(b"[" + texts[0][0] + b"]") != json.loads(b"[" + texts[1][0] + b"]"):
        wrong += 1
        print(f"{dtype}: texts of rows differ")
print(f"{compared} compared, {wrong} wrong, on {'a driver' if driven else device}, read {' and '.join(sorted(ways))}")
sys.exit(wrong > 0)
