# SPDX-License-Identifier: Apache-2.0
# Experts that ranks divide (--expert_parallel): the digest of whole ones, beside LibTorch, and after a kill.
setup() {
  load helper
  command -v mpirun >/dev/null || no_package openmpi-bin
  cd "$BATS_TEST_TMPDIR"
  export ZS_REGISTRY=$PWD/runs
  small=(--model_name tiny-mixtral --num_layers 2 --seq_length 32 --bench_step 4 --batch_size 2 --train_batch_size 8)
}

@test "experts: divided among 2 and 4 ranks they have the digest of whole ones" {
  local one stage
  one=$(trained_on 1 --zero_stage 0)
  [ -n "$one" ]
  for stage in 0 1 3; do
    [ "$(trained_on 2 --expert_parallel 2 --zero_stage "$stage")" = "$one" ]
    [ "$(trained_on 4 --expert_parallel 2 --zero_stage "$stage" --activation_checkpointing)" = "$one" ]
  done
  [ "$(trained_on 4 --expert_parallel 4 --zero_stage 2 --deepcompile)" = "$one" ]
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
  local options=(--model_name tiny-mixtral --num_layers 2 --seq_length 32 --iterations 3 --expert_parallel 2)
  run -0 mpirun -np 4 --oversubscribe zs-verify "${options[@]}" --zero_stage 3
  [[ $output == *"verdict: exact"* ]]
  run -1 mpirun -np 2 --oversubscribe zs-verify "${options[@]}" --inject_fault 2:model.layers.1.block_sparse_moe.experts.2.w3.weight:7
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

@test "experts: what ranks cannot divide is refused by name" {
  run -2 zs-train --model_name tiny-mixtral --expert_parallel 2
  [[ $output == *"--expert_parallel: zero.expert_parallel is 2, and does not divide the 1 ranks"* ]]
  run -2 zs-train --model_name tiny-llama --expert_parallel 2
  [[ $output == *"--expert_parallel has no effect here: it needs a model with experts; leave it out"* ]]
  run -2 mpirun -np 2 --oversubscribe zs-train --model_name tiny-gpt-oss --expert_parallel 2
  [[ $output == *"the experts of model tiny-gpt-oss are stacked in one tensor, which zs does not divide"* ]]
  run -2 mpirun -np 3 --oversubscribe zs-train --model_name tiny-mixtral --expert_parallel 3
  [[ $output == *"does not divide the 4 experts of a layer"* ]]
  run -2 mpirun -np 2 --oversubscribe zs-train --model_name tiny-mixtral --expert_parallel 2 --batch_size 1 --train_batch_size 3
  [[ $output == *"experts of 2 ranks do not divide"* ]]
  run -2 mpirun -np 2 --oversubscribe zs-train --model_name tiny-mixtral --expert_parallel 2 --lora_rank 2 --lora_targets q_proj
  [[ $output == *"leave out adapters and --freeze"* ]]
  run -2 mpirun -np 2 --oversubscribe zs-train --model_name tiny-mixtral --expert_parallel 2 --save_gradient_norms
  [[ $output == *"experts are divided among ranks: leave it out"* ]]
}
