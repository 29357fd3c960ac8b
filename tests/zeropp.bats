# SPDX-License-Identifier: Apache-2.0
# ZeRO++: a secondary partition within nodes changes no bit. Numbers sent as integers have verified rounding, train, and have
# bounded traffic.
# shellcheck disable=SC2154 # stderr is of bats' run
setup() {
  load helper
  warm
  load digests
  cd "$BATS_TEST_TMPDIR"
  SMALL=(--model_name tiny --num_layers 2 --seq_length 32 --output_dir runs --save_final false)
}

digest() { sed -n 's/^state_digest: //p' "$1"; }
value() { sed -n "s/^run: $1=//p" "$2"; }
# column NAME LOG: of the last step
column() { sed -n "s/^Epoch.* $1: \([^ ]*\).*/\1/p" "$2" | tail -n 1; }
# nodes PROGRAM...: four ranks, two on each of two hosts, as far as they know
nodes() { mpirun --oversubscribe -n 2 env SLURMD_NODENAME=node-a "$@" : -n 2 env SLURMD_NODENAME=node-b "$@"; }

@test "zeropp: a secondary partition changes no bit, and sends between nodes what its formula says" {
  zs-train "${SMALL[@]}" --max_steps 4 --zero_stage 0 --gradient_accumulation_steps 8 >plain
  for options in "" "--zero_hpz_partition_size 2" "--zero_hpz_partition_size 2 --deepcompile --memory_budget 1M" \
    "--zero_hpz_partition_size 2 --offload_device nvme --offload_param nvme --nvme_path nvme --activation_checkpointing"; do
    # shellcheck disable=SC2086
    nodes zs-train "${SMALL[@]}" --max_steps 4 --zero_stage 3 --gradient_accumulation_steps 2 $options >log
    [ "$(digest log)" = "$(digest plain)" ] || complain "$options: another digest"
    [[ $options == *deepcompile* ]] && continue # it gathers less often than the formula's step
    [ "$(column comm_bytes log)" = "$(value ideal_comm_bytes log)" ] || complain "$options: bytes"
    [ "$(column comm_bytes_between_nodes log)" = "$(value ideal_comm_bytes_between_nodes log)" ] || complain "$options: bytes between nodes"
    # In units of 4 P: A = 2 micro-steps gather 4 times and reduce twice; half of the ranks are elsewhere.
    expected=$((4 * $(value model.parameters log) * 6 / 2))
    [[ $options == *hpz* ]] && expected=$((4 * $(value model.parameters log) * 3 / 2))
    [ "$(column comm_bytes_between_nodes log)" = "$expected" ] || complain "$options: $(column comm_bytes_between_nodes log), not $expected"
  done
  verdict
}

@test "zeropp: zs-verify has a reference for what is rounded on its way, exact on every number of ranks" {
  for options in "--zero_hpz_partition_size 2" "--zero_quantized_weights" "--zero_quantized_gradients" "--method zeropp --zero_hpz_partition_size 2" \
    "--method zeropp --bf16 --rtol 0 --atol 0" "--method zeropp --gradient_accumulation_steps 2 --offload_device cpu --offload_param cpu --passes ALL"; do
    verified "${options// /}" 2 "--num_layers 1 --iterations 3 --zero_stage 3 $options"
  done
  verified one-rank 1 "--num_layers 1 --iterations 3 --method zeropp"
  run -0 all_exact 7
}

@test "zeropp: what travels as integers costs less than a tenth of the loss, and is a quarter of the bytes and less" {
  steps=(--max_steps 30 --batch_size 4 --log_interval 30)
  mpirun --oversubscribe -n 2 zs-train "${SMALL[@]}" "${steps[@]}" --zero_stage 3 >exact
  mpirun --oversubscribe -n 2 zs-train "${SMALL[@]}" "${steps[@]}" --method zeropp --self_test_every 10 >rounded
  zs-train "${SMALL[@]}" "${steps[@]}" --method zeropp --gradient_accumulation_steps 2 >alone
  [ "$(digest rounded)" = "$(digest alone)" ]
  [ "$(digest rounded)" != "$(digest exact)" ]
  awk -v a="$(sed -n 's/.*final_loss: \([^ ]*\).*/\1/p' rounded)" -v b="$(sed -n 's/.*final_loss: \([^ ]*\).*/\1/p' exact)" \
    'BEGIN { print a, b; exit !(a < 1.1 * b && a > 0.9 * b) }'
  (($(column comm_bytes rounded) * 3 < $(column comm_bytes exact)))
  [ "$(column comm_bytes rounded)" = "$(value ideal_comm_bytes rounded)" ]
  [ "$(value quantized_weights rounded)/$(value quantized_gradients rounded)" = true/true ]
}

@test "zeropp: the self-test stops a training whose integers have a wrong scale, and names the unit" {
  faulty=(mpirun --oversubscribe -n 2 zs-verify --num_layers 2 --iterations 4 --method zeropp)
  run -2 --separate-stderr "${faulty[@]}" --inject_fault 2:scale:h.1:0 --self_test_every 2
  [[ $stderr =~ "self-test: element "[0-9]+" of the parameters of h.1 came as "[-0-9.e]+" as integers, and as "[-0-9.e]+" exactly: rounding to integers explains a difference of "[0-9.e-]+" at most" ]] || complain "$stderr"
  # Between two self-tests the comparison sees it.
  run -1 --separate-stderr "${faulty[@]}" --inject_fault 2:scale:h.1:0
  [[ $output == *"verdict: DIFFERENT"*"step: 2"* ]] || complain "$output"
  run -2 --separate-stderr zs-verify --num_layers 1 --zero_stage 3 --inject_fault 2:scale:h.0
  [[ $stderr == *"nothing is sent as integers, so there is no scale: set --zero_quantized_weights"* ]] || complain "$stderr"
  verdict
}

@test "zeropp: what cannot be is refused, with the option" {
  refused() {
    run -2 --separate-stderr zs-train "${SMALL[@]}" --max_steps 1 "${@:2}"
    [[ $stderr == *"$1"* ]] || complain "${*:2}: $stderr"
  }
  refused "--zero_quantized_weights: zero.quantized_weights is true, and it is a part of stage 3: use --zero_stage 3" --zero_stage 2 --zero_quantized_weights
  refused "--zero_hpz_partition_size: zero.hpz_partition_size is 2, and does not divide the 1 ranks" --zero_hpz_partition_size 2
  refused "--self_test_every has no effect here: it needs --zero_quantized_weights or --zero_quantized_gradients" --self_test_every 5
  run -2 mpirun --oversubscribe -n 3 zs-train "${SMALL[@]}" --max_steps 1 --zero_quantized_gradients
  [[ $output == *"need a power of two of ranks"* ]] || complain "$output"
  zs-train "${SMALL[@]}" --max_steps 1 --zero_hpz_partition_size 1 >log # DeepSpeed's word for none
  verdict
}

@test "zeropp: DeepSpeed's file trains to the bits of the same options, and is written again" {
  echo '{"zero_optimization": {"stage": 3, "zero_quantized_weights": true, "zero_hpz_partition_size": 2}}' >ds.json
  both=(mpirun --oversubscribe -n 2 zs-train "${SMALL[@]}" --max_steps 3)
  "${both[@]}" --deepspeed_config "$ROOT/share/deepspeed/zeropp.json" --batch_size 2 >file 2>err
  "${both[@]}" --method zeropp --zero_hpz_partition_size 2 --bf16 --batch_size 2 --learning_rate 2e-4 --set training.beta2=0.98 >options
  [ "$(digest file)" = "$(digest options)" ]
  "${both[@]}" --zero_stage 3 --zero_quantized_weights --zero_hpz_partition_size 2 --print_deepspeed_config >printed
  [ "$(jq -c '.zero_optimization' printed)" = '{"stage":3,"zero_hpz_partition_size":2,"zero_quantized_weights":true}' ]
}
