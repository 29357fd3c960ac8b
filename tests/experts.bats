# SPDX-License-Identifier: Apache-2.0
# Experts that are distributed over ranks (--expert_parallel): the digest of undistributed experts, also in zs-verify and
# after a kill.
setup() {
  load helper
  warm
  load digests
  command -v mpirun >/dev/null || no_package openmpi-bin
  cd "$BATS_TEST_TMPDIR"
  export ZS_REGISTRY=$PWD/runs
  small=(--model_name tiny-mixtral --num_layers 2 --seq_length 32 --bench_step 4 --batch_size 2 --train_batch_size 8)
}

@test "experts: divided among 2 and 4 ranks they have the digest of whole ones, also where all tokens go to one rank's" {
  local stage same="--dataset $PWD/same --model_name tiny-mixtral --num_layers 2 --seq_length 32 --bench_step 3 --batch_size 2 --train_batch_size 8 --dropout 0"
  printf aaaaaaaaaaaaaaaa%.0s $(seq 64) >same
  training whole 1 "${small[*]} --zero_stage 0"
  for stage in 0 1 3; do
    training whole 2 "${small[*]} --expert_parallel 2 --zero_stage $stage"
    training whole 4 "${small[*]} --expert_parallel 2 --zero_stage $stage --activation_checkpointing"
  done
  training same 1 "$same"
  training same 4 "$same --expert_parallel 4 --zero_stage 3"
  training same 4 "$same --expert_parallel 2 --zero_stage 1"
  run -0 one_digest_each
  [ "${#lines[@]}" = 2 ]
  [ "$(trained_on 4 --expert_parallel 4 --zero_stage 2 --deepcompile)" = "$(sed -n 's/^whole //p' <<<"$output")" ]
  grep -q '^run: expert_parallel=4$' log
  grep -q 'Step 4, .* tokens: 256 ' log
}

@test "experts: an evaluation of divided ones has the loss of whole ones" {
  local loss
  trained_on 1 --eval >/dev/null
  loss=$(sed -n 's/^validation: //p' log)
  [ -n "$loss" ]
  trained_on 4 --eval --expert_parallel 2 --zero_stage 3 >/dev/null
  [ "$(sed -n 's/^validation: //p' log)" = "$loss" ]
}

@test "experts: zs-verify finds divided ones exact, and a planted bit of one" {
  local options="--num_layers 2 --seq_length 32 --iterations 3 --expert_parallel 2"
  verified mixtral 4 "$options --model_name tiny-mixtral --zero_stage 3"
  verified gpt-oss 4 "$options --model_name tiny-gpt-oss --zero_stage 3"
  run -0 all_exact 2
  verified mixtral 2 "$options --model_name tiny-mixtral --inject_fault 2:model.layers.1.block_sparse_moe.experts.2.w3.weight:7"
  verified gpt-oss 2 "$options --model_name tiny-gpt-oss --inject_fault 2:model.layers.1.mlp.experts.gate_up_proj[2]:7"
  run -0 verdicts
  [[ ${lines[0]} == "mixtral status 1; verdict: DIFFERENT;"*model.layers.1.block_sparse_moe.experts.2.w3.weight* ]]
  [[ ${lines[1]} == "gpt-oss status 1; verdict: DIFFERENT;"*'model.layers.1.mlp.experts.gate_up_proj[2]'* ]]
  # The same by the program itself.
  # shellcheck disable=SC2086
  run -1 mpirun -np 2 --oversubscribe zs-verify $options --model_name tiny-mixtral --inject_fault 2:model.layers.1.block_sparse_moe.experts.2.w3.weight:7
  [[ $output == *model.layers.1.block_sparse_moe.experts.2.w3.weight* ]]
}

@test "experts: a training that is killed goes on with another number of ranks that divide them, as if nothing had been" {
  small=(--model_name tiny-mixtral --num_layers 1 --seq_length 32 --bench_step 100 --batch_size 2 --train_batch_size 8 --save_steps 2)
  trained_on 1 >whole
  [ -s whole ]
  export ZS_MARK=experts-$BATS_SUITE_TMPDIR
  mpirun -np 4 --oversubscribe zs-train "${small[@]}" --expert_parallel 4 --zero_stage 1 --run_name cut --output_dir cut >cut.log 2>&1 &
  await compgen -G 'cut/2*/checkpoint_*' >/dev/null
  # shellcheck disable=SC2046
  kill -KILL $(marked zs-train | tail -n 1)
  wait || true
  [ ! -e cut/2*/final_checkpoint ]
  run -0 mpirun -np 2 --oversubscribe zs-train --resume cut --output_dir cut --expert_parallel 2 --zero_stage 3
  [[ $output == *"state_digest: $(cat whole)"* ]]
}

@test "experts: a run goes on with divided ones from whole ones, and the other way round, with one digest" {
  local whole
  small=(--model_name tiny-mixtral --num_layers 1 --seq_length 32 --batch_size 2 --train_batch_size 8)
  whole=$(trained_on 1 --bench_step 4)
  [ -n "$whole" ]
  trained_on 1 --bench_step 2 --zero_stage 0 --run_name first --output_dir first >/dev/null
  run -0 mpirun -np 4 --oversubscribe zs-train --resume_from first/*/final_checkpoint "${small[@]}" --bench_step 4 --expert_parallel 4 --zero_stage 2
  [[ $output == *"state_digest: $whole"* ]]
  trained_on 2 --bench_step 2 --zero_stage 1 --expert_parallel 2 --run_name second --output_dir second >/dev/null
  run -0 zs-train --resume_from second/*/final_checkpoint "${small[@]}" --bench_step 4
  [[ $output == *"state_digest: $whole"* ]]
}

@test "experts: a checkpoint of divided ones converts to the same as one of whole ones, and divided ones go on from each form" {
  local whole form
  small=(--model_name tiny-mixtral --num_layers 1 --seq_length 32 --batch_size 2 --train_batch_size 8)
  whole=$(trained_on 1 --bench_step 4)
  trained_on 1 --bench_step 2 --run_name whole --output_dir whole >/dev/null
  trained_on 4 --bench_step 2 --expert_parallel 4 --zero_stage 3 --run_name parts --output_dir parts >/dev/null
  for form in hf dcp universal; do
    zs-checkpoint convert whole/*/final_checkpoint "whole-$form" --to "$form"
    zs-checkpoint convert parts/*/final_checkpoint "parts-$form" --to "$form"
    run -0 zs-checkpoint diff "whole-$form" "parts-$form"
    [ $form = hf ] || [ "$(trained_on 2 --bench_step 4 --resume_from "parts-$form" --expert_parallel 2)" = "$whole" ]
  done
}

@test "experts: those that files stack (gpt-oss) are divided too: one digest, resumed, converted" {
  local whole form
  small=(--model_name tiny-gpt-oss --num_layers 2 --seq_length 32 --batch_size 2 --train_batch_size 8)
  whole=$(trained_on 1 --bench_step 4)
  [ -n "$whole" ]
  [ "$(trained_on 4 --bench_step 4 --expert_parallel 2 --zero_stage 3)" = "$whole" ]
  trained_on 1 --bench_step 2 --run_name whole --output_dir whole --save_pretrained whole-own >/dev/null
  trained_on 4 --bench_step 2 --expert_parallel 4 --zero_stage 2 --run_name parts --output_dir parts --save_pretrained parts-own >/dev/null
  run -0 mpirun -np 2 --oversubscribe zs-train --resume_from whole/*/final_checkpoint "${small[@]}" --bench_step 4 --expert_parallel 2
  [[ $output == *"state_digest: $whole"* ]]
  run -0 zs-train --resume_from parts/*/final_checkpoint "${small[@]}" --bench_step 4
  [[ $output == *"state_digest: $whole"* ]]
  for form in hf dcp; do
    zs-checkpoint convert whole/*/final_checkpoint "whole-$form" --to "$form"
    zs-checkpoint convert parts/*/final_checkpoint "parts-$form" --to "$form"
    run -0 zs-checkpoint diff "whole-$form" "parts-$form"
  done
  run -0 zs-checkpoint diff whole-hf parts-own
  run -0 zs-checkpoint show parts-hf --tensors
  [[ $output == *"model.layers.0.mlp.experts.gate_up_proj "*"[4, "* ]]
  [ "$(trained_on 2 --bench_step 4 --resume_from parts-dcp --expert_parallel 2)" = "$whole" ]
}

@test "experts: what ranks cannot divide is refused by name" {
  run -2 zs-train --model_name tiny-mixtral --expert_parallel 2
  [[ $output == *"--expert_parallel: zero.expert_parallel is 2, and does not divide the 1 ranks"* ]]
  run -2 zs-train --model_name tiny-llama --expert_parallel 2
  [[ $output == *"--expert_parallel has no effect here: it needs a model with experts; leave it out"* ]]
  run -2 mpirun -np 3 --oversubscribe zs-train --model_name tiny-mixtral --expert_parallel 3
  [[ $output == *"does not divide the 4 experts of a layer"* ]]
  run -2 mpirun -np 2 --oversubscribe zs-train --model_name tiny-mixtral --expert_parallel 2 --batch_size 1 --train_batch_size 3
  [[ $output == *"experts of 2 ranks do not divide"* ]]
  run -2 mpirun -np 2 --oversubscribe zs-train --model_name tiny-mixtral --expert_parallel 2 --lora_rank 2 --lora_targets q_proj
  [[ $output == *"leave out adapters and --freeze"* ]]
  run -2 mpirun -np 2 --oversubscribe zs-train --model_name tiny-mixtral --expert_parallel 2 --save_gradient_norms
  [[ $output == *"experts are divided among ranks: leave it out"* ]]
}
