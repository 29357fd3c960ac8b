# SPDX-License-Identifier: Apache-2.0
"""Llama 3 as people write it in stock PyTorch: the model of the peers that bench/gpu measures against."""
import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, THETA, EPSILON = 128256, 500000.0, 1e-5
# layers, heads of queries, heads of keys and values, width, inner width, whether the head is the embedding
SIZES = {"Llama-3.2-1B": (16, 32, 8, 2048, 8192, True), "Meta-Llama-3-8B": (32, 32, 8, 4096, 14336, False)}


def angles(length, width, device=None):
    """Cosines and sines by position, [T, D] each, for halves that turn together."""
    frequencies = THETA ** (-torch.arange(0, width, 2, device=device, dtype=torch.float32) / width)
    turned = torch.outer(torch.arange(length, device=device, dtype=torch.float32), frequencies).repeat(1, 2)
    return turned.cos(), turned.sin()


def rotate(x, cosines, sines):
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat((-second, first), -1) * sines


class Block(nn.Module):
    def __init__(self, heads, groups, width, inner):
        super().__init__()
        self.size = width // heads
        self.norm_1, self.norm_2 = nn.RMSNorm(width, EPSILON), nn.RMSNorm(width, EPSILON)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x, cosines, sines):
        B, T, C = x.shape
        h = self.norm_1(x)
        q, k, v = (p(h).view(B, T, -1, self.size).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = rotate(q, cosines, sines), rotate(k, cosines, sines)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(attended.transpose(1, 2).reshape(B, T, C))
        h = self.norm_2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """Made on the device "meta": begin() gives it memory and values."""

    def __init__(self, size, length, layers=None):
        super().__init__()
        all_layers, heads, groups, width, inner, tied = SIZES[size]
        self.length, self.rotated = length, width // heads
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(heads, groups, width, inner) for _ in range(layers or all_layers))
        self.norm, self.head = nn.RMSNorm(width, EPSILON), nn.Linear(width, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def begin(self, device):
        self.to_empty(device=device)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
            else:
                nn.init.ones_(parameter)
        self.angles = angles(self.length, self.rotated, device)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        cosines, sines = (each.to(x.dtype) for each in self.angles)
        for block in self.blocks:
            x = block(x, cosines, sines)
        return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())
