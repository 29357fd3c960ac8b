# SPDX-License-Identifier: Apache-2.0
# Recordings of zs-train, compared with each other, and the tools that take recordings.
setup_file() {
  load helper
  warm_up
}

teardown_file() {
  load helper
  cool_down
}

setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  cp -r "$ROOT/tests/data/probe" .
  cd probe
}

@test "one process and ZeRO-3 on two ranks record the same bits; zs-verify names the step where two trainings differ" {
  train() { zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 3 --save_final false "${@:2}" --probe "$1" >"$1.log"; }
  train one --gradient_accumulation_steps 2 --probe_values all
  ZS_PROBE=two mpirun --oversubscribe --bind-to none -n 2 zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 3 \
    --save_final false --zero_stage 3 --probe_values 2,3 >two.log
  run -0 zs-verify one two
  assert_line "verdict: exact"
  assert_line "steps_compared: 3"
  assert_line "ranks_b: 2"
  refute_line --partial "missing: "
  local recording
  for recording in one two; do # each is consistent in itself
    run -0 zs-verify $recording
    assert_line "verdict: consistent"
    assert_line --regexp "holds: .*replicas|holds: .*update 48"
  done
  run -0 zs-verify --follow one
  assert_line "verdict: consistent"
  run -0 zs-report one
  assert_output --partial "consistent: one/report.html"
  grep -qF '**No check found an error**' one/report.md
  assert_equal "$(grep -c '"targets": \[16, 16\]' one/rank-0.jsonl) $(grep -c '"targets": \[16\]' two/rank-1.jsonl)" "3 3"
  train half-one --fp16 --gradient_accumulation_steps 2 # gradients of micro-batches have 16 bits
  mpirun --oversubscribe --bind-to none -n 2 zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 3 --save_final false \
    --fp16 --zero_stage 3 --probe half-two >half-two.log
  run -0 zs-verify half-one half-two
  assert_line "verdict: exact"
  run -0 zs-report one two # a page, as of recordings of zs_probe
  assert_line --partial "# two compared with one"
  recorded_again one padded
  sed -i '4s/"targets": \[16, 16\]/"targets": [16, 9]/' padded/rank-0.jsonl
  run zs-verify one padded
  assert_line --partial "step 2: 25 target tokens for 32"
  train other --gradient_accumulation_steps 2 --probe_values all --set training.weight_decay=0.5
  run -1 zs-verify one other
  assert_line "headline: step 1: weight_decay of group 0 is 0.5 instead of 0.01"
  ZS_PROBE_PERTURB=1 train floor --gradient_accumulation_steps 2
  grep -q 'note: ZS_PROBE_PERTURB' floor.log
  run -0 zs-verify --floor floor one two
  assert_line "floor: floor, over 3 steps"
  run -1 zs-verify --floor floor one other
  run -0 zs-verify --follow one two
  assert_line "verdict: exact"
  ZS_PROBE=off zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 1 --save_final false >/dev/null
  run -2 zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 1 --probe one
  assert_output --partial "one/rank-0.jsonl: is there already, the record of another training up to step 3: name another folder with --probe"
  run -2 zs-train --model_name tiny --max_steps 1 --probe new --probe_values some
  assert_output --partial "'some' is neither a step nor all"
  run -2 env ZS_PROBE_EVERY=0 zs-train --model_name tiny --max_steps 1 --probe new
  assert_output --partial "ZS_PROBE_EVERY: '0' is not a whole number of at least 1"
  run -2 env ZS_PROBE_PERTURB=x zs-train --model_name tiny --max_steps 1 --probe new
  assert_output --partial "ZS_PROBE_PERTURB: 'x' is not a whole number"
  train coarse --gradient_accumulation_steps 2 --probe_every 2
  run -0 zs-verify one coarse
  assert_line "steps_compared: 3" # the first, the second, and the parameters after the last
}

@test "a recording of version 1 is refused: the training has to be recorded again" {
  sed -i '1s/"zs_probe": 2/"zs_probe": 1/' plain/rank-0.jsonl
  run -2 zs-verify plain fsdp
  assert_output --partial "plain/rank-0.jsonl:1: is a recording of version 1, which is no longer read: record the training again"
}

@test "one recording is checked: an older one lacks what decides an update, and a gradient that is not the sum of its micro-batches is named" {
  run -3 zs-verify whole
  assert_line "verdict: inconclusive"
  assert_line --partial "not checked: "
  run -2 zs-verify --allow rounding whole
  assert_output --partial "says nothing about one recording"
  sed -i '0,/"counters": {"1"/s//"counters": {"7"/' whole/rank-0.jsonl
  run -1 zs-verify whole
  assert_line "verdict: INCONSISTENT"
  assert_line --regexp '^headline: step 1: counter of .*: is 7, expected 1 \(no update was made before\)'
}

@test "zs-report of two probes: the headline as a sentence, a map of modules and steps, and curves" {
  run -1 zs-report whole lost -o page.html
  grep -q 'step 1: gradient of 0.weight and 3 more of 4: only the last of 4 micro-batches counts' page.html
  grep -q 'the largest distance of each module at each step' page.html
  grep -q '<title>lost compared with whole' page.html
  grep -q '>1e5, red: more than rounding<' page.html # the legend of the map ends where its cells do
  [ "$(grep -o '<svg' page.html | wc -l)" -ge 2 ]
  run -0 zs-report whole sharded
  assert_line --partial "**No difference is beyond rounding**: the largest distance is "
  recorded_again whole again
  run -0 zs-report whole again
  assert_line --regexp '\*\*There is no difference\*\*: all bits of [1-9][0-9]* tensors are the same\. A is'
  run -2 zs-report whole lost --kind sweep
  cp -r whole cut # the status is that of zs-verify
  head -c -300 whole/rank-0.jsonl >cut/rank-0.jsonl
  run -1 zs-report whole cut
  assert_line --partial "cut/rank-0.jsonl"
  run -3 zs-report cut
  assert_output --partial "inconclusive: cut/report.html"
  run -3 zs-verify cut
  [[ $output == "verdict: inconclusive"$'\n'"failure: cut/rank-0.jsonl:"*" is cut: "* ]] || complain "$output"
  verdict
}

@test "two different models are not comparable, and that is the headline" {
  cp -r "$ROOT/tests/data/probe/plain" plain
  cp -r plain other
  sed -i '1s/"id": "../"id": "zz/' other/rank-0.jsonl
  sed -i -E 's#"([a-z0-9_]*/)?0\.(weight|bias)#"\1first.\2#g; s#"([a-z0-9_]*/)?2\.(weight|bias)#"\1last.\2#g' other/rank-*.jsonl
  run -3 zs-verify plain other
  [[ $output == "verdict: not comparable"$'\n'"headline: two different models: no parameter of one has a name of the other"* ]] || complain "$output"
  verdict
}

@test "Megatron-core's tensor, sequence and pipeline parallel ranks equal one process; zs-verify names a fault" {
  python_with torch python3-torch
  "$PYTHON" -c "import megatron.core" 2>/dev/null ||
    skip "needs Megatron-core: pip install --no-deps megatron-core, and name its Python in ZS_TORCH_PYTHON"
  local laid=$ROOT/tests/bugs/laid name
  line() { echo "$2 ZS_PROBE=$1 DONE=$1.done SEEN=$1.log CLIP=1 ${*:3} $laid/core.py"; }
  {
    line core 1
    line sequence 2 TP=2 SP=1
    line stages 2 PP=2
    line faulty 2 TP=2 FAULT=layers.1.mlp.linear_fc1.weight
  } | ZS_PROBE=unused ZS_PROBE_EVERY=1 OMP_NUM_THREADS=1 PYTHONPATH=$ROOT/share/probe:${PYTHONPATH:-} "$PYTHON" -m zs_probe "$laid/gangs.py"
  for name in sequence stages; do
    run -0 zs-verify $name
    assert_line "verdict: consistent"
    run -0 zs-verify --allow rounding core $name
    assert_line "verdict: equal up to rounding"
  done
  run -1 zs-verify faulty
  assert_line --partial "headline: step 2: gradient of decoder.layers.1.mlp.linear_fc1.weight: x 1.5"
}

@test "zs_probe says that PyTorch compiles an operation, and names a lock that another process has left" {
  warm_python
  cat >compile.py <<'END'
import torch.utils.cpp_extension as extension
extension._jit_compile = lambda *args, **kwargs: None
extension.load("zs_two", ["two.cpp"])
END
  export PYTHONPATH=$ROOT/share/probe TORCH_EXTENSIONS_DIR=$PWD/made ZS_PROBE=$PWD/none
  run --separate-stderr "$PYTHON" -m zs_probe compile.py
  [[ $stderr == *"zs_probe: PyTorch compiles zs_two for its first use, which can take minutes; later runs find it in $PWD/made"* ]]
  folder=$(dirname "$(find made -type d -name zs_two)")/zs_two
  touch -d '3 minutes ago' "$folder/lock"
  run --separate-stderr "$PYTHON" -m zs_probe compile.py
  [[ $stderr == *"zs_two waits for another process to compile it: "*"/zs_two/lock is "*" minutes old; if no process compiles, delete that file"* ]]
  rm "$folder/lock"
  touch "$folder/zs_two.so"
  run --separate-stderr "$PYTHON" -m zs_probe compile.py
  [[ $stderr != *zs_two* ]]
}

@test "zs_probe records masters of 16 more bits for a bfloat16 parameter like float32 masters" {
  warm_python
  cat >fused.py <<'EOF'
import os
import sys

import torch
import zs_probe

kind, stale = sys.argv[1], "stale" in sys.argv


class FusedAdam(torch.optim.Optimizer):
    """With what zs_probe asks of TransformerEngine's."""

    __module__ = "transformer_engine.pytorch.optimizers"

    def __init__(self, params, kept=torch.float32):
        super().__init__(params, {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1, "bias_correction": True})
        self.master_weights, self.use_decoupled_grad = True, True
        self.name_to_dtype_map = {"exp_avg": kept, "exp_avg_sq": kept, "master_param": torch.float32}
        for group in self.param_groups:
            for p in group["params"]:
                rest = torch.zeros_like(p, dtype=torch.int16) if kind != "masters" else p.detach().float()
                self.state[p] = {"exp_avg": torch.zeros_like(p, dtype=kept), "exp_avg_sq": torch.zeros_like(p, dtype=kept), "master_param": rest}

    def get_unscaled_state(self, p, name):
        return self.state[p][name]

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            for p in group["params"]:
                state = self.state[p]
                rest, g = state["master_param"], p.decoupled_grad
                if rest.dtype == torch.int16:
                    full = p.view(torch.int16).int() - (rest < 0).int() << 16 | rest.int() & 0xFFFF
                    full = full.view(torch.float32)
                else:
                    full = rest.clone()
                first, second = 0.9 * state["exp_avg"].float() + 0.1 * g, 0.999 * state["exp_avg_sq"].float() + 0.001 * g * g
                count = group["step"]
                full -= 0.01 * (first / (1 - 0.9 ** count) / ((second / (1 - 0.999 ** count)).sqrt() + 1e-8) + 0.1 * full)
                if not (stale and count == 3):
                    state["exp_avg"].copy_(first)
                state["exp_avg_sq"].copy_(second)
                if rest.dtype == torch.int16:
                    bits = full.view(torch.int32)
                    rest.copy_((bits & 0xFFFF).to(torch.int16))
                    p.view(torch.int16).copy_((bits >> 16).to(torch.int16) + (rest < 0))
                else:
                    rest.copy_(full)
                    p.copy_(full)


torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(24, 24), torch.nn.Tanh(), torch.nn.Linear(24, 8)).bfloat16()
optimizer = FusedAdam(model.parameters(), torch.bfloat16 if kind == "moments" else torch.float32)
zs_probe.attach(model, optimizer, sys.argv[2], every=1)
for step in range(4):
    model(torch.randn(6, 24).bfloat16()).float().square().mean().backward()
    for p in model.parameters():
        p.decoupled_grad, p.grad = p.grad.float(), None
    optimizer.step()
EOF
  export PYTHONPATH=$ROOT/share/probe OMP_NUM_THREADS=1
  recorded() { "$PYTHON" fused.py "$@"; }
  recorded masters masters && recorded remainders remainders && recorded moments moments && recorded moments stale stale
  run -0 zs-verify masters remainders
  assert_line "verdict: exact"
  assert_line --partial "layouts: the same on both sides"
  for name in masters remainders moments; do
    run -0 zs-verify $name
    assert_line "verdict: consistent"
    assert_line --regexp "^holds: .*update 16, masters 16"
  done
  run -1 zs-verify stale
  assert_line --partial "headline: step 3: optimizer state exp_avg of "
  assert_line --partial "the state before, expected 0.1000 and 0.9000"
}

@test "FSDP2: gradients of micro-batches are the same where they are read at once or one by one; a hook that changes one is said" {
  warm_python
  echo 'from torch.distributed.fsdp import fully_shard' >has.py
  "$PYTHON" has.py 2>/dev/null || skip "needs torch.distributed.fsdp.fully_shard"
  cat >train.py <<'END'
import os, random, sys, torch
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
from torch.distributed.fsdp import fully_shard
random.seed(1), torch.manual_seed(1)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)) for _ in range(2)])
for module in (*model, model):
    fully_shard(module)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def change(module, *_):
    if module.weight.grad is not None:
        module.weight.grad.mul_(3)
if "changed" in sys.argv:
    model[0][0].register_full_backward_hook(change)
    model[0][1].register_full_backward_hook(change)
for step in range(3):
    for micro in range(2):
        if "hooked" in sys.argv and not step and micro:
            for module in model:
                for held in module._get_fsdp_state()._fsdp_param_group.fsdp_params:
                    held._unsharded_param.register_hook(lambda gradient: None)
        model.set_requires_gradient_sync(micro == 1 or "each" in sys.argv)
        (model(torch.randn(5, 8)).square().mean() / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
END
  export PYTHONPATH=$ROOT/share/probe
  for kind in once "hooked one by one" "changed" "each"; do ZS_PROBE=${kind%% *} run -0 "$PYTHON" -m zs_probe train.py $kind; done
  for kind in once hooked each; do
    run -0 zs-verify $kind
    [ "$(grep -c '"micro": 1' $kind/rank-0.jsonl)" = 3 ]
    [ "$(grep -o '"micro": ' $kind/rank-0.jsonl | wc -l)" = 48 ]
  done
  run -0 zs-verify once hooked
  assert_line "verdict: exact"
  [ "$(grep -o '"micro": ' changed/rank-0.jsonl | wc -l)" = 47 ] # the first; then they are copied in their hooks
  grep -q 'a gradient of one micro-batch is not recorded of 0.1.weight: another hook changed it' changed/rank-0.jsonl
}

@test "zs_probe records what an optimizer holds from the step on in which it is a tensor" {
  warm_python
  cat >train.py <<'END'
import torch
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(3):
    model(torch.randn(5, 8)).square().mean().backward()
    optimizer.step()
    for p, held in optimizer.state.items():
        held["more"] = torch.ones_like(p) if step == 1 else None
    optimizer.zero_grad()
END
  PYTHONPATH=$ROOT/share/probe ZS_PROBE=more run -0 "$PYTHON" -m zs_probe train.py
  [ "$(grep -o '"state.more/' more/rank-0.jsonl | wc -l)" = 2 ] # of both parameters, in the last step
}

@test "zs_probe records what is trained later: a parameter that was frozen, and one of a group that is added" {
  python_with torch python3-torch
  warm_python
  cat >later.py <<'END'
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(3)])
model[:2].requires_grad_(False)
optimizer = torch.optim.AdamW([*model[2].parameters(), *model[1].parameters()], lr=0.01)
for step in range(6):
    model(torch.randn(5, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 1:
        model.requires_grad_(True)
        optimizer.add_param_group({"params": list(model[0].parameters())})
END
  ZS_PROBE=later PYTHONPATH=$ROOT/share/probe run -0 "$PYTHON" -m zs_probe later.py
  run -0 zs-verify later
  assert_line "verdict: consistent"
  assert_line --regexp "^holds: .*gradient 28, counter 28"
  assert_line "note moves: trained from step 3 on, and frozen before: 0.bias, 0.weight, 1.bias and 1 more"
}

@test "gradients that are clipped twice have the first norm and the smallest bound" {
  python_with torch python3-torch
  warm_python
  cat >clipped.py <<'END'
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
clip = torch.nn.utils.clip_grad_norm_
for step in range(3):
    for _ in range(2):
        model(torch.randn(5, 8)).square().mean().backward()
    clip(model.parameters(), 0.05)
    clip(model.parameters(), 0.02)
    clip(model.parameters(), float("inf"))  # to log the norm that is left
    optimizer.step()
    optimizer.zero_grad()
END
  ZS_PROBE=clipped PYTHONPATH=$ROOT/share/probe run -0 "$PYTHON" -m zs_probe clipped.py
  run -0 zs-verify clipped
  assert_line "verdict: consistent"
  assert_line --regexp "^holds: .*gradient 12, norm 3"
}

@test "zs_probe numbers the updates of a DeepSpeed engine, and not those that it skips; a second engine is said" {
  warm_python
  cat >train.py <<'END'
import sys, types, torch
from zs_probe import boot

comm = types.SimpleNamespace()
comm.comm = comm
sys.modules.update({"deepspeed": types.SimpleNamespace(__version__="0", comm=comm), "deepspeed.comm": comm, "deepspeed.comm.comm": comm})


class WarmupLR:
    __module__, last_batch_iteration = "deepspeed.runtime.lr_schedules", 0


class FP16_UnfusedOptimizer:
    def __init__(self, parameters):
        self.fp16_groups, self.fp32_groups = [parameters], [[p.detach().clone() for p in parameters]]
        self.optimizer = torch.optim.AdamW(self.fp32_groups[0], lr=0.01)

    def step(self):
        for p, master in zip(self.fp16_groups[0], self.fp32_groups[0]):
            master.grad, p.grad = p.grad, None
        if self.overflow:
            return
        self.optimizer.step()
        for p, master in zip(self.fp16_groups[0], self.fp32_groups[0]):
            p.data.copy_(master)


class DeepSpeedEngine:
    """What zs_probe asks an engine of stage 0."""

    global_steps = skipped_steps = global_rank = 0

    def __init__(self, module):
        boot.inside[0] += 1
        self.module, self.optimizer, self.lr_scheduler = module, FP16_UnfusedOptimizer(list(module.parameters())), WarmupLR()
        boot.inside[0] -= 1
        boot._engine(self)

    def backward(self, loss):
        loss.backward()

    def step(self, overflow):
        self.optimizer.overflow = overflow
        self.optimizer.step()
        self.global_steps += 1
        if overflow:
            self.skipped_steps += 1
        else:
            self.lr_scheduler.last_batch_iteration += 1

    zero_optimization_stage = gradient_clipping = scheduler_params = scheduler_name = lambda self: 0
    gradient_accumulation_steps = lambda self: 1


engines = [DeepSpeedEngine(torch.nn.Linear(8, 4)) for _ in sys.argv[1:]]
for overflow in (True, False, False, True, True, False):
    for engine in engines:
        engine.backward(engine.module(torch.randn(5, 8)).square().mean())
        engine.step(overflow)
END
  export PYTHONPATH=$ROOT/share/probe
  ZS_PROBE=one "$PYTHON" -m zs_probe train.py actor
  run -0 zs-verify one
  [[ $output == *"verdict: consistent"*"counter 6, rate 3"*"steps_checked: 3"* ]] || complain "$output"
  ZS_PROBE=two "$PYTHON" -m zs_probe train.py actor critic
  run -3 zs-verify two
  [[ $output == *"not recorded: another optimizer (AdamW), of another model, is not recorded"* ]] || complain "$output"
  [ ! -e two/rank-0.refused ]
  verdict
}
