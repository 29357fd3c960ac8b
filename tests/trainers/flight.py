# SPDX-License-Identifier: Apache-2.0
"""Trainings that hang in a collective of NCCL: flight.py sleeps|other|sizes. The last rank sleeps before the third all_reduce, calls
a broadcast in its place, or gives it another size; NCCL's watchdog then writes the Flight Recorder's dumps."""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

how = sys.argv[1]
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=15), device_id=torch.device("cuda", rank))


def load_batch(step):
    if how == "sleeps" and step == 3 and rank == ranks - 1:
        time.sleep(60)
    return torch.ones(1024, device="cuda")


for step in range(1, 5):
    gradient = load_batch(step)
    last = step == 3 and rank == ranks - 1
    if last and how == "other":
        dist.broadcast(gradient, 0)
    elif last and how == "sizes":
        dist.all_reduce(gradient[:512])
    else:
        dist.all_reduce(gradient)
    torch.cuda.synchronize()
    print(f"Epoch 1, Step {step}, Loss: {gradient[0].item()} sync: True time: 0.1 alloc_mem: 0 peak_mem: 0", flush=True)
