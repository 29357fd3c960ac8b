# SPDX-License-Identifier: Apache-2.0
"""native.c, for tensors on processors: as the wheel of the suite brings it (libnative.so), or compiled once by this machine's C
compiler ($CC, or cc) into a folder of the cache."""
import array
import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile

import torch

from .say import say
from .sketch import PATTERNS, tables

_TYPES = {kind: number for number, kind in enumerate((torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.int16,
                                                       torch.int32, torch.int64, torch.uint8))}
_FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-pthread", "-w")


def _machine():
    """What -march=native depends on."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return "".join(sorted({line for line in file if line.startswith(("flags", "Features", "model name"))}))
    except OSError:
        return " ".join(os.uname())


def _folders():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    yield os.path.join(cache, "zs", "probe")
    yield tempfile.mkdtemp(prefix="zs_probe.")


def _beside(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)


def _load():
    try:
        return ctypes.CDLL(_beside("libnative.so"))
    except OSError:  # it is not there, or of another kind of machine
        return ctypes.CDLL(_compile())


def cached(source, how, ending, make):
    """The path of what make(path) makes of a source in this way: made once, in the cache."""
    key = hashlib.blake2b(source + repr(how).encode(), digest_size=12).hexdigest()
    for folder in _folders():
        path = os.path.join(folder, key + ending)
        if os.path.exists(path):
            return path
        try:
            os.makedirs(folder, exist_ok=True)
            made, name = tempfile.mkstemp(dir=folder)
            os.close(made)
        except OSError:
            continue
        try:
            make(name)
            os.replace(name, path)
        finally:
            if os.path.exists(name):
                os.remove(name)
        return path
    raise OSError("no folder can be written")


def _compile():
    compiler, path = (os.environ.get("CC") or "cc").split(), _beside("native.c")

    def make(name):
        subprocess.run([*compiler, *_FLAGS, "-o", name, path], check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)

    with open(path, "rb") as file:
        return cached(file.read(), (compiler, _FLAGS, _machine()), ".so", make)


@functools.lru_cache(None)
def library():
    """The compiled functions, or None, which is said."""
    try:
        made = _load()
    except (OSError, subprocess.SubprocessError) as error:
        say(f"native.c is not compiled ({type(error).__name__}: {error}): tensors on CPUs are read by PyTorch's own operations, which takes longer")
        return None
    p, n, i = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    made.zs_measure.argtypes, made.zs_measure.restype = (p, n, p, p, i, i, p, p, p, i, p, n, p, p), None
    made.zs_rows.argtypes, made.zs_rows.restype = (n, ctypes.c_char_p, p, p, ctypes.c_char_p, p, p), n
    made.zs_heads.argtypes, made.zs_heads.restype = (n, ctypes.c_char_p, p, p, p, ctypes.c_char_p, p), n
    made.zs_pick.argtypes, made.zs_pick.restype = (p, p, p, i, n, p), None
    return made


def takes(dtype):
    return dtype in _TYPES and library() is not None


def measure(cut, like, held, digests_only=False, wanted=None):
    """The slots of a cut, of tensors of one type, that of `like`, at the addresses `held`: float64 [10 * slots], first the digests' patterns,
    then the sums of squares, then the sketches. wanted: int32 of each tensor whether it is to be read; the others' slots are 0."""
    table = tables(torch.device("cpu"))
    stretches, first, *_ = cut.on(torch.device("cpu"))
    addresses = (ctypes.c_void_p * cut.tensors)(*held)
    sums = torch.empty(cut.count * (2 + PATTERNS), dtype=torch.float64)
    out = torch.empty(cut.slots * (2 + PATTERNS), dtype=torch.float64)
    hashes, factors, row_signs = table.of_rows(cut.rows)
    library().zs_measure(stretches.data_ptr(), cut.count, addresses, None if wanted is None else wanted.data_ptr(), _TYPES[like.dtype], digests_only,
                         hashes.data_ptr(), factors.data_ptr(), row_signs.data_ptr(), torch.get_num_threads(), sums.data_ptr(), cut.slots,
                         first.data_ptr(), out.data_ptr())
    return out


def again(cut, like, held, before):
    """(digests, the same with sums of tensors that have others than `before`, and zeros of all others)."""
    digests = measure(cut, like, held, digests_only=True)
    changed = digests.view(torch.int64)[:cut.slots] != before.view(torch.int64)[:cut.slots]
    wanted = torch.zeros(cut.tensors, dtype=torch.int32)
    wanted.index_add_(0, cut.on(torch.device("cpu"))[2], changed.to(torch.int32))
    return digests[:cut.slots], measure(cut, like, held, wanted=wanted) if wanted.any() else digests.new_zeros((2 + PATTERNS) * cut.slots)


def pick(cut, like, held):
    """The elements of cut.kept, as one float64 vector."""
    tensors, places = cut.kept_on(torch.device("cpu"))
    addresses = (ctypes.c_void_p * cut.tensors)(*held)
    out = torch.empty(len(places), dtype=torch.float64)
    library().zs_pick(addresses, tensors.data_ptr(), places.data_ptr(), _TYPES[like.dtype], len(places), out.data_ptr())
    return out


def rows(heads, places, elements, numbers):
    """(JSON texts of rows, joined by commas; their digests): see writer.finish()."""
    count = len(heads)
    sizes, digests, text = array.array("q", map(len, heads)), array.array("Q", bytes(8 * count)), b"".join(heads)
    if elements is not None:
        to = ctypes.create_string_buffer(len(text) + 32 * count + 11 * sum(elements[1]))
        library().zs_heads(count, text, sizes.buffer_info()[0], elements[0].buffer_info()[0], elements[1].buffer_info()[0], numbers, to)
        text = to
    to = ctypes.create_string_buffer(sum(sizes) + 160 * count + 88 * sum(places[3::4]))
    size = library().zs_rows(count, text, sizes.buffer_info()[0], places.buffer_info()[0], numbers, digests.buffer_info()[0], to)
    return ctypes.string_at(to, size), digests
