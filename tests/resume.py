# SPDX-License-Identifier: Apache-2.0
"""A training of PyTorch that saves where it ends and resumes with --load, for tests/resume.bats. --lose names what it forgets
then: weights, optimizer, moments, step, schedule, random, data."""
import argparse
import os

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--total", type=int, required=True)
parser.add_argument("--run", required=True)
parser.add_argument("--load", default="")
parser.add_argument("--lose", default="")
o = parser.parse_args()
lose = set(o.lose.split(",")) if o.load else set()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (2 * o.total))
done = 0
if o.load:
    state = torch.load(o.load)
    if "weights" not in lose:
        model.load_state_dict(state["model"])
    if "optimizer" not in lose:
        optimizer.load_state_dict(state["optimizer"])
    if "moments" in lose:
        for held in optimizer.state.values():
            held["exp_avg"].zero_()
    if "step" in lose:
        for held in optimizer.state.values():
            held["step"] = torch.zeros_like(torch.as_tensor(held["step"]))
    if "schedule" not in lose:
        schedule.load_state_dict(state["schedule"])
    if "random" not in lose:
        torch.set_rng_state(state["random"])
    done = state["done"]
data = torch.Generator().manual_seed(7)
batches = [(torch.randn(5, 8, generator=data), torch.randn(5, 4, generator=data)) for _ in range(o.total)]
for step in range(done, o.steps):
    x, y = batches[step - done if "data" in lose else step]
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    print(f"step {step + 1}/{o.steps} loss {loss.item():.6f}", flush=True)
os.makedirs(o.run, exist_ok=True)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(),
            "random": torch.get_rng_state(), "done": o.steps}, os.path.join(o.run, f"checkpoint-{o.steps}.pt"))
