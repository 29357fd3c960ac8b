# SPDX-License-Identifier: Apache-2.0
# zs-train --profile writes traces in the form of PyTorch's profiler and does not change the training.
setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  unset ZS_REGISTRY
}

train() { "${launch[@]}" zs-train --model_name tiny --num_layers 1 --seq_length 16 --save_final false --output_dir runs "$@"; }
launch=()

# events FILE FILTER: what a filter of jq gives for the events of a trace.
events() { gzip -dc "$1" | jq -c ".traceEvents[] | $2"; }

@test "two ranks: a trace each, with steps, operations of the plan, collectives with bytes, memory; the same bits" {
  launch=(mpirun --oversubscribe -n 2)
  train --zero_stage 3 --bench_step 12 --run_name plain >plain.log
  train --zero_stage 3 --bench_step 12 --run_name profiled --profile --timing_warmup 2 >profiled.log 2>err
  [ ! -s err ] || complain "$(cat err)"
  assert_equal "$(grep ^state_digest profiled.log)" "$(grep ^state_digest plain.log)"
  grep -qx 'note: steps 3 to 5 are profiled, and take longer for it' profiled.log
  local folder
  folder=runs/$(zs-runs --registry runs --filter run_name=profiled --show run_id | tail -n 1)
  [ -z "$(find runs -name '*.json*' -not -path "$folder/*")" ] || complain "a trace where none was asked for"
  for rank in 0 1; do
    local trace=$folder/rank-$rank.pt.trace.json.gz
    # Holistic Trace Analysis finds the rank by this expression.
    gzip -dc "$trace" | grep -qE "\"rank\": +$rank\b" || complain "no rank $rank"
    assert_equal "$(gzip -dc "$trace" | jq .distributedInfo.world_size)" 2
    assert_equal "$(events "$trace" 'select(.name | startswith("ProfilerStep#")) | [.cat, .name]' | xargs)" \
      "[user_annotation,ProfilerStep#3] [user_annotation,ProfilerStep#4] [user_annotation,ProfilerStep#5]"
    events "$trace" 'select(.name == "zs::forward forward h.0 @0") | .cat' | grep -q user_annotation || complain "no unit"
    events "$trace" 'select(.cat == "cpu_op") | .name' | grep -q aten:: || complain "no operator"
    events "$trace" 'select(.name == "[memory]" and .args["Total Allocated"] > 0) | .ts' | grep -q . || complain "no memory"
    # What the collectives of three steps move: each rank sends half of it, as the records say.
    local moved sent
    moved=$(events "$trace" '.args.bytes // empty' | awk '{ sum += $1 } END { print sum / 2 / 3 }')
    sent=$(zs-parse "$folder" | grep -v '^#' | awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "comm_bytes") k = i; next } { print $k; exit }')
    assert_equal "$moved" "$sent"
    events "$trace" 'select(.args.bytes) | [.args["Collective name"], .args["Group size"], .args.dtype]' | sort -u >kinds
    grep -qx '\["all_gather",2,"Float"\]' kinds || complain "$(cat kinds)"
    grep -qx '\["reduce_scatter",2,"Float"\]' kinds || complain "$(cat kinds)"
  done
  run -0 --separate-stderr zs-trace "$folder"
  [ -z "$stderr" ] || complain "$stderr"
  assert_output --partial "zs::backward backward h.0 @0"
  assert_output --partial "zs::communication gather"
  verdict
}

@test "the steps that are asked for, in a folder of its own; what cannot be" {
  train --bench_step 6 --profile_steps 2-3 --profile_dir traces >log
  assert_equal "$(events traces/rank-0.pt.trace.json.gz '.name | select(startswith("ProfilerStep#"))' | xargs)" "ProfilerStep#2 ProfilerStep#3"
  train --bench_step 2 --profile --profile_dir short >log
  grep -qx 'note: steps 1 to 2 are profiled, and take longer for it' log
  [ -s short/rank-0.pt.trace.json.gz ]
  train --bench_step 2 --profile_steps 7 --profile_dir none >log
  grep -q 'note: profile_steps is 7, and the training ends at step 2: none is profiled' log
  [ ! -e none ]
  run -2 train --bench_step 2 --profile_steps 3-1
  assert_output "zs-train: --profile_steps: '3-1' is not a step or range of steps: 3, 10-12"
  run -2 train --bench_step 2 --profile_steps all
}

@test "a training that stops early leaves the profile of what it did" {
  zs-train --model_name tiny --num_layers 1 --seq_length 16 --output_dir runs --bench_step 100000 --profile_steps 2-100000 \
    --profile_dir cut --log_interval 1 >log &
  local pid=$! status=0
  await grep -q 'Step 4,' log
  kill -TERM $pid
  wait $pid || status=$?
  assert_equal $status 75
  [ "$(events cut/rank-0.pt.trace.json.gz '.name | select(startswith("ProfilerStep#"))' | head -n 1)" = '"ProfilerStep#2"' ]
}
