# SPDX-License-Identifier: Apache-2.0
"""python go_on.py CASE FOLDER: the training of write.py's CASE (a kind and its settings), from the checkpoint in FOLDER that the package itself
loads, for three more steps. Prints a JSON line: the losses of rank 0, and the SHA-256 of all weights after the last."""
import hashlib
import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist

import write


def report(losses, weights):
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(weights[name].detach().float().cpu().contiguous().numpy().tobytes())
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(json.dumps({"losses": losses, "weights": digest.hexdigest()}), flush=True)


def deepspeed(rank, ranks, folder, o):
    import deepspeed as package
    engine, _ = write.deepspeed_engine(o)
    path, _ = engine.load_checkpoint(folder, tag=open(folder + "/latest_universal").read() if o.get("load_universal") else None)
    assert path, "nothing was loaded"
    losses = []
    for step in range(3, 3 + int(o.get("more", 3))):
        loss = write.loss_of(engine, write.batch(step, rank))
        losses.append(float(loss))
        engine.backward(loss)
        engine.step()
    weights = {}
    for name, parameter in engine.module.named_parameters():
        if o.get("stage") == "3":
            with package.zero.GatheredParameters([parameter]):
                weights[name] = parameter.data.clone()
        else:
            weights[name] = parameter.data
    report(losses, weights)


def dcp(rank, ranks, folder, o):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    model = write.fsdp2(write.Net())
    optimizer = torch.optim.AdamW(write.groups(model), lr=0.01)
    m, s = get_state_dict(model, optimizer)
    checkpoint.load({"model": m, "optimizer": s}, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=m, optim_state_dict=s)
    losses = []
    for step in range(3, 3 + int(o.get("more", 3))):
        loss = write.loss_of(model, write.batch(step, rank))
        losses.append(float(loss))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    report(losses, {name: write.full_of(t) for name, t in model.named_parameters()})


if __name__ == "__main__":
    case, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    write.deepspeed, write.dcp = deepspeed, dcp
    kept = write.work
    write.work = lambda rank, ranks, case, _, port: kept(rank, ranks, case, folder, port)
    with tempfile.TemporaryDirectory() as nothing:
        sys.argv = [sys.argv[0], nothing, case]
        write.main()
