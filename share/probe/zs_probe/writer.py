# SPDX-License-Identifier: Apache-2.0
"""A rank's file. FOLDER/rank-R.jsonl has one object a line:

{"zs_probe": 2, "rank", "world_size", "torch", "layout", "framework"}   first, and again where a training resumes
{"start": S, "tensors": [...]}                                          parameters and state before step S + 1
{"step": N, "computed": the type of autocast or null, "loss", "losses", "scalars", "groups", "batch", "rng", "outputs": [...], "locals": [...], "tensors": [...], "values"}
{"end": N}                                                              steps made, where the training ended

tensors   {"name": "PLACE/PARAMETER", "dtype", "shape", "of": elements of the whole, "begin", "count": what is held here, in
          row-major order, "digest": 16 hex digits, "squares", "sketch": base64 of little-endian float64}. "runs", where it
          is there, has for each axis the [begin, end) that are held. PLACE is, in causal order:
          begin and begin.model (param and model as forward found them, where the last update left something else), grad (as
          the optimizer gets it) or direction (what replaces it under Muon), state.KEY, param (the copy that the optimizer moves), model (that
          which computes, where it is another).
locals    the same for one micro-batch's gradient on this rank, before it is reduced or added: with "micro", counted from 0,
          and "by", the rank among those that share the parameter's data parallelism.
outputs   the same of what a module made of one sample, in the order in which modules end: "name", "sample": its digest.
batch     of each micro-batch the digest of each sample.
groups    the optimizer's options of each group of parameters, before the update.
values    the safetensors file of this step's values, or null.
"""
import base64
import ctypes
import json
import math
import os
import struct

import torch

_TYPES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16"}
_MASK = (1 << 64) - 1


def type_name(dtype):
    return _TYPES.get(dtype, str(dtype).replace("torch.", ""))


def finish(rows):
    """Rows whose digest and numbers still lie on their devices: one transfer a device."""
    devices = {}
    for row in rows:
        devices.setdefault(row["measured"][0].device, []).append(row)
    for of_device in devices.values():
        digests = torch.stack([row["measured"][0] for row in of_device]).tolist()
        numbers = torch.cat([row["measured"][1] for row in of_device]).cpu()
        width, raw, at = numbers.element_size(), _bytes(numbers), 0
        for row, digest in zip(of_device, digests):
            end = at + row.pop("measured")[1].numel()
            row["digest"], row["squares"] = f"{digest & _MASK:016x}", struct.unpack_from("=d", raw, at * width)[0]
            row["sketch"] = base64.b64encode(raw[(at + 1) * width:end * width]).decode()
            at = end
    return rows


def _bytes(tensor):
    """The bytes of a tensor on the CPU, without numpy; its storage as a sequence gives one at a time, which takes seconds."""
    tensor = tensor.contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def write_safetensors(path, tensors):
    header, at = {}, 0
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    for name in order:
        size = tensors[name].numel() * tensors[name].element_size()
        header[name] = {"dtype": _TYPES[tensors[name].dtype], "shape": [tensors[name].numel()], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".tmp", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(_bytes(tensors[name].detach().cpu()))
    os.replace(path + ".tmp", path)


def _quoted(value):
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _quoted(held) for key, held in value.items()}
    return [_quoted(held) for held in value] if isinstance(value, (list, tuple)) else value


class Taken(Exception):
    """The folder has the record of another training."""


class Writer:
    """Makes its file with the first line. Where there is one already it goes on with it, if `step` is later than its last:
    a training that resumed."""

    def __init__(self, folder, rank, head, step):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.rank = folder, rank
        path = os.path.join(folder, f"rank-{rank}.jsonl")
        if os.path.exists(path):
            last = self._last(path)
            if step <= last:
                raise Taken(f"{path} is there already, the record of another training up to step {last}: name another folder with ZS_PROBE")
        self._file = open(path, "a", encoding="utf-8")
        self.line(head)

    @staticmethod
    def _last(path):
        """The last step of a file, and cuts off a line that a kill has torn."""
        last = 0
        with open(path, "rb+") as file:
            whole = 0
            for line in file:
                if not line.endswith(b"\n"):
                    file.truncate(whole)
                    break
                whole += len(line)
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                last = max(last, int(row.get("step", 0)), int(row.get("end", 0)))
        return last

    def line(self, row):
        try:
            text = json.dumps(row, allow_nan=False)
        except ValueError:  # what is not finite is a value: as text
            text = json.dumps(_quoted(row))
        self._file.write(text + "\n")
        self._file.flush()

    def values(self, step, tensors):
        name = f"step-{step:08d}.rank-{self.rank}.safetensors"
        write_safetensors(os.path.join(self.folder, name), tensors)
        return name

    def close(self):
        self._file.close()
