# SPDX-License-Identifier: Apache-2.0
"""kernels.cu, for tensors on GPUs: compiled once for a kind of GPU and a type of elements by NVRTC, which PyTorch brings, into a
folder of the cache."""
import ctypes
import functools
import glob
import os
import sys

import torch

from .native import cached
from .sketch import PATTERNS, ROW, tables

_TYPES = {kind: number for number, kind in enumerate((torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.int16,
                                                       torch.int32, torch.int64, torch.uint8))}
_THREADS = 128
_FIELDS = ("stretches", "slot_of", "first", "addresses", "address", "wanted", "hashes", "signs", "factors", "row_signs", "sums", "ended",
           "out", "before", "changed", "slots")


class _Launch(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in _FIELDS]


def _compiler():
    """NVRTC: PyTorch's, else the machine's."""
    major = (torch.version.cuda or "0").partition(".")[0]
    places = [os.path.join(os.path.dirname(torch.__file__), "lib", "libnvrtc*.so*"),
              *(os.path.join(path, "nvidia", kind, "lib", f"libnvrtc.so.{major}*") for path in sys.path for kind in (f"cu{major}", "cuda_nvrtc")),
              *(os.path.join(os.environ.get("CUDA_HOME") or "/usr/local/cuda", f"lib{bits}", f"libnvrtc.so.{major}*") for bits in ("64", ""))]
    for path in [path for place in places for path in sorted(glob.glob(place), key=len) if "builtins" not in path] + [f"libnvrtc.so.{major}"]:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise OSError(f"there is no libnvrtc.so.{major}")


def _compiled(source, options):
    """The machine code of a source."""
    nvrtc, program, size = _compiler(), ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)

    def text(kind):
        getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        made = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{kind}")(program, made)
        return made.raw

    try:
        if nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)):
            raise OSError(text("ProgramLog").rstrip(b"\0").decode(errors="replace"))
        return text("CUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@functools.lru_cache(None)
def _driver():
    cuda = ctypes.CDLL("libcuda.so.1")
    p, n = ctypes.c_void_p, ctypes.c_uint
    cuda.cuLaunchKernel.argtypes = (p, n, n, n, n, n, n, n, p, p, p)
    return cuda


def _checked(status):
    if status:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(status, ctypes.byref(name))
        raise OSError((name.value or b"").decode() or f"error {status} of the driver")


@functools.lru_cache(None)
def _functions(index, dtype):
    """{name: a kernel for tensors of one type on one device}."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.cu"), "rb") as file:
        source = file.read()
    options = [b"--gpu-architecture=sm_%d%d" % torch.cuda.get_device_capability(index), b"--std=c++17", b"-DKIND=%d" % _TYPES[dtype]]
    with open(cached(source, (options, torch.version.cuda), ".cubin", lambda name: _write(name, _compiled(source, options))), "rb") as file:
        code = file.read()
    with torch.cuda.device(index):
        torch.cuda.current_stream().synchronize()  # makes the device's context, in which the module is
        module, found = ctypes.c_void_p(), {}
        _checked(_driver().cuModuleLoadData(ctypes.byref(module), code))
        for name in ("read_all", "read_digests", "pick"):
            found[name] = ctypes.c_void_p()
            _checked(_driver().cuModuleGetFunction(ctypes.byref(found[name]), module, name.encode()))
    return found


def _write(name, data):
    with open(name, "wb") as file:
        file.write(data)


def _run(index, function, blocks, *arguments):
    """Starts a kernel on the stream under way; arguments: values of ctypes."""
    given = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(one) for one in arguments])
    stream = torch._C._cuda_getCurrentRawStream(index)
    if torch._C._cuda_getDevice() == index:
        return _checked(_driver().cuLaunchKernel(function, blocks, 1, 1, _THREADS, 1, 1, 0, stream, given, None))
    with torch.cuda.device(index):
        _checked(_driver().cuLaunchKernel(function, blocks, 1, 1, _THREADS, 1, 1, 0, stream, given, None))


def takes(dtype):
    return dtype in _TYPES


@functools.lru_cache(None)
def _signs(device):
    """[8, ROW / 32], int32: for each pattern a bit of each column, that of its sign."""
    bits = torch.stack([tables(device).hashes[:ROW] >> (8 + k) & 1 for k in range(PATTERNS)]).view(PATTERNS, -1, 32)
    return (bits << torch.arange(32, device=device)).sum(2).to(torch.int32)


_rooms = {}


def _room(device, stream, stretches, slots):
    """(sums, ended): where blocks leave what they found for the last one; those of one stream run one after another."""
    key = device.index, stream
    known = _rooms.get(key)
    if known is None or known[0].numel() < 16 * stretches or known[1].numel() < slots:
        known = _rooms[key] = (torch.empty(16 * max(1 << 14, stretches), dtype=torch.int64, device=device),
                               torch.zeros(max(1 << 12, slots), dtype=torch.int32, device=device))
    return known


def _addresses(cut, held, device):
    """A table of addresses on their device: made again where tensors moved."""
    known = cut.tables.setdefault(device, {})
    if held not in known:
        if len(known) >= 64:
            known.pop(next(iter(known)))
        known[held] = torch.tensor(held, dtype=torch.int64, pin_memory=True).to(device, non_blocking=True)
    return known[held]


def launch(cut, device, held):
    """What a kernel is to be told of the tensors at these addresses; all but where the numbers go."""
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    room, known = _room(device, stream, cut.count, cut.slots), cut.tables.get((device, stream))
    if known is None or known[1] is not room:
        stretches, first, _, slot_of = cut.on(device)
        kept = hashes, factors, row_signs = tables(device).of_rows(cut.rows)
        made = _Launch(stretches=stretches.data_ptr(), slot_of=slot_of.data_ptr(), first=first.data_ptr(), hashes=hashes.data_ptr(),
                       signs=_signs(device).data_ptr(), factors=factors.data_ptr(), row_signs=row_signs.data_ptr(), sums=room[0].data_ptr(),
                       ended=room[1].data_ptr(), slots=cut.slots)
        known = cut.tables[device, stream] = (made, room, kept)  # which keeps what lies at these addresses
    made = _Launch.from_buffer_copy(known[0])
    if cut.tensors == 1:
        made.address = held[0]
    else:
        made.addresses = _addresses(cut, held, device).data_ptr()
    return made


def measure(cut, like, held):
    """As native.measure(), on the tensors' device, without waiting for it."""
    device = like.device
    out = (torch.empty if cut.whole else torch.zeros)((2 + PATTERNS) * cut.slots, dtype=torch.float64, device=device)
    if cut.count:
        told = launch(cut, device, held)
        told.out = out.data_ptr()
        _run(device.index, _functions(device.index, like.dtype)["read_all"], cut.count, told)
    return out


def again(cut, like, held, before):
    """(digests, the same with sums of tensors that have others than `before`, and zeros of all others)."""
    device, numbers = like.device, (2 + PATTERNS) * cut.slots
    room = torch.zeros(cut.slots + numbers + (cut.tensors + 1) // 2, dtype=torch.float64, device=device)
    digests, out, changed = room[:cut.slots], room[cut.slots:cut.slots + numbers], room[cut.slots + numbers:]
    if cut.count:
        kernels, told = _functions(device.index, like.dtype), launch(cut, device, held)
        told.out, told.before, told.changed = digests.data_ptr(), before.data_ptr(), changed.data_ptr()
        _run(device.index, kernels["read_digests"], cut.count, told)
        told.out, told.before, told.wanted = out.data_ptr(), None, changed.data_ptr()
        _run(device.index, kernels["read_all"], cut.count, told)
    return digests, out


def pick(cut, like, held):
    """The elements of cut.kept, of contiguous tensors, as one float64 vector on their device."""
    device = like.device
    tensors, places = cut.kept_on(device)
    out = torch.empty(len(places), dtype=torch.float64, device=device)
    if len(places):
        values = [ctypes.c_void_p(t.data_ptr()) for t in (_addresses(cut, held, device), tensors, places, out)]
        _run(device.index, _functions(device.index, like.dtype)["pick"], -(-len(places) // _THREADS), *values, ctypes.c_int64(len(places)))
    return out


@functools.lru_cache(None)
def works(device):
    """Whether kernels compile here: raises what they do."""
    from .cut import Cut
    from .part import Part
    ones = torch.ones(64, device=device)
    measure(Cut([Part([64])]), ones, (ones.data_ptr(),))
    return True
