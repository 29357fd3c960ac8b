# SPDX-License-Identifier: Apache-2.0
"""A training of PyTorch that saves where it ends and resumes with --load, for tests/resume.bats. --lose names what it forgets
then: weights, masters (the weights come back as bfloat16), optimizer, moments, step, schedule, rate, scaler, random, data,
accumulation, bits (gradients are one unit in the last place larger). With --accumulate a step has two micro-batches, and a training that is to be resumed is stopped between them."""
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
parser.add_argument("--accumulate", action="store_true")
o = parser.parse_args()
lose = set(o.lose.split(",")) if o.load else set()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (2 * o.total))


class Scaler:
    """torch.amp.GradScaler, which PyTorch before 2.3 has for GPUs alone: it grows with each step."""

    def __init__(self, scale):
        self.state = {"scale": scale, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 1, "_growth_tracker": 0}

    def scale(self, loss):
        return loss * self.state["scale"]

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad.div_(self.state["scale"])

    def step(self, optimizer):
        optimizer.step()

    def update(self):
        self.state["scale"] *= self.state["growth_factor"]

    def state_dict(self):
        return dict(self.state)

    def load_state_dict(self, state):
        self.state = dict(state)


scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1) if hasattr(torch.amp, "GradScaler") else Scaler(8.0)
done = 0
if o.load:
    state = torch.load(o.load)
    if "masters" in lose:
        state["model"] = {name: tensor.bfloat16() for name, tensor in state["model"].items()}
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
    if "rate" in lose:
        schedule.base_lrs = [0.02]
        optimizer.param_groups[0]["lr"] *= 2
    if "scaler" not in lose:
        scaler.load_state_dict(state["scaler"])
    if "random" not in lose:
        torch.set_rng_state(state["random"])
    if state["gradients"] and "accumulation" not in lose:
        for parameter, gradient in zip(model.parameters(), state["gradients"]):
            parameter.grad = gradient
    done = state["done"]
data = torch.Generator().manual_seed(7)
micros = 2 if o.accumulate else 1
batches = [(torch.randn(5, 8, generator=data), torch.randn(5, 4, generator=data)) for _ in range(micros * (o.total + 1))]


def micro(number):
    x, y = batches[number]
    loss = nn.functional.mse_loss(model(x), y) / micros
    scaler.scale(loss).backward()
    return loss.item()


begun = 1 if o.load and o.accumulate else 0  # micro-batches of the next step that were made before the stop
for step in range(done, o.steps):
    at = step - done if "data" in lose else step
    loss = sum(micro(micros * at + i) for i in range(begun, micros))
    begun = 0
    scaler.unscale_(optimizer)
    for parameter in model.parameters() if "bits" in lose else ():
        parameter.grad.mul_(1 + 2**-23)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    optimizer.zero_grad()
    print(f"step {step + 1}/{o.steps} loss {loss:.6f}", flush=True)
gradients = []
if o.accumulate and o.steps < o.total:
    micro(micros * o.steps)
    gradients = [parameter.grad for parameter in model.parameters()]
os.makedirs(o.run, exist_ok=True)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "scaler": scaler.state_dict(),
            "random": torch.get_rng_state(), "gradients": gradients, "done": o.steps}, os.path.join(o.run, f"checkpoint-{o.steps}.pt"))
