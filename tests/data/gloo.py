# SPDX-License-Identifier: Apache-2.0
# A training by torch.distributed as its users write it: nothing in it knows of zs.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(dist.get_rank())
if dist.get_rank() == 0:
    print("run: expected_steps=3")
for step in range(1, 4):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print(f"Epoch 1, Step {step}, Loss: {loss.item():.6f} sync: True time: 0.1 alloc_mem: 1000000 peak_mem: 2000000")
dist.destroy_process_group()
