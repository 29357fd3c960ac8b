# SPDX-License-Identifier: Apache-2.0
"""The part of a tensor that a rank holds, and how to find it: of DTensors from their placements."""
import itertools
import math

import torch


_marks, _next = {}, itertools.count()


class Part:
    """`count` elements of a tensor of `shape`: those from `begin` on in row-major order, or, where they do not follow one
    another, those at `index` (int64, of the flattened tensor), described by `runs`: of each axis the [begin, end) held; and last,
    where it is a slice of these, its [begin, end) among them. summand: which one of several ranks' it is, where the tensor is their sum."""

    summand = None

    def __init__(self, shape, begin=0, count=None, index=None, runs=None):
        self.shape = [int(n) for n in shape]
        self.dims, self.of = tuple(self.shape), math.prod(self.shape)
        self.begin, self.count = begin, self.of if count is None else count
        self.index, self.runs, self.kept = index, runs, None
        self.key = (self.begin, self.count, self.of) if index is None else repr((runs, self.shape))  # parts of equal keys are cut alike
        self.mark = _marks.setdefault((self.key, self.dims), next(_next))  # one number for all that are equal

    def sliced(self, begin, end):
        """The part that is the elements [begin, end) of this one's."""
        if self.index is None or begin == end:
            return Part(self.shape, self.begin + begin, end - begin)
        index = self.index[begin:end]
        return Part(self.shape, int(index[0]), len(index), index, [*self.runs, [[begin, end]]])


class Unseen(Exception):
    """Values that cannot be read without a collective, or at all."""


def is_dtensor(tensor):
    return hasattr(tensor, "placements") and hasattr(tensor, "device_mesh") and hasattr(tensor, "to_local")


_parts, _wholes, _of_spec = {}, {}, {}


def whole(tensor):
    """The Part that is all of it."""
    shape = tensor.shape
    if shape not in _wholes:
        _wholes[shape] = Part(shape)
    return _wholes[shape]


def held(tensor):
    """(values, Part) of what this rank holds of a tensor: the part may be of a summand. Raises Unseen."""
    if type(tensor) in PLAIN:
        return tensor, whole(tensor)
    spec = getattr(tensor, "_spec", None)
    known = None if spec is None else _of_spec.get(id(spec))
    if known is not None and type(tensor._local_tensor) is torch.Tensor and tensor._local_tensor.shape == known[2]:
        return tensor._local_tensor, known[0]
    if not is_dtensor(tensor):
        return tensor, whole(tensor)
    local, part = _held(tensor)
    if spec is not None and type(local) is torch.Tensor:
        if len(_of_spec) >= 1 << 14:
            _of_spec.clear()
        _of_spec[id(spec)] = part, spec, local.shape  # which keeps its id
    return local, part


PLAIN = {torch.Tensor, torch.nn.Parameter}


def _held(tensor):
    placements, mesh = tensor.placements, tensor.device_mesh
    local = tensor._local_tensor if hasattr(tensor, "_local_tensor") else tensor.to_local()
    if hasattr(local, "wait"):
        local = local.wait()
    key = (tensor.shape, local.shape, placements, id(mesh))
    known = _parts.get(key)
    if known is None:
        known = _parts[key] = (_part(tensor, local), mesh)  # which keeps its id
        for size, at, placement in zip(mesh.mesh.shape, mesh.get_coordinate(), placements):
            if placement.is_partial():
                if getattr(placement, "reduce_op", "sum") != "sum":
                    raise Unseen(f"ranks hold parts of its {placement.reduce_op}")
                known[0].summand = (known[0].summand or 0) * int(size) + at
    return local, known[0]


def _part(tensor, local):
    axes = [torch.arange(n) for n in tensor.shape]
    coordinate = tensor.device_mesh.get_coordinate()
    for dim, placement in enumerate(tensor.placements):
        if placement.is_shard() or hasattr(placement, "split_factor"):
            axes[placement.dim] = _cut(axes[placement.dim], placement, tensor.device_mesh.size(dim), coordinate[dim])
    if [len(a) for a in axes] != list(local.shape):
        raise Unseen(f"its local shape {list(local.shape)} is not what its placements {tensor.placements} say")
    return of_axes(list(tensor.shape), axes)


def of_axes(shape, axes):
    """The part of a tensor that has these indices, increasing, of each of its axes."""
    count = math.prod(len(a) for a in axes)
    if count == 0:
        return Part(shape, 0, 0)
    whole = all(len(a) == n for a, n in zip(axes[1:], shape[1:]))
    runs = [_runs(a) for a in axes]
    if not shape or (whole and len(runs[0]) == 1):
        return Part(shape, runs[0][0][0] * math.prod(shape[1:]) if shape else 0, count)
    index, stride = torch.zeros([1] * len(shape), dtype=torch.int64), 1
    for dim in reversed(range(len(shape))):
        index = index + (axes[dim] * stride).view([-1 if d == dim else 1 for d in range(len(shape))])
        stride *= shape[dim]
    index = index.reshape(-1)
    return Part(shape, int(index[0]), count, index, runs)


def _cut(axis, placement, size, coordinate):
    factor = getattr(placement, "split_factor", 1)
    pieces = []
    for block in torch.chunk(axis, factor) if factor > 1 else [axis]:
        chunks = torch.chunk(block, size)
        if coordinate < len(chunks):
            pieces.append(chunks[coordinate])
    return torch.cat(pieces) if pieces else axis[:0]


def _runs(axis):
    """[[begin, end), ...] of increasing numbers."""
    if len(axis) == 0:
        return []
    breaks = (torch.nonzero(axis[1:] - axis[:-1] != 1).view(-1) + 1).tolist()
    edges = [0] + breaks + [len(axis)]
    return [[int(axis[a]), int(axis[b - 1]) + 1] for a, b in zip(edges, edges[1:])]
