#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPT-2 training loop in stock PyTorch, written from the papers: it knows nothing of zs but its files.

oracle.py WEIGHTS BATCHES LOSSES [cuda]: trains from a state dict on the token batches of `zs-train --dump_batches`, and
compares the mean loss of every step with LOSSES (a line a step). Prints the largest relative difference; status 1 above
2e-6. Where $ZS_PROBE names a folder, share/probe/zs_probe records the training there.
"""
import math
import os
import sys
import types
from pathlib import Path

import h5py
import torch
import torch.nn.functional as F

HEADS, LEARNING_RATE, WEIGHT_DECAY, CLIP, TOLERANCE = 4, 3e-4, 0.01, 1.0, 2e-6


def forward(w, tokens, targets):
    """Mean cross-entropy of the next token (Radford et al. 2019; layer names are Hugging Face's)."""
    B, T = tokens.shape
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:T]
    C = x.shape[-1]
    causal = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
    norm = lambda x, name: F.layer_norm(x, (C,), w[name + ".weight"], w[name + ".bias"], 1e-5)
    linear = lambda x, name: x @ w[name + ".weight"] + w[name + ".bias"]
    layer = 0
    while f"transformer.h.{layer}.ln_1.weight" in w:
        h = f"transformer.h.{layer}."
        q, k, v = linear(norm(x, h + "ln_1"), h + "attn.c_attn").split(C, dim=-1)
        q, k, v = (t.view(B, T, HEADS, C // HEADS).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(C // HEADS)).masked_fill(~causal, float("-inf"))
        attended = (scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C)
        x = x + linear(attended, h + "attn.c_proj")
        hidden = linear(norm(x, h + "ln_2"), h + "mlp.c_fc")
        hidden = 0.5 * hidden * (1 + torch.tanh(math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)))
        x = x + linear(hidden, h + "mlp.c_proj")
        layer += 1
    logits = norm(x, "transformer.ln_f") @ w["transformer.wte.weight"].T
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    weights, batches, losses, device = (sys.argv[1:] + ["cpu"])[:4]
    torch.set_num_threads(1)
    w = {name: tensor.to(device, copy=True).requires_grad_() for name, tensor in torch.load(weights).items()}
    with h5py.File(batches) as file:
        tokens, targets = (torch.from_numpy(file[name][:]).to(device) for name in ("tokens", "targets"))
    expected = [float(line) for line in open(losses)]
    optimizer = torch.optim.AdamW(w.values(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    probe = None
    if os.environ.get("ZS_PROBE"):
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "share" / "probe"))
        import zs_probe
        probe = zs_probe.attach(types.SimpleNamespace(named_parameters=w.items), optimizer)
    steps, leaves = tokens.shape[:2]
    assert len(expected) == steps, f"{len(expected)} losses for {steps} steps"
    worst = 0.0
    for step in range(steps):
        optimizer.zero_grad()
        mean = 0.0
        for leaf in range(leaves):
            loss = forward(w, tokens[step, leaf], targets[step, leaf])
            (loss / leaves).backward()
            mean += loss.item() / leaves
        torch.nn.utils.clip_grad_norm_(w.values(), CLIP)
        if probe:
            probe.loss(mean)
        optimizer.step()
        difference = abs(mean - expected[step]) / abs(mean)
        if not difference <= TOLERANCE:
            sys.exit(f"step {step + 1}: loss {mean!r} here, {expected[step]!r} there: {difference:.3g} apart")
        worst = max(worst, difference)
    if probe:
        probe.close()
    print(f"{steps} steps, {leaves} micro-batches, loss {mean:.6f} at the end, largest relative difference {worst:.3g}")


if __name__ == "__main__":
    main()
