# SPDX-License-Identifier: Apache-2.0
# The JSON output of every tool follows its schema in share/schemas.
setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  unset ZS_REGISTRY
}

# described NAME FILE: whether the file is as the schema of that name says.
described() { /usr/bin/python3 "$ROOT/tests/schema.py" "$ROOT/share/schemas/$1.json" "$2" || complain "$2 is not as $1.json says"; }

# records RUN REVISION LOSS...: a run's log of as many steps.
records() {
  local run=$1 revision=$2 step=0
  shift 2
  printf '#zs-metrics 1\n#@ %s revision=%s\n#@ %s exit_code=0\nrun\tstep\tloss\titeration_time\tpeak_mem\n' "$run" "$revision" "$run"
  for loss in "$@"; do printf '%s\t%s\t%s\t%s\t%s\n' "$run" $((step += 1)) "$loss" 0.$((step + 10)) $((1000 + step)); done
}

@test "summaries, records, runs, traces, comparisons of revisions" {
  { records a1 a 3 2 1.5; records a2 a 3 2 1.25; records b1 b 3 nan 1; records b2 b 3 2 inf; } >all.tsv
  zs-parse --format jsonl "$ROOT/tests/cases/zs-parse/dialect-csv/a.csv" -o records.jsonl || true
  described zs-parse records.jsonl
  zs-aggregate --format json all.tsv -o summary.json || true
  described zs-aggregate summary.json
  zs-aggregate --by revision all.tsv -o s.h5 || true
  zs-report --kind revision s.h5 -o revision.json || true
  described zs-report-revision revision.json
  [ "$(jq -c '.revisions[0] | [.final_loss.runs, .final_loss.mean, .runs[0].steps, .runs[0].losses, .runs[1].losses, .runs[0].peak_mems]' revision.json)" = \
    '[2,1.375,[1,2,3],[3,2,1.5],[3,2,1.25],[1001,1002,1003]]' ] || complain "$(jq -c '.revisions[0]' revision.json)"
  zs-runs add run_name=one model.name=tiny final_valid_loss=nan eval=true
  zs-runs --format json >runs.json
  described zs-runs runs.json
  zs-runs show one --format json >run.json
  described zs-runs-show run.json
  cp "$ROOT/tests/fuzz/trace/small.json" t.json
  zs-trace --format json t.json -o trace.out
  described zs-trace trace.out
  zs-trace --format json --against t.json t.json -o difference.out
  described zs-trace difference.out
  verdict
}

@test "a training's results, gradients, and the verdict on two trainings" {
  zs-train --model_name tiny --num_layers 1 --seq_length 16 --bench_step 2 --save_steps 1 --run_name a --results results.json >log
  described zs-train-results results.json
  zs-train --model_name tiny --num_layers 1 --seq_length 16 --bench_step 3 --run_name p --deepcompile >log
  zs-plan saved_models/*/profile.json --nodes 1,2 --format json >plan.json || complain "no plan"
  described zs-plan plan.json
  zs-report --gradients a -o gradients.json
  described zs-report-gradients gradients.json
  zs-verify --format json --model_name tiny --num_layers 1 --seq_length 16 --iterations 2 >verify.json
  described zs-verify verify.json
  verdict
}

@test "the check itself: what is missing, of another type, or not described is found" {
  local schema=$ROOT/share/schemas/zs-train-results.json
  echo '{"zero1": {"final_loss": "low", "train_losses": [], "epoch_duration": 1, "peak_memory_gb": 1, "throughput": 1, "steps": 1.5, "more": 1}}' >x.json
  run -1 /usr/bin/python3 "$ROOT/tests/schema.py" "$schema" x.json
  assert_line "\$.zero1: has no state_digest"
  assert_line "\$.zero1.final_loss: 'low' is no number or null"
  assert_line "\$.zero1.steps: 1.5 is no integer"
  assert_line "\$.zero1: more is not described"
  echo '{"zero1": NaN}' >x.json
  run ! /usr/bin/python3 "$ROOT/tests/schema.py" "$schema" x.json
}
