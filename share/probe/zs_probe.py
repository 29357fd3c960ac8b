# SPDX-License-Identifier: Apache-2.0
"""Records what a PyTorch training computes, so that zs-verify can say where two trainings part.

    import zs_probe
    probe = zs_probe.attach(model, optimizer, "probe-a")     # before the first step
    ...
    loss.backward(); probe.loss(loss); optimizer.step()      # the loop as it was
    ...
    probe.close()

    zs-verify probe-a probe-b

Needs torch alone. At each step of the optimizer it writes, of every parameter's gradient (as the optimizer gets it) and of
every parameter (as the optimizer leaves it), a digest, the sum of squares, and the part of the tensor that this rank holds.
The digest is a sum over elements, so that the digests of a tensor's parts add up to that of the whole: a training whose
tensors are cut over two ranks is compared with one that cut them over eight, or not at all. It knows DTensor (FSDP2, tensor
parallelism by rows) and tensors that are whole on every rank (DDP, plain PyTorch).

every=N       writes each N-th step, and the first. The default, None, measures the second step and takes the power of two
              that keeps the probe below 3 % of the time: 1 where a step has many thousand tokens. Two probes are compared
              at the steps that both have, and by the parameters that close() writes if the last step was not written.
values=True   keeps the values, too, of each step that is written (or of those steps that are in `values`), so that
              zs-verify names the element and says whether a difference is rounding.

$ZS_PROBE names another folder, or is `off`: nothing is recorded. $ZS_PROBE_EVERY and $ZS_PROBE_VALUES (all, or steps joined by
commas) stand for the arguments that the call leaves out. `compare-revisions.sbatch --probe` sets them.

FOLDER/rank-R.jsonl has one object a line: first {"zs_probe": 1, "rank", "world_size", "torch", "id": a name of this file's
own, by which a copy is known}, then for each step
{"step", "loss", "tensors": [{"name": "grad/NAME" or "param/NAME", "dtype", "of": elements of the whole, "shape", "begin",
"count": the elements held here, in row-major order, "digest": 16 hex digits, "squares"}], "values": file or null}, and, where close() was called,
{"end": steps, "rank", "lines": of steps in this file, "every"}. A file without its end proves nothing: zs-verify says so.
Values are in FOLDER/step-N.rank-R.safetensors, under the same names, flat. JSON and safetensors are written by this file
itself: HDF5 would need h5py, which PyTorch does not bring.
"""
import json
import math
import os
import time

import torch

__all__ = ["attach", "Probe"]

_CHUNK = 65536  # elements that share a factor
_MASK = (1 << 64) - 1
_TYPES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16"}
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _mixed(number):
    """splitmix64 of a number."""
    z = (number + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def _signed(number):
    return number - (1 << 64) if number >> 63 else number


_weights = {}


def _weights_on(device):
    if device not in _weights:
        _weights[device] = torch.tensor([_signed(_mixed(i) | 1) for i in range(_CHUNK)], dtype=torch.int64).to(device)
    return _weights[device]


def digest(flat, begin=0):
    """The sum over elements i of bits(i) * weight(i % 65536) * factor(i // 65536), modulo 2^64. `begin` is the place of
    the first element in the whole tensor. An int; digests of the parts of a tensor add up to that of the whole."""
    bits = flat.detach().contiguous().view(-1).view(_BITS[flat.element_size()])
    weights = _weights_on(bits.device)
    total, at, end = 0, 0, bits.numel()
    while at < end:
        place = (begin + at) % _CHUNK
        rows = 1 if place or end - at < _CHUNK else min((end - at) // _CHUNK, 64)
        size = min(_CHUNK - place, end - at) if rows == 1 else rows * _CHUNK
        part = bits[at:at + size].to(torch.int64).view(rows, -1)
        sums = (part * weights[place:place + part.shape[1]]).sum(1).tolist()
        for row, value in enumerate(sums):
            total += value * (_mixed(((begin + at) // _CHUNK + row) ^ 0x5A5A5A5A) | 1)
        at += size
    return total & _MASK


def _local(tensor):
    """The part of a tensor that this rank holds: its values, where they begin, the whole's shape."""
    shape = list(tensor.shape)
    chunks = getattr(tensor, "__create_chunk_list__", None)
    if chunks is None:
        return tensor, 0, shape
    part = tensor.to_local()
    if hasattr(part, "wait"):  # a collective that still runs
        part = part.wait()
    if part.numel() == 0:
        return part, 0, shape
    (chunk,) = chunks()
    row = math.prod(shape[1:])
    if list(chunk.sizes)[1:] != shape[1:]:
        raise NotImplementedError(f"zs_probe: a DTensor of shape {shape} is cut along another axis than its first")
    return part, chunk.offsets[0] * row if shape else 0, shape


def _write_safetensors(path, tensors):
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
            values = tensors[name].contiguous().cpu()
            # The bytes without numpy: the storage is a buffer of bytes.
            file.write(bytes(values.view(torch.uint8).untyped_storage())[:values.numel() * values.element_size()]
                       if values.storage_offset() == 0 else bytes(values.clone().view(torch.uint8).untyped_storage()))
    os.replace(path + ".tmp", path)


class Probe:
    """What attach() gives."""

    def __init__(self, model, optimizer, folder, every=None, values=False):
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.rank = torch.distributed.get_rank() if distributed else 0
        self.world_size = torch.distributed.get_world_size() if distributed else 1
        self.folder, self.every, self.values, self.step = str(folder), every, values, 0
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        self._parameters = [(names.get(id(parameter), f"unnamed.{i}"), parameter) for i, parameter in enumerate(
            parameter for group in optimizer.param_groups for parameter in group["params"])]
        order = {name: i for i, name in enumerate(names.values())}
        self._parameters.sort(key=lambda pair: order.get(pair[0], len(order)))
        os.makedirs(self.folder, exist_ok=True)
        self._file = open(os.path.join(self.folder, f"rank-{self.rank}.jsonl"), "x", encoding="utf-8")
        self._write({"zs_probe": 1, "rank": self.rank, "world_size": self.world_size, "torch": torch.__version__,
                     "id": os.urandom(8).hex()})
        self._loss, self._rows, self._kept, self._last, self._written, self._lines = None, [], {}, time.monotonic(), 0, 0
        self._begun = self._spent = 0
        for _, parameter in self._parameters:
            _weights_on(parameter.device)  # what is made once is no cost of a step
        self._hooks = [optimizer.register_step_pre_hook(self._before), optimizer.register_step_post_hook(self._after)]

    def loss(self, value):
        """The loss of the step, if it is to be compared. A number of a GPU is waited for where it is written alone."""
        self._loss = value.detach() if torch.is_tensor(value) else float(value)

    def close(self):
        for hook in self._hooks:
            hook.remove()
        if self._written < self.step:  # so that the end is compared, whatever the stride
            self._take_parameters()
        self._write({"end": self.step, "rank": self.rank, "lines": self._lines, "every": self.every})
        self._file.close()

    def _write(self, row):
        self._file.write(json.dumps(row) + "\n")  # NaN and Infinity are values
        self._file.flush()

    def _due(self):
        return self.every is None or self.step % self.every == 0 or self.step == 1

    def _take(self, name, tensor):
        part, begin, shape = _local(tensor.detach())
        flat = part.reshape(-1)
        self._rows.append({"name": name, "dtype": _TYPES.get(flat.dtype, str(flat.dtype)), "of": math.prod(shape), "shape": shape,
                           "begin": begin, "count": flat.numel(), "digest": f"{digest(flat, begin):016x}",
                           "squares": flat.double().square().sum().item() if flat.numel() < 1 << 20 else
                           float(torch.linalg.vector_norm(flat, dtype=torch.float64)) ** 2})
        if self.values is True or (self.values and self.step in self.values):
            self._kept[name] = flat.clone()

    def _before(self, *_):
        self.step += 1
        if not self._due():
            return
        self._begun = time.monotonic()
        with torch.no_grad():
            for name, parameter in self._parameters:
                if parameter.grad is not None:
                    self._take("grad/" + name, parameter.grad)
        self._spent = time.monotonic() - self._begun

    def _after(self, *_):
        if not self._due():
            self._loss = None
            return
        begun = time.monotonic()
        self._take_parameters()
        now = time.monotonic()
        if self.every is None and self.step == 2:
            spent = self._spent + now - begun
            share = spent / max(1e-9, now - self._last - spent)  # of a step without the probe
            self.every = 1 if share < 0.03 else 1 << math.ceil(math.log2(share / 0.03))
        self._last = now

    def _take_parameters(self):
        with torch.no_grad():
            for name, parameter in self._parameters:
                self._take("param/" + name, parameter)
        file = None
        if self._kept:
            file = f"step-{self.step:08d}.rank-{self.rank}.safetensors"
            _write_safetensors(os.path.join(self.folder, file), self._kept)
        loss = self._loss.double().item() if torch.is_tensor(self._loss) else self._loss
        self._write({"step": self.step, "loss": loss, "tensors": self._rows, "values": file})
        self._rows, self._kept, self._loss, self._written = [], {}, None, self.step
        self._lines += 1


class Off:
    """What attach() gives where $ZS_PROBE is off."""

    def loss(self, value):
        pass

    def close(self):
        pass


def attach(model, optimizer, folder="probe", every=None, values=None):
    """Records the steps of `optimizer` on `model` into `folder`; on every rank, each of which writes its own file."""
    folder = os.environ.get("ZS_PROBE") or folder
    if folder == "off":
        return Off()
    if every is None and os.environ.get("ZS_PROBE_EVERY"):
        every = int(os.environ["ZS_PROBE_EVERY"])
    asked = os.environ.get("ZS_PROBE_VALUES", "")
    if values is None and asked:
        values = True if asked == "all" else {int(step) for step in asked.split(",")}
    return Probe(model, optimizer, folder, every, values or False)
