# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of tests/tensorfile.bats: python3 tensorfile.py FOLDER

Checks FOLDER/ours.* bit by bit, then writes FOLDER/theirs.* for zs to check."""
import json
import struct
import sys
from collections import OrderedDict

import numpy as np
import torch

FOLDER = sys.argv[1]
NUMPY = {"bool": "?", "uint8": "u1", "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "float16": "<f2",
         "bfloat16": "<i2", "float32": "<f4", "float64": "<f8", "complex64": "<c8", "complex128": "<c16"}
# dtype, shape: tensor k has seed 1000 + k
TENSORS = [("bool", [5]), ("uint8", [3, 3]), ("int8", [7]), ("int16", [2, 2, 2]), ("int32", [4]), ("int64", [3]),
           ("float16", [33]), ("bfloat16", [4, 9]), ("float32", [17, 5]), ("float64", [6]), ("complex64", [3]),
           ("complex128", [2]), ("float32", []), ("float32", [0, 4])]


def any_bytes(size, seed):
    out, x = bytearray(), seed
    for _ in range(size):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append((x >> 16) & 0xFF)
    return bytes(out)


def make(dtype, shape, seed):
    kind = np.dtype(NUMPY[dtype])
    data = any_bytes(int(np.prod(shape)) * kind.itemsize, seed)
    if dtype == "bool":
        data = bytes(b & 1 for b in data)
    tensor = torch.from_numpy(np.frombuffer(bytearray(data), dtype=kind).reshape(shape) if data else np.zeros(shape, kind))
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def bits(tensor):
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.numpy().tobytes()


def same(got, want, name):
    assert isinstance(got, torch.Tensor), (name, type(got))
    assert got.dtype == want.dtype and got.shape == want.shape, (name, got.dtype, got.shape, want.dtype, want.shape)
    assert bits(got) == bits(want), (name, "bits differ")


def check_ours():
    ours = torch.load(f"{FOLDER}/ours.bin", weights_only=True)
    assert type(ours) is dict, type(ours)
    assert list(ours)[:3] == ["t0", "t1", "t2"], list(ours)
    for k, (dtype, shape) in enumerate(TENSORS):
        same(ours.pop(f"t{k}"), make(dtype, shape, 1000 + k), f"t{k}")
    wte, head, part, turned = (ours.pop(n) for n in ("wte", "head", "part", "turned"))
    whole = make("float32", [8, 6], 7)
    same(wte, whole, "wte")
    same(head, whole, "head")
    same(part, whole[2:5], "part")
    same(turned, whole.t(), "turned")
    assert turned.stride() == (1, 6)
    assert wte.data_ptr() == head.data_ptr() == turned.data_ptr(), "ties are lost"
    assert part.data_ptr() == wte.data_ptr() + 2 * 6 * 4
    with torch.no_grad():
        head[0, 0] = 5.0
    assert wte[0, 0] == 5.0
    same(ours.pop("produced"), make("float32", [100, 100], 11), "produced")
    floats = ours["plain"].pop("floats")
    assert [float(f) for f in floats[:3]] == [0.1, -1e300, float("inf")] and all(f.dtype == torch.float64 for f in floats)
    assert float(floats[3]) != float(floats[3])
    assert ours == {
        "plain": {"ints": [0, 255, 256, 65535, 65536, -1, 2**31 - 1, -2**31, 2**31, 2**63 - 1, -2**63],
                  "text": "gr\u00fc\u00df \U0001F600", "yes": True, "no": False, "none": None, "empty": [{}, [], ()],
                  "tuple": (1, (2, "three"), [4])},
        0: {1: "one"}}, ours
    # the same with what is not restricted, and through the zip's own checksums
    torch.load(f"{FOLDER}/ours.bin")
    import zipfile
    for name in ("ours.bin", "zip64.zip"):
        archive = zipfile.ZipFile(f"{FOLDER}/{name}")
        assert archive.testzip() is None
        for info in archive.infolist():
            archive.fp.seek(info.header_offset + 26)
            start = info.header_offset + 30 + sum(struct.unpack("<HH", archive.fp.read(4)))
            assert start % 64 == 0 and info.compress_type == 0, (info.filename, start)
    assert zipfile.ZipFile(f"{FOLDER}/zip64.zip").read("archive/b") == any_bytes(5000, 3)
    reader = torch._C.PyTorchFileReader(f"{FOLDER}/zip64.zip")
    assert reader.get_record("b") == any_bytes(5000, 3)

    raw = open(f"{FOLDER}/ours.safetensors", "rb").read()
    (size,) = struct.unpack("<Q", raw[:8])
    assert size % 8 == 0
    header = json.loads(raw[8:8 + size])
    assert header.pop("__metadata__") == {"format": "pt", "who": "zs"}
    names, at = list(header), 0
    for name in names:
        begin, end = header[name]["data_offsets"]
        assert begin == at, name
        at = end
        k = int(name[1:])
        dtype, shape = TENSORS[k]
        assert header[name]["shape"] == shape
        assert raw[8 + size + begin:8 + size + end] == bits(make(dtype, shape, 1000 + k)), name
    assert 8 + size + at == len(raw) and len(names) == len(TENSORS) - 1  # complex128 is not in that format

    # all f16 and bf16 as f32, and f32 rounded to both, as zs made them
    every = np.arange(65536, dtype=np.uint16).view(np.int16)
    conversions = torch.load(f"{FOLDER}/conversions.bin", weights_only=True)
    for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
        want = torch.from_numpy(every.copy()).view(dtype).float()
        got = conversions[name]
        nan = torch.isnan(want)
        assert bool((torch.isnan(got) == nan).all())
        assert bits(got[~nan]) == bits(want[~nan]), name
        source = conversions["f32"]
        nan = torch.isnan(source)
        got = conversions[f"to_{name}"]
        assert bool((torch.isnan(got) == nan).all())
        assert bits(got[~nan]) == bits(source.to(dtype)[~nan]), f"to_{name}"


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = torch.nn.Embedding(10, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.head = torch.nn.Linear(4, 10, bias=False)
        self.head.weight = self.wte.weight


def write_theirs():
    theirs = OrderedDict((f"t{k}", make(d, s, 1000 + k)) for k, (d, s) in enumerate(TENSORS))
    whole = make("float32", [8, 6], 7)
    theirs["wte"] = whole
    theirs["head"] = whole
    theirs["part"] = whole[2:5]
    theirs["turned"] = whole.t()
    theirs["spread"] = whole[:1].expand(4, 6)
    theirs["strided"] = whole[1::3, ::2]
    theirs["parameter"] = torch.nn.Parameter(make("float32", [3, 2], 8))
    torch.save(theirs, f"{FOLDER}/theirs.bin")

    torch.manual_seed(0)
    model = Tied()
    torch.save(model.state_dict(), f"{FOLDER}/theirs_model.bin")
    np.savetxt(f"{FOLDER}/theirs_model.txt", model.wte.weight.detach().reshape(-1).double().numpy(), fmt="%.17g")

    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, betas=(0.9, 0.95))
    model.head(model.norm(model.wte(torch.arange(6)))).sum().backward()
    optimizer.step()
    for protocol in (2, 3, 4, 5):
        torch.save({"optimizer": optimizer.state_dict(), "step": 3, "rng": torch.get_rng_state(), "big": 2**62 + 1,
                    "text": "gr\u00fc\u00df", "size": whole.shape, "many": list(range(1100)), "dtype": torch.float32},
                   f"{FOLDER}/theirs_{protocol}.pt", pickle_protocol=protocol)
    torch.save({"model": model.state_dict(), "epoch": 2}, f"{FOLDER}/theirs_nested.pt")
    torch.save(model, f"{FOLDER}/module.pt")
    torch.save({"a": whole}, f"{FOLDER}/legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), f"{FOLDER}/script.pt")


check_ours()
write_theirs()
