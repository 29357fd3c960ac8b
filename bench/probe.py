#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""probe.py [STEPS [BATCH LENGTH]]: processor seconds of steps of GPT-2 124M, with and without zs_probe, in turn."""
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "share" / "probe"))
import zs_probe  # noqa: E402
from gpt2 import GPT2  # noqa: E402

steps, batch, length = ([int(word) for word in sys.argv[1:]] + [4, 2, 256][len(sys.argv) - 1:])[:3]
torch.manual_seed(1)
model = GPT2()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
text = torch.randint(0, 256, (batch, length + 1))


def step(probe=None):
    worked = time.process_time()
    optimizer.zero_grad(set_to_none=True)
    loss = model(text[:, :-1], text[:, 1:])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if probe:
        probe.loss(loss)
    optimizer.step()
    return time.process_time() - worked


step()
with tempfile.TemporaryDirectory() as folder:
    chosen = zs_probe.attach(model, optimizer, folder + "/default")
    for _ in range(16):  # which are recorded whatever they cost
        step(chosen)
    every = chosen.every
    chosen.close()
    plain, probed = [], []
    for turn in range(steps):
        plain.append(step())
        probe = zs_probe.attach(model, optimizer, f"{folder}/{turn}", every=1)
        probed.append(step(probe))
        probe.close()
least, most = min(plain), min(probed)
print(f"a step                 {least:8.3f} s of the processor ({batch} x {length} tokens, fastest of {steps})")
print(f"a step that is probed  {most:8.3f} s")
print(f"by default every {every:4} {100 * (most - least) / every / least:8.2f} % of the time (goal: below 3)")
print(f"# PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
sys.exit((most - least) / every / least >= 0.03)
