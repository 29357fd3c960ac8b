# SPDX-License-Identifier: Apache-2.0
"""Digests of the weights of both sides of a sync: a recording (writer.py) whose steps are versions of the weights.

The trainer's has of each tensor param/NAME and, where the generator may hold another type, cast.TYPE/NAME: the same rounded to it;
base/NAME and cast.TYPE.base/NAME of a weight with an adapter, of which param/NAME is then the merged one. The generator's has
param/NAME and buffer/NAME. A row has further digests: "set" does not depend on the order of the elements, "rows" not on the
order of rows, "cols" is that of the columns. NAME is the checkpoint's of Hugging Face: fused and stacked tensors are recorded as
the parts that they are made of, so that both sides and all ranks have the same names.
"""
import os
import re

import torch

from . import measuring, names, sketch
from .part import Part, Unseen, held
from .recorder import ranks
from .say import unseen
from .writer import Listed, Rows, Writer, finish, moved, type_name

_FLOATS = {torch.float32: (torch.bfloat16, torch.float16), torch.bfloat16: (torch.float32,), torch.float16: (torch.float32,)}
_STRIPPED = re.compile(r"(^|\.)(_fsdp_wrapped_module|_checkpoint_wrapped_module|_orig_mod|base_model\.model|base_layer|modules_to_save\.default)(?=\.|$)")
_open = {}  # by folder and rank


def weights(model, version, folder=None, side="trainer", tp=(0, 1), rank=None, world_size=None):
    """Records what `model` holds now as this version: a module, or a state dictionary.

    side: trainer or generator. folder: that of the recording, else $ZS_PROBE/trainer or $ZS_PROBE/generator. tp: (rank, ranks) where
    the model's qkv_proj and gate_up_proj hold a share of the heads and of the rows; `rank` and `world_size` of processes that
    torch.distributed does not count. Versions count up from any number; a version is recorded once.
    """
    folder = folder or os.path.join(os.environ.get("ZS_PROBE") or "probe", side)
    with torch.no_grad():
        rows = list(_rows(model, side, tp))
    mine, count = ranks() if rank is None else (rank, world_size or 1)
    known = _open.get((folder, mine))
    if known is None:
        ties = {} if isinstance(model, dict) else {_plain(a): [_plain(b) for b in bs] for a, bs in names.parameters(model)[1].items()}
        head = {"zs_probe": 2, "rank": mine, "world_size": count, "id": os.urandom(8).hex(), "torch": torch.__version__, "layout": side,
                "framework": "weights", "tied": ties, "frozen": [], "unseen": []}
        known = _open[folder, mine] = _Versions(folder, mine, head, version)
    known.write(version, rows)


class _Versions:
    def __init__(self, folder, rank, head, version):
        self.writer, self.rank, self.first = Writer(folder, rank, head, version), rank, True
        import atexit
        atexit.register(self.close)

    def write(self, version, rows):
        texts = _texts(rows)
        if self.first:
            self.writer.line({"start": version}, tensors=texts)
        else:
            self.writer.line({"step": version, "only": ["param", "buffer", "base", "cast"], "loss": None, "losses": [], "scalars": {}, "groups": [],
                              "batch": [], "locals": [], "values": None, "unseen": []}, tensors=texts)
        self.first, self.last = False, version

    def close(self):
        if self.writer:
            self.writer.line({"end": self.last, "rank": self.rank, "every": None, "since": None, "lines": self.writer.steps, "how": "whole", "unseen": []})
            self.writer.close()
            self.writer = None


def close():
    """Ends the recordings; at the end of the process it happens by itself."""
    for one in _open.values():
        one.close()
    _open.clear()


def _texts(rows):
    if not rows:
        return b""
    said, tensors, parts = zip(*(((name, more), flat, part) for name, flat, part, more in rows))
    plan = measuring.plan_of(tensors, parts)
    made = Listed(Rows(said, plan), plan.read(tensors))
    return finish(made, moved([made]))[0]


# ---- tensors and their names

def _plain(name):
    while _STRIPPED.search(name):
        name = _STRIPPED.sub("", name).lstrip(".")
    return name.replace("module.", "", 1) if name.startswith("module.") else name


def _tensors(model):
    """(name, tensor, whether it is a buffer)."""
    if isinstance(model, dict):
        for name, tensor in model.items():
            yield name, tensor, False
        return
    for name, tensor in model.named_parameters():
        yield name, tensor, False
    for name, tensor in model.named_buffers():
        yield name, tensor, True


def _rows(model, side, tp):
    """(PLACE/NAME, values, Part, further digests) of everything."""
    config = getattr(model, "config", None)
    config = getattr(config, "text_config", None) or config
    merged = _adapters(model)
    for name, tensor, buffer in _tensors(model):
        if ".lora_" in name or "original_module" in name or tensor.is_complex():
            continue
        plain = _plain(name)
        if tensor.numel() == 0 and not buffer:
            unseen(f"{name} is empty, as where an engine has packed its weights for a kernel, and is not recorded")
            continue
        if not tensor.is_floating_point():
            tensor = tensor.float() if tensor.dtype in (torch.int64, torch.int32, torch.uint8, torch.bool) and tensor.numel() < 1 << 20 else None
            if tensor is None:
                unseen(f"{name} holds whole numbers and is not recorded")
                continue
        if tensor.element_size() == 1:  # what a kernel scales: its numbers as they are
            tensor = tensor.float()
        try:
            values, part = held(tensor.detach())
        except Unseen as reason:
            unseen(f"{name} is not recorded: {reason}")
            continue
        if buffer:
            yield from _all("buffer", plain, values, part, side)
            continue
        delta = merged.get(name)
        if delta is not None:
            yield from _split("base", plain, values, part, config, tp, side)
            values = (values.float() + delta()).to(values.dtype)
        yield from _split("param", plain, values, part, config, tp, side)


def _adapters(model):
    """{name of a weight: function of what its adapters add}, of peft's linear layers that are not merged and not off."""
    found = {}
    if isinstance(model, dict):
        return found
    for path, module in model.named_modules():
        if not hasattr(module, "get_delta_weight") or getattr(module, "merged", False):
            continue
        active = [a for a in getattr(module, "active_adapters", []) if a in getattr(module, "lora_A", {})]
        if active:
            found[f"{path}.base_layer.weight"] = lambda m=module, on=active: sum(m.get_delta_weight(a).float() for a in on)
    return found


def _split(place, name, values, part, config, tp, side):
    """The parts of a fused or stacked tensor."""
    whole = part.index is None and part.count == part.of and values.dim() >= 1
    at = re.search(r"\.(qkv_proj|gate_up_proj|w13_weight|w2_weight)(\.weight|\.bias)?$|\.experts\.(gate_up_proj|down_proj)$", name) if whole else None
    vocabulary = getattr(config, "vocab_size", None)
    if at is None:
        if whole and vocabulary and re.search(r"(embed_tokens|lm_head|wte)\.weight$", name) and values.shape[0] > vocabulary:
            values = values[:vocabulary]  # padded
            part = Part(values.shape)
        yield from _all(place, name, values, part, side)
        return
    kind, tail, prefix = at[1] or at[3], at[2] or "", name[:at.start()]
    if kind == "qkv_proj":
        heads, kv = config.num_attention_heads, getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // heads
        mine = [heads * size // tp[1], max(1, kv // tp[1]) * size, max(1, kv // tp[1]) * size]
        full, copies = [heads * size, kv * size, kv * size], max(1, tp[1] // kv)
        for key, piece, of, again in zip("qkv", values.split(mine), full, (1, copies, copies)):
            yield from _shard(place, f"{prefix}.{key}_proj{tail}", piece, of, tp[0] // again, side)
    elif values.dim() == 3:
        for e, one in enumerate(values):
            base = f"{prefix}.{e}" if prefix.endswith("experts") else f"{prefix}.experts.{e}" if at[3] else f"{prefix}.{e}"
            if kind in ("w13_weight", "gate_up_proj"):
                for key, piece in zip(("gate_proj", "up_proj"), one.chunk(2)):
                    yield from _shard(place, f"{base}.{key}.weight", piece, piece.shape[0] * tp[1], tp[0], side)
            else:
                yield from _all(place, f"{base}.down_proj.weight", one.contiguous(), Part(one.shape), side)
    elif kind == "gate_up_proj":
        for key, piece in zip(("gate_proj", "up_proj"), values.chunk(2)):
            yield from _shard(place, f"{prefix}.{key}{tail}", piece, piece.shape[0] * tp[1], tp[0], side)
    else:
        yield from _all(place, name, values, part, side)


def _shard(place, name, piece, of, rank, side):
    """The rank-th share of the rows of a tensor that has `of` rows."""
    piece, inner = piece.contiguous(), piece[0].numel() if piece.shape[0] else 1
    part = Part([of, *piece.shape[1:]], rank * piece.shape[0] * inner, piece.numel())
    yield from _all(place, name, piece, part, side)


def _all(place, name, values, part, side):
    flat = values.contiguous().view(-1)
    if flat.numel() == 0:
        return
    trains = side == "trainer" and place != "buffer"
    yield f"{place}/{name}", flat, part, _orders(values, part)
    for other in _FLOATS.get(flat.dtype, ()) if trains else ():
        cast = values.to(other)
        yield f"cast.{type_name(other)}{'.base' if place == 'base' else ''}/{name}", cast.contiguous().view(-1), part, _orders(cast, part)


def _orders(values, part):
    """Digests that do not depend on an order, as hexadecimal digits."""
    if values.dim() < 2:
        return (("set", _hex(_set(values))),)
    bits = sketch._bits(values.contiguous()).reshape(values.shape[0], -1).to(torch.int64)
    made = {"set": _set(values)}
    for key, table in (("rows", bits), ("cols", bits.t())):
        weights = sketch.mixed_all(torch.arange(table.shape[1], device=bits.device)) | 1
        made[key] = sketch.mixed_all((table * weights).sum(1)).sum()
    return tuple((key, _hex(value)) for key, value in made.items())


def _set(values):
    total, flat = torch.zeros((), dtype=torch.int64, device=values.device), sketch._bits(values.contiguous().view(-1))
    for at in range(0, flat.numel(), 1 << 24):
        total += sketch.mixed_all(flat[at:at + (1 << 24)].to(torch.int64)).sum()
    return total


def _hex(value):
    return f"{value.item() & ((1 << 64) - 1):016x}"
