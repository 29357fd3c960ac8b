# SPDX-License-Identifier: Apache-2.0
# Sequences that ranks share (--sequence_parallel): one digest for each number of chunks, also in zs-verify and after a kill.
setup() {
  load helper
  warm
  load digests
  command -v mpirun >/dev/null || no_package openmpi-bin
  cd "$BATS_TEST_TMPDIR"
  export ZS_REGISTRY=$PWD/runs
  small=(--model_name tiny-llama --num_layers 2 --seq_length 64 --bench_step 4 --batch_size 2 --train_batch_size 4)
}

@test "sequences: 1, 2 and 4 ranks have one digest for 4 chunks, and other bits than whole sequences" {
  local stage experts="--model_name tiny-mixtral --num_layers 2 --seq_length 64 --bench_step 2 --batch_size 2 --train_batch_size 4 --router_aux_loss_coef 0.5"
  training whole 1 "${small[*]}"
  training chunks 1 "${small[*]} --sequence_chunks 4 --zero_stage 0"
  for stage in 1 3; do
    training chunks 2 "${small[*]} --sequence_parallel 2 --sequence_chunks 4 --zero_stage $stage"
    training chunks 4 "${small[*]} --sequence_parallel 4 --zero_stage $stage --activation_checkpointing"
  done
  training experts 1 "$experts --sequence_chunks 4 --zero_stage 0"
  training experts 2 "$experts --sequence_parallel 2 --sequence_chunks 4 --zero_stage 3 --activation_checkpointing"
  training experts 4 "$experts --sequence_parallel 4 --zero_stage 2 --deepcompile"
  run -0 one_digest_each
  [ "$(cut -d' ' -f2 <<<"$output" | sort -u | wc -l)" = 3 ]
  [ "$(trained_on 4 --sequence_parallel 2 --sequence_chunks 4 --zero_stage 2 --deepcompile)" = "$(sed -n 's/^chunks //p' <<<"$output")" ]
  grep -q '^run: sequence_parallel=2$' log
  grep -q '^run: sequence_chunks=4$' log
  # 4 sequences of 64 tokens, not as many for each rank.
  grep -q 'Step 4, .* tokens: 256 ' log
}

@test "sequences: in chunks experts have the auxiliary loss of whole sequences" {
  local whole
  small=(--model_name tiny-mixtral --num_layers 2 --seq_length 64 --bench_step 2 --batch_size 2 --train_batch_size 4 --router_aux_loss_coef 0.5)
  trained_on 1 --sequence_chunks 4 --zero_stage 0 >/dev/null
  whole=$(sed -n 's/^.*Step 1, Loss: \([^ ]*\) .* grad_norm: \([^ ]*\) .*/\1 \2/p' log)
  [ -n "$whole" ]
  trained_on 1 >/dev/null
  sed -n 's/^.*Step 1, Loss: \([^ ]*\) .* grad_norm: \([^ ]*\) .*/\1 \2/p' log | awk -v whole="$whole" '
    { split(whole, of, " "); for (i = 1; i <= 2; ++i) if (($i - of[i]) ^ 2 > (1e-4 * of[i]) ^ 2) exit 1; seen = 1 } END { exit !seen }'
}

@test "sequences: packed documents, a loss on some tokens and an evaluation have one digest and one loss" {
  local one
  for i in 1 2 3 4 5 6 7 8 9; do
    printf '{"text": "%s"}\n' "$(seq -s ' ' "$i" $((i * 3)))" "$(seq -s , "$i" $((i + 2)))"
  done >texts.jsonl
  packed=(--dataset texts.jsonl --text_key text --packing masked --eval)
  one=$(trained_on 1 "${packed[@]}" --sequence_chunks 4)
  loss=$(sed -n 's/^validation: //p' log)
  [ -n "$one" ]
  [ -n "$loss" ]
  [ "$(trained_on 2 "${packed[@]}" --sequence_parallel 2 --sequence_chunks 4)" = "$one" ]
  [ "$(sed -n 's/^validation: //p' log)" = "$loss" ]
}

@test "sequences: zs-verify finds them exact, whole ones within rounding, and a head in another's place" {
  local options="--num_layers 2 --seq_length 32 --sequence_parallel 2"
  verified exact 2 "$options --model_name tiny --iterations 2 --zero_stage 3"
  verified whole 2 "$options --model_name tiny --iterations 2 --zero_stage 1 --reference whole"
  verified sinks 2 "$options --model_name tiny-gpt-oss --iterations 3"
  verified heads 2 "$options --model_name tiny --iterations 2 --inject_fault 2:heads:h.1"
  run -0 verdicts
  [[ ${lines[0]} == "exact status 0; verdict: exact;"* ]]
  [[ ${lines[1]} == "whole status 0; verdict: equal;"* || ${lines[1]} == "whole status 0; verdict: within"* ]]
  [[ ${lines[2]} == "sinks status 0; verdict: exact;"* ]]
  [[ ${lines[3]} == "heads status 1; verdict: DIFFERENT;"*"step: 2;"*"stage: forward"* ]]
}

@test "sequences: a training that is killed goes on with another number of ranks that share them, as if nothing had been" {
  small=(--model_name tiny --num_layers 1 --seq_length 64 --bench_step 100 --batch_size 2 --train_batch_size 4 --save_steps 2)
  trained_on 1 --sequence_chunks 4 >whole
  [ -s whole ]
  export ZS_MARK=sequences-$BATS_SUITE_TMPDIR
  mpirun -np 4 --oversubscribe zs-train "${small[@]}" --sequence_parallel 4 --run_name cut --output_dir cut >cut.log 2>&1 &
  await compgen -G 'cut/2*/checkpoint_*' >/dev/null
  # shellcheck disable=SC2046
  kill -KILL $(marked zs-train | tail -n 1)
  wait || true
  [ ! -e cut/2*/final_checkpoint ]
  run -0 mpirun -np 2 --oversubscribe zs-train --resume cut --output_dir cut --sequence_parallel 2
  [[ $output == *"state_digest: $(cat whole)"* ]]
}

@test "sequences: what ranks cannot share is refused by name" {
  run -2 zs-train --model_name tiny --sequence_parallel 2
  [[ $output == *"--sequence_parallel: zero.sequence_parallel is 2, and does not divide the 1 ranks"* ]]
  run -2 zs-train --model_name tiny --sequence_chunks 8
  [[ $output == *"--sequence_chunks may be 1, 2, 4"* ]]
  run -2 zs-train --model_name tiny --seq_length 30 --sequence_chunks 4
  [[ $output == *"does not divide the 30 tokens of a sequence: choose another --seq_length"* ]]
  run -2 zs-train --model_name tiny-vit --sequence_chunks 2
  [[ $output == *"model tiny-vit takes images"* ]]
}
