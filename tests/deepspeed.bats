# SPDX-License-Identifier: Apache-2.0
# DeepSpeed's configuration files: zs reads them, says what it does with each key, and writes them. Methods and their results.
# shellcheck disable=SC2154 # stderr is of bats' run
setup() {
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  FILES=$ROOT/share/deepspeed
  SMALL=(--model_name tiny --num_layers 1 --seq_length 32 --max_steps 6 --save_final false --output_dir runs)
}

value() { sed -n "s/^run: $1=//p" "${2:-log}"; }
digest() { sed -n 's/^state_digest: //p' "${1:-log}"; }

@test "deepspeed: three files as people have them train, each to the bits of the same options" {
  zs-train "${SMALL[@]}" --deepspeed_config "$FILES/zero2_offload.json" --train_batch_size 4 >log 2>err
  zs-train "${SMALL[@]}" --bf16 --batch_size 2 --gradient_accumulation_steps 2 --zero_stage 0 --learning_rate 6e-4 --weight_decay 0.1 \
    --set training.beta2=0.95 --scheduler WarmupLR --lr_warmup_steps 4 >plain
  [ "$(digest)" = "$(digest plain)" ]
  [ "$(value zero_stage)/$(value offload)/$(value batch_size)/$(value gradient_accumulation_steps)/$(value dtype)" = 2/cpu/2/2/bfloat16 ]
  grep -q "without effect here: .*zero_optimization.allgather_bucket_size.*zero_optimization.reduce_bucket_size" err
  grep -q "^note: .*zero_optimization.overlap_comm" log # in the log too

  mpirun --oversubscribe -n 2 zs-train "${SMALL[@]}" --deepspeed_config "$FILES/zero3.json" --batch_size 2 --learning_rate 0.002 >log 2>err
  zs-train "${SMALL[@]}" --batch_size 2 --gradient_accumulation_steps 2 --learning_rate 0.002 --zero_stage 0 >plain
  [ "$(digest)" = "$(digest plain)" ]
  [ "$(value zero_stage)/$(value world_size)" = 3/2 ]

  zs-train "${SMALL[@]}" --deepspeed_config "$FILES/zero3_nvme.json" >log 2>err
  zs-train "${SMALL[@]}" --gradient_accumulation_steps 8 --max_grad_norm 0.5 --zero_stage 1 --scheduler WarmupDecayLR --lr_warmup_steps 3 \
    --set training.warmup_type=log >plain
  [ "$(digest)" = "$(digest plain)" ]
  [ "$(value offload)/$(value offload_param)/$(value gradient_accumulation_steps)" = nvme/nvme/8 ]
  [ -z "$(ls nvme)" ]
}

@test "deepspeed: what it prints for DeepSpeed is the same training when it is read again" {
  for options in "--zero_stage 3 --bf16 --gradient_accumulation_steps 2" \
    "--zero_stage 1 --scheduler WarmupCosineLR --lr_warmup_steps 2 --learning_rate 0.002" \
    "--zero_stage 2 --fp16 --set training.loss_scale=64 --weight_decay 0.3 --offload_device cpu" \
    "--zero_stage 2 --amp --max_grad_norm 0" "--zero_stage 3 --offload_device cpu --offload_ratio 0.5"; do
    # shellcheck disable=SC2086
    {
      zs-train "${SMALL[@]}" $options --print_deepspeed_config >ds.json
      zs-train "${SMALL[@]}" $options >one
    }
    jq -e .train_batch_size ds.json >/dev/null
    zs-train "${SMALL[@]}" --deepspeed_config ds.json >two 2>err
    [ "$(digest one)" = "$(digest two)" ] || complain "$options"
    zs-train "${SMALL[@]}" --deepspeed_config ds.json --print_deepspeed_config 2>/dev/null | cmp - ds.json || complain "$options: printed again"
  done
  run -0 --separate-stderr zs-train "${SMALL[@]}" --scheduler cosine --lr_warmup_steps 3 --print_deepspeed_config
  [[ $stderr == *'the program must see to the schedule'*'get_scheduler("cosine", num_warmup_steps=3)'* ]] || complain "$stderr"
  verdict
}

@test "deepspeed: a key that is wrong, and a word against it, are refused with line and path" {
  refused() {
    run -2 --separate-stderr zs-train "${SMALL[@]}" --deepspeed_config ds.json "${@:2}"
    [ "$stderr" = "zs-train: $1" ] || complain "$stderr"
  }
  printf '{\n  "train_micro_batch_size_per_gpu": 2,\n  "gradient_cliping": 1\n}\n' >ds.json
  refused "ds.json:3: gradient_cliping: DeepSpeed has no such key, did you mean 'gradient_clipping'?"
  printf '{"train_micro_batch_size_per_gpu": 2}\n' >ds.json
  refused "ds.json:1: train_micro_batch_size_per_gpu says 2, and --batch_size says training.batch_size is 3: leave one of them out" --batch_size 3
  printf '{"train_batch_size": 9, "train_micro_batch_size_per_gpu": 2}\n' >ds.json
  refused "ds.json:1: training.train_batch_size is 9, and batch_size x gradient_accumulation_steps x ranks is 2 x ? x 1: no whole numbers make them equal"
  printf '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}\n' >ds.json
  refused "ds.json:1: training.train_batch_size is 8, and batch_size x gradient_accumulation_steps x ranks is 2 x 2 x 1: no whole numbers make them equal"
  rm ds.json
  refused "ds.json: No such file or directory"
  verdict
}

@test "deepspeed: a run keeps what the file came to, and goes on without it" {
  printf '{"train_batch_size": 4, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2}}\n' >ds.json
  zs-train "${SMALL[@]}" --deepspeed_config ds.json --save_steps 3 >log
  rm ds.json
  run=$(basename runs/2*)
  rm -rf runs/"$run"/checkpoint_6
  mpirun --oversubscribe -n 2 zs-train --resume "$run" --registry runs >again
  [ "$(digest)" = "$(digest again)" ]
  run -2 --separate-stderr zs-train --resume "$run" --registry runs --deepspeed_config ds.json
  [[ $stderr == *"--resume takes the run's own configuration"* ]]
}

@test "deepspeed: methods are stages and backends, and leave their results side by side" {
  for method in single ddp zero1 zero2 zero3 single_gpu_offload; do
    zs-train "${SMALL[@]}" --method $method --results results.json --local_rank 0 >"$method" || complain "$method"
  done
  [ "$(jq -r 'keys_unsorted | join(" ")' results.json)" = "single ddp zero1 zero2 zero3 single_gpu_offload" ]
  [ "$(jq -r '[.[].state_digest] | unique | length' results.json)" = 1 ]
  jq -e 'all(.[]; .train_losses[-1] > 1 and .epoch_duration > 0 and .peak_memory_gb > 0 and .throughput > 0 and .final_loss > 1)' results.json
  [ "$(value zero_stage single_gpu_offload)/$(value offload single_gpu_offload)" = 2/cpu ]
  zs-train "${SMALL[@]}" --backend singlegpu --model tiny --results results.json >single # the same name again takes its place
  [ "$(jq length results.json)" = 6 ]
  for kind in memory throughput duration; do # the results draw, by method
    zs-plot $kind results.json -o $kind.svg
    grep -q '>zero3<' $kind.svg || complain "$kind"
  done
  zs-report results.json -o results.md
  grep -q '^| .*samples (k\?/s) | an epoch' results.md || complain "$(grep '^| condition' results.md)"
  run -2 --separate-stderr zs-train "${SMALL[@]}" --method zero2 --zero_stage 3
  [[ $stderr == *"the method zero2 says 2, and --zero_stage says zero.stage is 3"* ]]
  run -2 mpirun --oversubscribe -n 2 zs-train "${SMALL[@]}" --method single_gpu_offload
  [[ $output == *"single_gpu_offload is for one rank"* ]]
  echo '[1]' >list.json
  run -2 --separate-stderr zs-train "${SMALL[@]}" --results list.json
  [[ $stderr == *"list.json: is not a JSON object"* ]]
  zs-train "${SMALL[@]}" --zero_stage 3 --passes ALL --print_plan | grep -q 'passes: selective_gather prefetch overlap_reduce'
  verdict
}

@test "deepspeed: a step that float16's loss scaling skips moves neither parameters nor the learning rate on" {
  zs-train "${SMALL[@]}" --fp16 --set training.initial_scale_power=20 training.hysteresis=1 --scheduler linear --max_steps 12 --log_interval 1 >log
  sed -n 's/.*learning_rate: \([^ ]*\).*skipped: \([0-9]*\)$/\1 \2/p' log >steps
  [ "$(wc -l <steps)" = 12 ]
  skipped=$(tail -n 1 steps | cut -d' ' -f2)
  ((skipped > 0 && skipped < 12))
  # The rate falls with each update, and with nothing else.
  awk 'NR > 1 { same = $1 == rate; if (same != was) exit 1 } { was = $2 > before; before = $2; rate = $1 }' steps
}
