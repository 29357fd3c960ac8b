# SPDX-License-Identifier: Apache-2.0
# Needs DTensors, which Debian's PyTorch does not have.
load newest

@test "a norm of which each rank has a share is joined, without a collective" {
  cat >train.py <<'END'
import os, sys, torch
import zs_probe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
ranks = int(os.environ.get("WORLD_SIZE", 1))
torch.manual_seed(1)
model, data = torch.nn.Linear(8, 4, bias=False), torch.randn(2, 5, 8)
if ranks > 1:
    torch.distributed.init_process_group("gloo")
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (ranks,))
    model.weight = torch.nn.Parameter(distribute_tensor(model.weight.detach(), mesh, [Shard(0)]))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
probe = zs_probe.attach(model, optimizer, sys.argv[1])
for x in data:
    made = model(DTensor.from_local(x, mesh, [Replicate()])).full_tensor() if ranks > 1 else model(x)
    made.square().sum().backward()
    norm = torch.linalg.vector_norm(model.weight.grad)
    if ranks > 1:  # told, not clipped
        assert norm.placements[0].is_partial()
        probe.scalar("norm", norm)
        probe.scalar("clip", 0.5)
    else:  # clipped, not told
        model.weight.grad.mul_(0.5 / norm)
    optimizer.step()
    optimizer.zero_grad()
END
  export PYTHONPATH=$ROOT/share/probe MASTER_ADDR=127.0.0.1
  run -0 "$PYTHON" train.py clipped
  MASTER_PORT=$("$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export MASTER_PORT WORLD_SIZE=2
  RANK=1 "$PYTHON" train.py told 3>&- &
  RANK=0 run -0 "$PYTHON" train.py told
  wait
  run -1 zs-verify clipped told
  assert_line --regexp '^headline: step 1: gradient of weight: x [0-9.]+ \(norm over clip bound\)$'
}
