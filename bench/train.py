#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of bench/train: training steps of GPT-2 124M as people write them in stock PyTorch, float32.

train.py STEPS BATCH LENGTH [compile]: prints a line a step: its seconds, and those of the processor (forward, backward,
clipping, AdamW). With `compile` the model is torch.compile's. The last line says which PyTorch it is, and its memory.
"""
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, VOCABULARY, POSITIONS = 768, 12, 12, 50257, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (t.view(B, T, HEADS, -1).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(WIDTH, dim=2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(B, T, WIDTH))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    steps, batch, length = map(int, sys.argv[1:4])
    torch.manual_seed(1)
    model = GPT2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    forward = torch.compile(model) if sys.argv[4:] == ["compile"] else model
    text = torch.randint(0, 256, (batch, length + 1))  # bytes, as zs-train reads them
    for _ in range(steps):
        begin, worked = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        loss = forward(text[:, :-1], text[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        print(time.perf_counter() - begin, time.process_time() - worked, flush=True)
    blas = "MKL" if torch.backends.mkl.is_available() else "no MKL"
    capability = torch.backends.cpu.get_cpu_capability()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"# PyTorch {torch.__version__}, {blas}, {capability}, peak {peak} MiB")


main()
