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
from gpt2 import GPT2
from torch import nn


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
