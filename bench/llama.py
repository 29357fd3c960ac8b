# SPDX-License-Identifier: Apache-2.0
"""Llama 3 and Qwen3 as people write them in stock PyTorch: the models of the peers that bench/gpu measures against."""
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts


class Size(NamedTuple):
    layers: int
    heads: int  # of queries
    groups: int  # of keys and values
    width: int
    inner: int
    tied: bool  # whether the head is the embedding
    head: int  # numbers of a head
    vocabulary: int = 128256
    theta: float = 500000.0
    epsilon: float = 1e-5
    normed: bool = False  # queries and keys, head by head


QWEN = dict(vocabulary=151936, theta=1000000.0, epsilon=1e-6, normed=True)
SIZES = {
    "Llama-3.2-1B": Size(16, 32, 8, 2048, 8192, True, 64),
    "Meta-Llama-3-8B": Size(32, 32, 8, 4096, 14336, False, 128),
    "Qwen3-0.6B": Size(28, 16, 8, 1024, 3072, True, 128, **QWEN),
    "Qwen3-1.7B": Size(28, 16, 8, 2048, 6144, True, 128, **QWEN),
}


def angles(positions, width, theta):
    """Cosines and sines by position, [T, D] each, for halves that turn together."""
    frequencies = theta ** (-torch.arange(0, width, 2, device=positions.device, dtype=torch.float32) / width)
    turned = torch.outer(positions.float(), frequencies).repeat(1, 2)
    return turned.cos(), turned.sin()


def rotate(x, cosines, sines):
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat((-second, first), -1) * sines


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size, width = size.head, size.width
        self.norm_1, self.norm_2 = nn.RMSNorm(width, size.epsilon), nn.RMSNorm(width, size.epsilon)
        self.q, self.o = nn.Linear(width, size.heads * size.head, bias=False), nn.Linear(size.heads * size.head, width, bias=False)
        self.k, self.v = (nn.Linear(width, size.groups * size.head, bias=False) for _ in range(2))
        self.q_norm, self.k_norm = (nn.RMSNorm(size.head, size.epsilon) if size.normed else nn.Identity() for _ in range(2))
        self.gate, self.up = (nn.Linear(width, size.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(size.inner, width, bias=False)

    def forward(self, x, cosines, sines, ends, longest):
        """With `ends`, where documents begin and the last one ends, each sees itself alone."""
        B, T, C = x.shape
        h = self.norm_1(x)
        q, k, v = (p(h).view(B, T, -1, self.size).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = rotate(self.q_norm(q), cosines, sines), rotate(self.k_norm(k), cosines, sines)
        if ends is None:
            attended = attend(q, k, v).transpose(1, 2)
        else:
            from torch.nn.attention.varlen import varlen_attn

            q, k, v = (each.transpose(1, 2).flatten(0, 1) for each in (q, k, v))
            attended = varlen_attn(q, k, v, ends, ends, longest, longest, window_size=(-1, 0))  # causal
        x = x + self.o(attended.reshape(B, T, -1))
        h = self.norm_2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


@torch.compile(dynamic=False)
def sum_of_losses(x, weight, targets):
    return F.cross_entropy((x @ weight.t()).float(), targets, reduction="sum")


def keeping_attention():
    """Selective activation checkpointing, as torchtitan has it, of attention alone."""
    kernels = [getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention").default for name in ("cudnn", "flash", "efficient")]
    return create_selective_checkpoint_contexts(kernels)


class Llama(nn.Module):
    """Made on the device "meta": begin() gives it memory and values. `document`: tokens of each document in a sample of
    `length`, or 0 where a sample is one."""

    def __init__(self, name, length, layers=None, document=0):
        super().__init__()
        self.shape = size = SIZES[name]
        self.length, self.document, self.part = length, document, 0
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(layers or size.layers))
        self.norm, self.head = nn.RMSNorm(size.width, size.epsilon), nn.Linear(size.width, size.vocabulary, bias=False)
        if size.tied:
            self.head.weight = self.embedding.weight

    def make_again(self, part, selective=False):
        """In backward, in place of keeping them: activations of blocks (without results of attention, if selective), and
        logits of `part` tokens at a time."""
        self.part = part
        more = {"context_fn": keeping_attention} if selective else {}
        for i, block in enumerate(self.blocks):
            self.blocks[i] = checkpoint_wrapper(block, preserve_rng_state=False, **more)

    def begin(self, device):
        self.to_empty(device=device)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
            else:
                nn.init.ones_(parameter)
        positions = torch.arange(self.length, device=device)
        self.angles = angles(positions % self.document if self.document else positions, self.shape.head, self.shape.theta)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        cosines, sines = (each.to(x.dtype) for each in self.angles)
        ends = torch.arange(0, tokens.numel() + 1, self.document, dtype=torch.int32, device=x.device) if self.document else None
        for block in self.blocks:
            x = block(x, cosines, sines, ends, self.document)
        if self.part:
            x, targets = self.norm(x).flatten(0, 1).split(self.part), targets.flatten().split(self.part)
            losses = [checkpoint(sum_of_losses, rows, self.head.weight, its, use_reentrant=False) for rows, its in zip(x, targets)]
            return sum(losses) / tokens.numel()
        return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())
