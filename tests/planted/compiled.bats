# SPDX-License-Identifier: Apache-2.0
# Needs torch.compile, which Debian's PyTorch does not have.
load newest

@test "the probe breaks no graph of torch.compile, and says what it does not see where the model is compiled behind attach" {
  cat >train.py <<'END'
import sys, torch
from torch._dynamo.utils import counters
import zs_probe
how, order, folder = sys.argv[1:]
torch.manual_seed(1)

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.tanh(self.linear(x))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

model = Net()
optimizer = torch.optim.AdamW(model.parameters())
probe = zs_probe.attach(model, optimizer, folder, every=1) if order == "before" else None
called = model
if how == "whole":
    called = torch.compile(model, backend="aot_eager", fullgraph=True)
elif how == "inplace":
    model.compile(backend="aot_eager", fullgraph=True)
else:
    for part in model.blocks:
        part.compile(backend="aot_eager", fullgraph=True)
if order == "after":
    probe = zs_probe.attach(called, optimizer, folder, every=1)
for _ in range(3):
    called(torch.ones(4, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
probe.close()
assert counters["stats"]["unique_graphs"] > 0, "nothing was compiled"
print("breaks:", sum(counters["graph_break"].values()))
END
  export PYTHONPATH=$ROOT/share/probe TORCHDYNAMO_DISABLE=0
  for how in whole inplace parts; do
    for order in before after; do
      run -0 "$PYTHON" train.py "$how" "$order" "$how-$order"
      assert_line "breaks: 0"
      if [ "$how $order" = "whole before" ]; then
        assert_output --partial "no call of the model was seen"
      else
        refute_output --partial "no call of the model was seen"
      fi
    done
  done
  run -0 zs-verify whole-after parts-after
  assert_line "verdict: exact"
}

@test "a compiled step of the optimizer is recorded, and the recorder is not compiled with it" {
  cat >train.py <<'END'
import sys, torch
from torch._dynamo.utils import counters
torch.manual_seed(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())

def step():
    optimizer.step()

step = torch.compile(step, backend="aot_eager") if sys.argv[1:] else step
for _ in range(3):
    model(torch.ones(4, 8)).square().mean().backward()
    step()
    optimizer.zero_grad()
assert not sys.argv[1:] or counters["stats"]["unique_graphs"] < 4, counters["stats"]
END
  export PYTHONPATH=$ROOT/share/probe TORCHDYNAMO_DISABLE=0
  ZS_PROBE=eager run -0 "$PYTHON" -m zs_probe train.py
  ZS_PROBE=compiled run -0 "$PYTHON" -m zs_probe train.py compiled
  refute_output --partial recompile_limit
  run -0 zs-verify --allow rounding eager compiled
  assert_line "steps_compared: 3"
}
