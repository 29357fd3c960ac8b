# SPDX-License-Identifier: Apache-2.0
# slurm/batch.sbatch without Slurm: what it refuses, and what it makes of a condition that fails.
setup() {
  load helper
  mkdir "$BATS_TEST_TMPDIR/a folder" && cd "$BATS_TEST_TMPDIR/a folder"
}

batch() { bash "$ROOT/slurm/batch.sbatch" "$@"; }

# A zs-train that prints a log; at stage 3 it dies with 42 before its first step.
fake_trainer() {
  mkdir bin
  ln -s "$BUILD"/zs-* bin/
  rm -f bin/zs-train
  cat >bin/zs-train <<'END'
#!/usr/bin/env bash
if [[ $1 == --version ]]; then echo "zs-train 0"; exit; fi
if [[ "$*" == *"--zero_stage 3"* ]]; then echo "zs-train: out of memory" >&2; exit 42; fi
((${OMPI_COMM_WORLD_RANK:-0} == 0)) || exit 0
for step in 10 20 30; do
  echo "Epoch 1, Step $step, Loss: 2.$((99 - step)) sync: True time: 0.1 alloc_mem: 1000000 peak_mem: 2000000"
done
echo "state_digest: 0123456789abcdef0123456789abcdef"
END
  chmod +x bin/zs-train
  export BUILD=$PWD/bin
}

@test "batch: a mistyped option, a second set and an unknown set are refused with status 2" {
  run -2 --separate-stderr batch --hlep
  [[ $stderr == "batch.sbatch: unknown option '--hlep'"* ]]
  run -2 --separate-stderr batch minimal_test full_comparison
  [[ $stderr == "batch.sbatch: one set at a time"* ]]
  run -2 --separate-stderr batch minimal_tset
  [[ $stderr == *minimal_test* ]]
  ZS_RANKS=two run -2 --separate-stderr batch minimal_test
  [[ $stderr == *"ZS_RANKS: 'two'"* ]]
  [ ! -e results ]
}

@test "batch: a condition that fails is FAILED, does not stop the others, and makes the status 1" {
  fake_trainer
  run -1 --separate-stderr batch
  [[ ${lines[-1]} == "report: results/results_"*/report.html ]]
  cd results/results_*
  for file in experiment_log.txt metadata.json summary.h5 report.md report.html loss_comparison.png \
    iteration_time_comparison.png memory_usage_comparison.png; do
    [ -s $file ] || complain "no $file"
  done
  [ "$(jq -c '[.conditions[].exit_code]' metadata.json)" = "[0,0,42,0,0,42]" ]
  [ "$(jq -r '.condition_order | length' metadata.json)" = 6 ]
  for name in $(jq -r '.condition_order[]' metadata.json); do
    grep -qF -- "$(cat $name.log)" "${name}_detailed.log" || complain "${name}_detailed.log lacks what $name.log has"
  done
  [ "$(grep -c '| FAILED | 42 |' experiment_log.txt)" = 2 ]
  [ "$(grep -c '| SUCCESS | 0 |' experiment_log.txt)" = 4 ]
  grep -q FAILED report.md
  grep -q FAILED report.html
  verdict
}

@test "batch: options after -- reach every training, as they were typed" {
  fake_trainer
  run -0 batch minimal_test -- --dataset "a b.txt"
  [ "$(jq '[.conditions[].command | test("--dataset a\\\\ b.txt$")] | all' results/*/metadata.json)" = true ]
}

@test "batch: a signal stops the running condition and no rank stays" {
  fake_trainer
  sed -i 's/^for step/echo $$ >>pids; sleep 60; &/' bin/zs-train
  bash "$ROOT/slurm/batch.sbatch" minimal_test 2>err &
  batch=$!
  for _ in {1..100}; do [ -s pids ] && break || sleep 0.1; done
  kill -TERM $batch
  wait $batch && status=0 || status=$?
  [ $status = 143 ]
  ! kill -0 $(cat pids) 2>/dev/null
}

@test "batch: on 2 ranks, for real: the conditions end with one state digest" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built"
  run -0 --separate-stderr batch full_comparison -- --num_layers 2 --seq_length 32 --max_steps 8 --log_interval 2
  [ "$(cat results/*/z*.log | grep -oE 'state_digest: [0-9a-f]{32}' | sort -u | wc -l)" = 1 ]
}
