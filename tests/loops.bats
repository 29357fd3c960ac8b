# SPDX-License-Identifier: Apache-2.0
# Trainings of tests/loops.py, as pages of PyTorch write them: each recording is consistent, and that of the same with a mistake is not.
setup_file() { load helper && warm_up; }
teardown_file() { cool_down; }

setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  cd "$BATS_TEST_TMPDIR"
  warm_python
  export PYTHONPATH=$ROOT/share/probe OMP_NUM_THREADS=1
}

# recorded NAME...
recorded() { ZS_PROBE=unused "$PYTHON" -m zs_probe "$ROOT/tests/loops.py" "$@" || complain "cannot train: $*"; }
# said STATUS NAME...: zs-verify of each recording ends with that status.
said() {
  local name status
  for name in "${@:2}"; do
    status=0
    zs-verify "$name" >"$name.said" || status=$?
    ((status == $1)) || complain "$name: status $status: $(cat "$name.said")"
  done
}
# has MODULE...: skips where PyTorch has no such module.
has() {
  printf 'import %s\n' "$@" >has.py
  "$PYTHON" has.py 2>/dev/null || skip "needs $*"
}

@test "rates: schedules one after another, several at once, of groups with a common floor, and a user's own class" {
  recorded {sequential,chained,two,multiplied,averaged,cyclic,restarts,derived} {sequential,chained,two,multiplied,cyclic,restarts}-bug
  said 0 sequential chained two multiplied averaged cyclic restarts derived
  said 1 {sequential,chained,two,multiplied,cyclic,restarts}-bug
  grep -qE "^headline: step 4: lr of group 0: is .*, SequentialLR says .* at its count of 3" sequential-bug.said
  grep -q "^note rate: several schedules move one rate (ExponentialLR with MultiStepLR)" two.said
  verdict
}

@test "pipelining: the forward by which a stage learns its shapes is no micro-batch" {
  has torch.distributed.pipelining
  recorded pipeline pipeline-bug
  said 0 pipeline
  said 1 pipeline-bug
  grep -q "^headline: step 2: gradient of 0.weight: x 2" pipeline-bug.said
  verdict
}

@test "pipelining: stages that count their layers by themselves have parameters of their own" {
  has torch.distributed.pipelining
  recorded {alike,virtual}{,-bug}
  said 0 alike virtual
  said 1 {alike,virtual}-bug
  for name in alike virtual; do
    grep -q "^headline: step 2: gradient of stage1.0.weight: x 2" $name-bug.said || complain "$name: $(head -n 2 $name-bug.said)"
  done
  verdict
}

@test "a scaler that leaves out steps: they are none; a step of a fused optimizer that is left out too" {
  has torch.amp.grad_scaler
  recorded {scaled,fused,scaled_by_another}{,-bug}
  said 0 scaled fused scaled_by_another
  said 1 {scaled,fused,scaled_by_another}-bug
  for name in {scaled,fused,scaled_by_another}-bug; do
    grep -qE "^headline: step [4-9]: gradient of 0.weight: x 2 of the mean" $name.said || complain "$(head -n 2 $name.said)"
  done
  verdict
}

@test "gradients that are set to zero before an update: known where it can be, and named where it cannot" {
  recorded finite finite-bug sharpness sharpness-bug by_hand by_hand-bug search adversaries accumulated accumulated-bug summed
  said 0 finite sharpness by_hand accumulated summed
  said 1 finite-bug sharpness-bug by_hand-bug accumulated-bug
  said 3 search adversaries
  grep -q "^headline: step 4: gradient of 0.weight and 3 more: micro-batch 1 is missing, micro-batch 2 is missing" accumulated-bug.said || complain "$(head -n 2 accumulated-bug.said)"
  grep -q "set to zero before the update: right for another loss or a step that is left out, wrong where they belong to the step" adversaries.said
  ! grep -q "set to zero" search.said || complain "a closure that is called again drops nothing"
  verdict
}

@test "a model that is called twice for one loss reads no sample again" {
  recorded pairs pairs-bug
  said 0 pairs
  said 1 pairs-bug
  grep -q "^headline: step 3: batch: micro-batch 2 of rank 0 has the samples of micro-batch 1 of rank 0" pairs-bug.said
  verdict
}

@test "a sparse gradient is not recorded, and all else is checked; complex numbers are checked by their real parts" {
  recorded sparse sparse-bug complex_numbers complex_numbers-bug
  said 3 sparse
  said 0 complex_numbers
  said 1 sparse-bug complex_numbers-bug
  grep -q "^not recorded: grad of 0.weight is not recorded: it is sparse" sparse.said
  grep -qE "^holds: .*gradient 12, .*update 12, " sparse.said || complain "$(grep holds sparse.said)"
  grep -q "^headline: step 1: gradient of 1.bias: x 2 of the mean" sparse-bug.said
  verdict
}

@test "experts over a mesh of their own: each rank has samples of its own" {
  has torch.distributed.device_mesh torch.distributed.tensor
  recorded experts experts-bug
  said 0 experts
  said 1 experts-bug
  grep -q "^headline: step 2: gradient of dense.weight and 1 more: x 2" experts-bug.said || complain "$(head -n 2 experts-bug.said)"
  verdict
}

@test "ZeroRedundancyOptimizer: each rank has the state of its share, and all parameters move" {
  has torch.distributed.optim.zero_redundancy_optimizer
  recorded shares shares-bug
  said 0 shares
  said 1 shares-bug
  grep -q "^layout: DDP with ZeroRedundancyOptimizer, 2 ranks" shares.said || complain "$(cat shares.said)"
  grep -q "^headline: step 2: gradient of 2.bias: x 2" shares-bug.said || complain "$(head -n 2 shares-bug.said)"
  verdict
}
