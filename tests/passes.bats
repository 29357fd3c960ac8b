# SPDX-License-Identifier: Apache-2.0
# Passes over the plan of a step: none changes a bit, alone, together, when it starts later or after a resume. Each prints
# what it did.
# shellcheck disable=SC2154 # stderr is of bats' run
setup() {
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  SMALL=(--model_name tiny --num_layers 2 --seq_length 32 --output_dir runs --activation_checkpointing --zero_stage 3)
  TOGETHER=offload_parameters+selective_gather+prefetch+overlap_reduce+offload_adam_states+offload_activation
  two=(mpirun --oversubscribe -n 2)
}

digest() { sed -n 's/^state_digest: //p' "$1"; }

@test "passes: a schedule on two ranks changes no bit, measures before it goes by it, and goes on from the middle" {
  zs-train "${SMALL[@]}" --max_steps 8 --save_final false --zero_stage 0 --gradient_accumulation_steps 2 >plain
  schedule=(--passes "2:prefetch,5:$TOGETHER" --nvme_path nvme)
  "${two[@]}" zs-train "${SMALL[@]}" --max_steps 8 --save_final false "${schedule[@]}" --verbose_logging >log
  [ "$(digest plain)" = "$(digest log)" ]
  grep -qx 'note: passes from step 3 on: prefetch' log || complain "$(grep note: log)"
  grep -qx 'note: passes from step 6 on: offload_parameters, selective_gather, prefetch, overlap_reduce, offload_adam_states, offload_activation' log ||
    complain "$(grep note: log)"
  grep -q '^note: pass prefetch: ' log || complain "$(grep note: log)"
  # Where the profile says that all fits, nothing is moved out.
  grep -qx 'note: pass offload_adam_states: changes nothing' log || complain "$(grep note: log)"
  grep -q "^run: passes=0:none,2:prefetch,5:$TOGETHER\$" log || complain "$(grep ^run: log)"
  [ -z "$(ls -A nvme)" ]
  # Stopped behind step 6, inside the last entry.
  "${two[@]}" zs-train "${SMALL[@]}" --max_steps 6 "${schedule[@]}" --run_name part >part
  folder=$(dirname runs/*/final_checkpoint)
  zs-train --checkpoint "$folder/final_checkpoint" "${SMALL[@]}" --max_steps 8 --save_final false "${schedule[@]}" --gradient_accumulation_steps 2 >rest
  [ "$(digest rest)" = "$(digest plain)" ]
  verdict
}

@test "passes: what is moved out for a budget, by a profile, is said in the plan, the log, zs-verify and the report" {
  zs-train "${SMALL[@]}" --max_steps 4 --save_final false --deepcompile --zero_stage 2 >measured
  cp runs/*/profile.json .
  plan=("${SMALL[@]}" --zero_stage 2 --plan_profile profile.json --passes offload_adam_states,offload_activation --output_dir other)
  zs-train "${plan[@]}" --memory_budget 1k --print_plan >out
  grep -q '^# offload_adam_states: optimizer states moved out 0 -> 4; predicted .*peak .* -> ' out || complain "$(grep '^#' out)"
  grep -q '^# offload_activation: inputs moved out 0 -> 2' out || complain "$(grep '^#' out)"
  zs-train "${plan[@]}" --print_plan | grep -qx '# offload_adam_states: changes nothing' || complain "all of memory is too little"
  zs-train "${plan[@]}" --memory_budget 1k --max_steps 4 --save_final false >moved
  [ "$(digest moved)" = "$(digest measured)" ]
  grep -q '^run: pass_effects=offload_adam_states: optimizer states moved out 0 -> 4;.* | offload_activation: inputs moved out' moved || complain "$(grep ^run: moved)"
  zs-parse measured moved | zs-aggregate | zs-report >report.md
  grep -q 'effects of passes' report.md || complain "no line in the report"
  zs-verify --num_layers 2 --iterations 3 --zero_stage 3 --activation_checkpointing --passes "1:$TOGETHER" --nvme_path nvme --verbose_logging >verified
  grep -q '^verdict: exact' verified || complain "$(tail -n 3 verified)"
  verdict
}

@test "passes: what cannot be is refused with the reason" {
  refused() {
    run -2 --separate-stderr zs-train "${SMALL[@]}" --max_steps 1 "${@:2}"
    [[ $stderr == *"$1"* ]] || complain "$stderr"
  }
  refused "--passes: zero.passes: '5:' has no pass where one should be" --passes 5:
  refused "there is no pass 'offload_activations', did you mean 'offload_activation'?" --passes 3:offload_activations
  refused "there are optimizer states moved out already" --passes offload_adam_states,offload_adam_states_sync
  refused "leave out use_torch_adam" --passes offload_adam_states --use_torch_adam
  verdict
}
