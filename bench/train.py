#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of bench/train: training steps as people write them in stock PyTorch, float32, of GPT-2 124M or of models of
transformers: 4 layers of TinyLlama-1.1B, ViT-base.

train.py gpt2|llama|vit STEPS BATCH LENGTH [compile]: prints a line a step: its seconds, and those of the processor (forward,
backward, clipping, AdamW). With `compile` the model is torch.compile's. The last line says which PyTorch it is, and its memory.
"""
import resource
import sys
import time

import torch
from torch import nn


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM
        self.model = LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=4, num_attention_heads=32,
                                                  num_key_value_heads=4, vocab_size=32000, max_position_embeddings=2048, rms_norm_eps=1e-5,
                                                  use_cache=False))

    def forward(self, tokens, targets):
        return nn.functional.cross_entropy(self.model(input_ids=tokens).logits.flatten(0, 1), targets.flatten())


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import ViTConfig, ViTForImageClassification
        self.model = ViTForImageClassification(ViTConfig(num_labels=1000))

    def forward(self, pixels, labels):
        return nn.functional.cross_entropy(self.model(pixel_values=pixels).logits, labels)


def make(name, batch, length):
    """The model, and what it reads and tells."""
    if name == "vit":
        return ViT(), (torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,)))
    text = torch.randint(0, 256, (batch, length + 1))  # bytes, as zs-train reads them
    if name == "llama":
        return Llama(), (text[:, :-1], text[:, 1:])
    from gpt2 import GPT2
    return GPT2(), (text[:, :-1], text[:, 1:])


def main():
    name = sys.argv[1]
    steps, batch, length = map(int, sys.argv[2:5])
    torch.manual_seed(1)
    model, samples = make(name, batch, length)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    forward = torch.compile(model) if sys.argv[5:] == ["compile"] else model
    for _ in range(steps):
        begin, worked = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        loss = forward(*samples)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        print(time.perf_counter() - begin, time.process_time() - worked, flush=True)
    blas = "MKL" if torch.backends.mkl.is_available() else "no MKL"
    capability = torch.backends.cpu.get_cpu_capability()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if "transformers" in sys.modules:
        blas = f"transformers {sys.modules['transformers'].__version__}, {blas}"
    print(f"# PyTorch {torch.__version__}, {blas}, {capability}, peak {peak} MiB")


main()
