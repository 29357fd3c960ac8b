# SPDX-License-Identifier: Apache-2.0
"""Muon beside torch.optim.Muon: muon.py HOW INITIAL BATCHES OUT [STAGE], from the weights and on the micro-batches that
zs-train wrote.

HOW torch: stock PyTorch in one process; the weights after the last step go to OUT. HOW deepspeed: DeepSpeed at the stage
on two ranks, each of which computes half of the micro-batches; its weights go to OUT. HOW beside: prints by how much the
blocks' matrices of the file BATCHES differ at most from those of OUT, as a share of the way that they moved from INITIAL.
"""
import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
RATE, MOMENTUM, RANKS = 0.005, 0.95, 2
ADAM = dict(lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)


def is_matrix(name, parameter):
    return parameter.dim() == 2 and ".h." in name


def read(initial, batches):
    import h5py
    weights = torch.load(initial)
    with h5py.File(batches) as file:
        return weights, torch.from_numpy(file["tokens"][:]), torch.from_numpy(file["targets"][:])


def by_torch(initial, batches, out):
    from oracle import forward
    weights, tokens, targets = read(initial, batches)
    w = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    optimizers = [torch.optim.Muon([p for n, p in w.items() if is_matrix(n, p)], lr=RATE, momentum=MOMENTUM, weight_decay=0.0),
                  torch.optim.AdamW([p for n, p in w.items() if not is_matrix(n, p)], **ADAM)]
    for step in range(tokens.shape[0]):
        for leaf in range(tokens.shape[1]):
            (forward(w, tokens[step, leaf], targets[step, leaf]) / tokens.shape[1]).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    torch.save({name: p.detach() for name, p in w.items()}, out)


def by_deepspeed(initial, batches, out, stage):

    from oracle import forward
    from gloo import begin, older
    weights, tokens, targets = read(initial, batches)

    class Net(torch.nn.Module):
        """DeepSpeed takes what is named embed for no matrix of a block."""

        def __init__(self):
            super().__init__()
            self.names = {}
            for name, tensor in weights.items():
                self.names[name] = name.replace(".", "_") if is_matrix(name, tensor) else "embed_" + name.replace(".", "_")
                self.register_parameter(self.names[name], torch.nn.Parameter(tensor.clone()))

        def forward(self, x, y):
            return forward({name: getattr(self, own) for name, own in self.names.items()}, x, y)

    older()
    deepspeed = begin()
    model = Net()
    mine = tokens.shape[1] // RANKS
    settings = dict(lr=RATE, momentum=MOMENTUM, betas=ADAM["betas"], eps=ADAM["eps"], weight_decay=0.0, ns_method="standard", torch_adam=True)
    engine = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), config={
        "train_micro_batch_size_per_gpu": tokens.shape[2], "gradient_accumulation_steps": mine, "steps_per_print": 1000, "gradient_clipping": 0.0, "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": stage, "reduce_scatter": False}, "optimizer": {"type": "Muon", "params": settings}})[0]
    rank = torch.distributed.get_rank()
    for step in range(tokens.shape[0]):
        for leaf in range(rank * mine, (rank + 1) * mine):
            engine.backward(engine(tokens[step, leaf], targets[step, leaf]))
            engine.step()
    with deepspeed.zero.GatheredParameters(list(model.parameters())) if stage == 3 else torch.no_grad():
        if rank == 0:
            torch.save({name: getattr(model, own).detach().clone() for name, own in model.names.items()}, out)
    torch.distributed.barrier()
    os._exit(0)  # DeepSpeed's threads are not waited for


def beside(initial, theirs, right):
    first, theirs, right = torch.load(initial), torch.load(theirs), torch.load(right)
    print(f"{max(((theirs[n] - right[n]).norm() / (right[n] - first[n]).norm()).item() for n, p in first.items() if is_matrix(n, p)):.2g}")


torch.set_num_threads(1)
how, arguments = sys.argv[1], sys.argv[2:]
if how == "deepspeed":
    by_deepspeed(*arguments[:3], int(arguments[3]))
else:
    {"torch": by_torch, "beside": beside}[how](*arguments)
