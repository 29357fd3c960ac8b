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

# said STATUS NAME: records it; zs-verify ends with that status.
said() {
  ZS_PROBE=$2 "$PYTHON" -m zs_probe "$ROOT/tests/loops.py" "$2" || complain "$2: cannot train"
  local status=0
  zs-verify "$2" >"$2.said" || status=$?
  ((status == $1)) || complain "$2: status $status: $(cat "$2.said")"
}

@test "rates: schedules one after another, several at once, of groups with a common floor, and a user's own class" {
  local name
  for name in sequential chained two multiplied averaged cyclic restarts derived; do said 0 $name; done
  for name in sequential chained two multiplied cyclic restarts; do said 1 $name-bug; done
  grep -qE "^headline: step 4: lr of group 0: is .*, SequentialLR says .* at its count of 3" sequential-bug.said
  grep -q "^note rate: several schedules move one rate (ExponentialLR with MultiStepLR)" two.said
  verdict
}
