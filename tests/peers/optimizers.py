# SPDX-License-Identifier: Apache-2.0
# Optimizers beside PyTorch's own: optimizers.py BEGIN RUN OPTIMIZER JSON takes the weights of a model's folder, the
# gradients that a run of zs-train left in its checkpoints, step by step, and the settings; updates the weights by
# torch.optim's class (of Lion by the formula of the paper, which PyTorch has no class for), and prints by how much the
# run's parameters differ at most, relative to how far they have moved.
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                direction = torch.sign((beta1 * m).add_(p.grad, alpha=1 - beta1))
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(direction, alpha=-group["lr"])
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


class AdamW8bit(torch.optim.Optimizer):
    """bitsandbytes' class, by its implementation in operations of PyTorch; smaller parameters by torch.optim.AdamW."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        from bitsandbytes.backends.triton.kernels_optim import optimizer_update_8bit_blockwise_pytorch as update
        from bitsandbytes.functional import create_dynamic_map

        self.update, self.maps = update, [create_dynamic_map(signed=True), create_dynamic_map(signed=False)]
        self.said = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        small = [p for p in params if p.numel() < 4096]
        self.rest = torch.optim.AdamW(small, **self.said) if small else None
        super().__init__([p for p in params if p.numel() >= 4096], {})

    @torch.no_grad()
    def step(self):
        if self.rest:
            self.rest.step()
        (beta1, beta2), said = self.said["betas"], self.said
        for p in self.param_groups[0]["params"]:
            its = self.state[p]
            if not its:
                zeros = [torch.zeros(p.shape, dtype=torch.uint8), torch.zeros(p.shape, dtype=torch.uint8)]
                its.update(step=0, codes=zeros, scales=[torch.zeros((p.numel() + 255) // 256) for _ in zeros])
            its["step"] += 1
            self.update(p, p.grad, *its["codes"], beta1, beta2, 0.0, 0.0, said["eps"], its["step"], said["lr"], *self.maps, *its["scales"],
                        said["weight_decay"], 1.0, False, optimizer_name="adam")


def made(name, weights, said):
    """The optimizers of PyTorch that do what zs's one does."""
    if name == "muon":
        blocks = {n for n, p in weights.items() if p.dim() == 2 and (".h." in n or ".layers." in n)}
        adam = said.pop("adamw")
        return [torch.optim.Muon([weights[n] for n in sorted(blocks)], **said),
                torch.optim.AdamW([p for n, p in weights.items() if n not in blocks], **adam)]
    classes = dict(adamw=torch.optim.AdamW, adam=torch.optim.Adam, sgd=torch.optim.SGD, lion=Lion, adamw_8bit=AdamW8bit)
    return [classes[name](list(weights.values()), **said)]


def main(begin, run, name, said):
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    weights = {n: p.clone().requires_grad_(True) for n, p in load_file(f"{begin}/model.safetensors").items()}
    first = {n: p.detach().clone() for n, p in weights.items()}
    optimizers = made(name, weights, json.loads(said))
    steps = sorted(int(p.name.split("_")[1]) for p in Path(run).glob("checkpoint_*"))
    assert steps == list(range(1, len(steps) + 1)) and len(steps) >= 20, steps
    worst, exact = 0.0, 0
    for step in steps:
        folder = f"{run}/checkpoint_{step}"
        gradients = torch.load(f"{folder}/gradients.pt")
        theirs = torch.load(f"{folder}/pytorch_model.bin")
        names = {n: n if n in theirs else "transformer." + n for n in weights}
        for n, p in weights.items():
            p.grad = gradients[names[n]].clone()
        for optimizer in optimizers:
            optimizer.step()
        exact += all(torch.equal(p.detach(), theirs[names[n]]) for n, p in weights.items())
        for n, p in weights.items():
            ours = theirs[names[n]]
            moved = (ours - first[n]).norm()
            assert moved > 0, f"{n} does not move"
            worst = max(worst, ((p.detach() - ours).norm() / moved).item())
    print(f"{name}: {len(steps)} steps, {exact} of them bit for bit, largest difference {worst:.2e} of the way")


main(*sys.argv[1:])
