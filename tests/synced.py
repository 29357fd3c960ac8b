# SPDX-License-Identifier: Apache-2.0
"""Records weights of a trainer and of a generator by zs_probe: synced.py FOLDER FAULT...: FOLDER/FAULT/trainer, generator."""
import os
import sys
import types

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share", "probe"))
from zs_probe import synced  # noqa: E402

H, I = 32, 48
CONFIG = types.SimpleNamespace(num_attention_heads=4, num_key_value_heads=2, head_dim=8, hidden_size=H, vocab_size=40)
Q, K, V = (f"model.layers.0.self_attn.{x}_proj.weight" for x in "qkv")
O, GATE, UP, DOWN = "model.layers.0.self_attn.o_proj.weight", *(f"model.layers.0.mlp.{x}_proj.weight" for x in ("gate", "up", "down"))
EMBED = "model.embed_tokens.weight"
SHAPES = {EMBED: (40, H), Q: (H, H), K: (16, H), V: (16, H), O: (H, H), GATE: (I, H), UP: (I, H), DOWN: (H, I), "model.norm.weight": (H,)}


class Engine(torch.nn.Module):
    """A model whose parameters are these."""

    def __init__(self, held):
        super().__init__()
        self.held, self.config = held, CONFIG

    def named_parameters(self, *args, **kwargs):
        return iter(self.held.items())

    def named_buffers(self, *args, **kwargs):
        return iter(())


def fused(state, rank, ranks):
    """As an engine holds them: q, k, v in one tensor, gate and up in one, a padded vocabulary, a share of the rows."""
    made = {}
    for name, tensor in state.items():
        if name == Q:
            made[name.replace("q_proj", "qkv_proj")] = torch.cat([state[x].chunk(ranks)[rank] for x in (Q, K, V)])
        elif name == GATE:
            made[name.replace("gate_proj", "gate_up_proj")] = torch.cat([state[x].chunk(ranks)[rank] for x in (GATE, UP)])
        elif "embed" in name:
            made[name] = torch.cat([tensor, tensor.new_zeros(24, H)])
        elif name not in (K, V, UP):
            made[name] = tensor
    return made


def faulty(fault, held, version, history):
    if fault == "never":
        return history[0]
    if fault == "stale":
        return history[max(0, version - 1)]
    held = dict(held)
    if fault == "transposed":
        held[O] = held[O].t().contiguous()
    elif fault == "rows":
        held[DOWN] = held[DOWN].flip(0).contiguous()
    elif fault == "interleaved":
        both = torch.stack([held[GATE], held[UP]], 1).reshape(-1, H)
        held[GATE], held[UP] = both[:I].contiguous(), both[I:].contiguous()
    elif fault == "other":
        held[K] = held[V].clone()
    elif fault == "exchanged":
        held[K], held[V] = held[V], held[K]
    elif fault == "scaled":
        held[DOWN] = held[DOWN] * 2
    elif fault == "zero":
        held[O] = torch.zeros_like(held[O])
    elif fault == "half" and version:
        held[DOWN] = torch.cat([held[DOWN][:H // 2], history[version - 1][DOWN][H // 2:]])
    elif fault == "columns" and version:
        held[O] = torch.cat([held[O][:, :10], history[version - 1][O][:, 10:]], 1)
    elif fault == "row":
        held[EMBED] = torch.cat([held[EMBED][:7], held[EMBED][8:9], held[EMBED][8:]])
    elif fault == "qkv":
        held[K], held[V] = history[0][K], history[0][V]
    elif fault == "head" and version:
        held[DOWN] = history[version - 1][DOWN]
    elif fault == "quantised":
        size = held[DOWN].abs().max() / 448
        held[DOWN] = as_float8(held[DOWN] / size) * size
    return held


class Adapted(torch.nn.Module):
    """A weight with an adapter, as peft has it."""

    class Layer(torch.nn.Module):
        merged, active_adapters = False, ("default",)

        def __init__(self, base, delta):
            super().__init__()
            self.base_layer, self.lora_A, self.delta = torch.nn.Linear(H, H, bias=False), {"default": True}, delta
            self.base_layer.weight = torch.nn.Parameter(base)

        def get_delta_weight(self, name):
            return self.delta

    def __init__(self, base, delta):
        super().__init__()
        self.layer = self.Layer(base, delta)


def adapter(fault, folder):
    """The base of `merged` is what merging and unmerging leaves of it; that of `adapter` is as it was."""
    torch.manual_seed(1)
    base = (torch.randn(H, H) * 0.1).bfloat16()
    for version in range(3):
        delta = (torch.randn(H, H) * 0.01 * version).bfloat16()
        held = base + delta
        synced.weights(Engine({"layer.weight": held}), version, f"{folder}/generator", "generator")
        if fault == "merged":
            base = held - delta
        synced.weights(Adapted(base, delta), version, f"{folder}/trainer", "trainer")
    synced.close()


def as_float8(tensor):
    """Rounds to FP8 E4M3: 3 bits behind the leading one, exponents from -6. PyTorch 1.13 has no such type."""
    exponent = torch.floor(torch.log2(tensor.abs().clamp(min=2.0 ** -9))).clamp(min=-6)
    step = 2.0 ** (exponent - 3)
    return (tensor / step).round() * step


def main(fault, folder):
    torch.manual_seed(1)
    state, history = {name: torch.randn(shape) * 0.1 for name, shape in SHAPES.items()}, []
    ranks = 2 if fault in ("shards", "ranks") else 1
    for version in range(4):
        state = {name: tensor + 1e-3 * torch.randn(tensor.shape) * (version > 0) for name, tensor in state.items()}
        history.append(state)
        synced.weights(state, version, f"{folder}/trainer", "trainer")
        if fault == "ahead" and version == 3:
            continue
        dtype = torch.bfloat16 if fault in ("cast", "shards") else torch.float32
        held = {name: tensor.to(dtype) for name, tensor in faulty(fault, state, version, history).items()}
        for rank in range(ranks):
            mine = fused(held, rank, ranks) if fault in ("fused", "shards", "ranks", "qkv") else dict(held)
            if fault == "ranks" and rank == 1 and version == 2:
                mine[O] = mine[O] + 1
            synced.weights(Engine(mine), version, f"{folder}/generator", "generator", tp=(rank, ranks), rank=rank, world_size=ranks)
    synced.close()


for one in sys.argv[2:]:
    (adapter if one in ("adapter", "merged") else main)(one, os.path.join(sys.argv[1], one))
