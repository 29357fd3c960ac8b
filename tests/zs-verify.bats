# SPDX-License-Identifier: Apache-2.0
# zs-verify on real MPI ranks: exact where it must be, a planted fault found at its place, bad input rejected.
# lib/training/verify/*_test.cpp runs through stages, ranks and 100 faults in one process.
setup() {
  load helper
  warm
  load digests
  cd "$BATS_TEST_TMPDIR"
  SMALL="--num_layers 1 --seq_length 16 --iterations 4 --dropout 0.1"
}

# verify RANKS OPTION...: zs-verify on so many ranks.
verify() {
  local ranks=$1
  shift
  # shellcheck disable=SC2086
  timeout "$HANG" mpirun --oversubscribe --bind-to none -n "$ranks" zs-verify $SMALL "$@"
}

value() { sed -n "s/^$1: //p"; }

# reseal FOLDER: the checksums of a checkpoint whose files were changed on purpose.
reseal() {
  (cd "$1" && rm -f SHA256SUMS && find . -type f -printf '%P\0' | xargs -0 sha256sum >"$BATS_TEST_TMPDIR/sums" && mv "$BATS_TEST_TMPDIR/sums" SHA256SUMS)
}

@test "zs-verify: the line that people know passes, and says exact" {
  run -0 mpirun --oversubscribe -np 2 zs-verify --zero_stage 1 --dtype torch.float32 --use_torch_adam
  [[ $output == *$'\nverdict: exact\nsteps: 10' ]]
}

@test "zs-verify: stages, ranks and accumulation are exact in float32" {
  for case in "0 2 1" "1 4 1" "2 2 4" "3 1 4" "3 4 1"; do
    read -r stage ranks steps <<<"$case"
    verified "${case// /-}" "$ranks" "$SMALL --zero_stage $stage --gradient_accumulation_steps $steps --deepcompile"
  done
  run -0 all_exact 5
}

@test "zs-verify: weight decay on matrices alone, no bias correction, checkpointing and a schedule are exact too" {
  for extra in "--decay matrices --scheduler cosine --lr_warmup_steps 1" "--set training.correct_bias=false --activation_checkpointing" \
    "--max_grad_norm 0 --use_torch_adam --batch_size 2"; do
    verified "${extra// /}" 2 "$SMALL --zero_stage 2 $extra"
  done
  run -0 all_exact 3
}

@test "zs-verify: fused kernels are exact too, and close to LibTorch's operations" {
  for stage in 1 3; do
    verified stage-$stage 2 "$SMALL --zero_stage $stage --compile --gradient_accumulation_steps 2"
  done
  run -0 all_exact 2
  for kernels in "" --compile; do
    # shellcheck disable=SC2086
    zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 5 --save_final false --output_dir "runs$kernels" $kernels >/dev/null
  done
  run -1 zs-verify runs/2*/ runs--compile/2*/
  [[ $output == *"not expected to be the same bits, because they differ in kernels (plain and fused)"* ]] || complain "$output"
  # The records: weights whose gradient is zero but for rounding (the keys' biases) go apart by more than their size.
  run -0 zs-verify --rtol 1e-3 runs/2*/ runs--compile/2*/
  verdict
}

@test "zs-verify: bfloat16 and float16 are exact, and no difference is allowed in them" {
  for case in "bfloat16 2 4" "bfloat16 3 2 --compile" "float16 3 2"; do
    read -r dtype stage ranks kernels <<<"$case"
    # shellcheck disable=SC2086
    verify "$ranks" --zero_stage "$stage" --dtype "$dtype" $kernels --format json >log || complain "$case: status $?"
    [[ $(jq -r '"\(.verdict) \(.settings.rtol) \(.settings.atol)"' log) == "exact 0 0" ]] || complain "$case: $(head log)"
  done
  verdict
}

@test "zs-verify: against amp every other arithmetic is near, is said to be another, and is measured" {
  targets=("" --bf16 "--compile --bf16" "--fp16 --set training.loss_scale=1024")
  if verify 1 --fp16 --set training.loss_scale=1024 --reference amp --iterations 1 2>&1 | grep -q 'LibTorch 1.* is bfloat16 alone'; then
    unset 'targets[3]'
  fi
  for target in "${targets[@]}"; do
    # shellcheck disable=SC2086
    verify 2 --zero_stage 2 --reference amp $target >log || complain "$target: status $?"
    grep -qx 'verdict: within tolerance' log || complain "$target: $(tail -n 4 log)"
    grep -q '^arithmetics: .*the same bits are not expected' log || complain "$target: $(tail -n 4 log)"
    grep -q '^tolerance: rtol 0.05, atol [^;]*; a gradient: ' log || complain "$target: $(tail -n 4 log)"
  done
  verify 1 --amp --reference amp >log
  grep -qx 'verdict: exact' log || complain "amp: $(tail -n 4 log)"
  run -1 --separate-stderr verify 1 --bf16 --reference amp --rtol 1e-5
  [[ $output == *"verdict: DIFFERENT"*"arithmetics: "* ]] || complain "$output"
  run -2 verify 1 --fp16 --reference amp
  [[ $output == *"set one scale for both"* ]] || complain "$output"
  verdict
}

@test "zs-verify: a fault of one bit is found at its step, parameter, index and rank" {
  run -1 --separate-stderr verify 2 --zero_stage 0 --inject_fault 3:transformer.h.0.mlp.c_fc.weight:4711:1
  echo "$output" >found
  [ "$(value verdict <found)" = DIFFERENT ]
  [ "$(value step <found)" = 3 ]
  [ "$(value what <found)" = gradient ]
  [ "$(value stage <found)" = "cross-rank reduction" ]
  [ "$(value parameter <found)" = transformer.h.0.mlp.c_fc.weight ]
  [ "$(value index <found)" = 4711 ]
  [ "$(value place <found)" = "[9, 103]" ]
  [ "$(value rank <found)" = 1 ]
  [ "$(value ulp <found)" = 1 ]
  [[ $(value target_hex <found) =~ ^-?0x1 && $(value target_hex <found) != "$(value reference_hex <found)" ]]
}

@test "zs-verify --repeat: a training has its own bits again on two ranks; a fault in one repetition is named" {
  verify 2 --repeat 3 --zero_stage 2 --format json >out.json || complain "status $?"
  [ "$(jq -c '[.verdict, .repetitions, .steps, (.rows | length)]' out.json)" = '["exact","3","4",3]' ] || complain "$(cat out.json)"
  run -1 --separate-stderr verify 2 --repeat 3 --zero_stage 3 --inject_fault 2:output:h.0:1
  echo "$output" >found
  [[ $output == *"repetition "*$'\n         2 '*" 0"$'\n'* ]] || complain "$output"
  [ "$(for key in verdict step what stage unit rank repetition repetitions_differing; do value $key <found; done | xargs)" = \
    "DIFFERENT 2 output forward h.0 1 3 1" ] || complain "$output"
  run -1 --separate-stderr zs-verify --num_layers 1 --repeat 2 --inject_fault 1:transformer.h.0.ln_1.weight:7
  [[ $output == *"stage: cross-rank reduction"$'\n'"unit: h.0"$'\n'"parameter: transformer.h.0.ln_1.weight"* ]] || complain "$output"
  refuses_with "zs-verify: --repeat compares bits with themselves: leave out --rtol (see zs-verify --help)" zs-verify --repeat 2 --rtol 1 || complain "$stderr"
  refuses_with "zs-verify: --repeat: '1' is not a whole number of at least 2 (see zs-verify --help)" zs-verify --repeat 1 || complain "$stderr"
  run -2 zs-verify --num_layers 1 --inject_fault 1:output:h.0
  [[ $output == *"is a fault for --repeat"* ]] || complain "$output"
  verdict
}

@test "zs-verify: tsv and the metric file hold every step and the verdict" {
  verify 2 --zero_stage 1 --format tsv -o out.h5 >out.tsv
  [ "$(grep -c '^verify' out.tsv)" = 4 ]
  grep -qx '#@ verify verdict=exact' out.tsv
  run -0 zs-verify out.h5 out.tsv
  [[ $output == *"loss "*" 4 "*"verdict: exact"* ]]
}

@test "zs-verify: what proves nothing fails with a name" {
  run -1 --separate-stderr zs-verify $SMALL --learning_rate 0
  [[ $output == *"verdict: FAILED"*"does not move: is the learning rate 0?"* ]]
  run -1 --separate-stderr zs-verify $SMALL --set initialization.init_std=0
  [[ $output == *"verdict: FAILED"*"is zero in every step"* ]]
  run -1 --separate-stderr zs-verify $SMALL --learning_rate 1e36
  [[ $output == *"verdict: DIFFERENT"*"is not finite"* ]]
}

@test "zs-verify: bad input is refused with status 2 and nothing on stdout" {
  refused() {
    local expected=$1
    shift
    run -2 --separate-stderr zs-verify $SMALL "$@"
    [[ $stderr == "zs-verify: "*"$expected"* ]] || complain "$*: $stderr"
    [ -z "$output" ] || complain "$*: $output"
  }
  refused "--rtol: '-1' is not a number from 0" --rtol -1
  refused "--atol: 'nan' is not a number from 0" --atol nan
  refused "stage 0 keeps all on the device" --offload_device cpu --zero_stage 0
  refused "there is no folder for it: set --nvme_path DIR" --offload_device nvme --zero_stage 2
  refused "stage 2 has no shards" --offload_param cpu --zero_stage 2
  refused "did you mean transformer.h.0.ln_1.weight" --inject_fault 1:transformer.h.0.ln1.weight:0
  refused "'128' is not in 0..127" --inject_fault 1:transformer.h.0.ln_1.weight:128
  refused "step '5' is not in 1..4" --inject_fault 5:transformer.h.0.ln_1.weight:0
  refused "is not STEP:PARAMETER:INDEX[:RANK]" --inject_fault 1
  refused "leave out --use_torch_adam" --use_torch_adam --set training.correct_bias=false
  refused "whole number of at least 1" --iterations 0
  verdict
}

@test "zs-verify: micro-batches that do not divide among the ranks: exact in every stage, a flipped bit is found" {
  for stage in 0 1 2 3; do
    verified exact-$stage 3 "$SMALL --train_batch_size 7 --batch_size 1 --zero_stage $stage --max_grad_norm 0.1"
    verified flipped-$stage 3 "$SMALL --train_batch_size 7 --batch_size 1 --zero_stage $stage --inject_fault 1:transformer.h.0.ln_1.weight:5"
  done
  run -0 verdicts
  [ "$(grep -c '^exact-[0-3] status 0; verdict: exact;' <<<"$output")" = 4 ] || complain "$output"
  [ "$(grep -c '^flipped-[0-3] status 1; verdict: DIFFERENT;.*transformer.h.0.ln_1.weight' <<<"$output")" = 4 ] || complain "$output"
  verdict
}

@test "zs-verify: recordings of micro-batches that do not divide among the ranks are exact, losses too" {
  for ranks in 1 3; do
    mpirun --oversubscribe --bind-to none -n $ranks zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 2 --train_batch_size 7 --batch_size 1 \
      --zero_stage $((ranks == 3 ? 3 : 0)) --probe probe$ranks --output_dir out >log
  done
  run -0 zs-verify probe1 probe3
  [[ $output == *"verdict: exact"* ]]
}

@test "zs-verify: a rank that another launcher started alone is refused" {
  run env OMPI_COMM_WORLD_SIZE= SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0 PMI_RANK=0 PMI_SIZE=2 zs-verify $SMALL
  ((status == 2)) || complain "$output"
  verdict
}

@test "zs-verify: two recorded runs, as folders, metric files and logs" {
  # shellcheck disable=SC2086
  train() { mpirun --oversubscribe --bind-to none -n "$1" zs-train --model_name tiny --num_layers 1 --seq_length 16 --bench_step 4 --log_interval 1 "${@:2}"; }
  train 2 --zero_stage 1 --output_dir a >a.log
  train 2 --zero_stage 3 --output_dir b >b.log
  train 2 --zero_stage 3 --output_dir c --seed 7 >c.log
  run -0 zs-verify a.log b.log
  [[ $output == *"verdict: exact"*"state_digest: equal"* ]]
  run -0 zs-verify a/2*/ b/2*/metrics.h5
  [[ $output == *"verdict: exact"* ]]
  run -3 zs-verify a.log c.log
  [[ $output == *"verdict: not comparable"*"because: they train different things: they differ in seed"*"step: 1"*"what: loss"*"a.log_hex: 0x1."* ]]
  # Six decimals, as other trainers print them.
  perl -pe 's/Loss: ([0-9.]+)/sprintf("Loss: %.6f", $1)/e' b.log >b6.log
  run -0 zs-verify a.log b6.log
  [[ $output == *"6 decimals (5e-07)"*"verdict: equal as printed"* ]]
  sed '/Step 3,/s/Loss: [^ ]*/Loss: nan/' a.log >nan.log
  run -2 zs-verify nan.log nan.log
  [[ $output == *"are the same run: nothing would be compared"* ]]
  sed '/Step 3,/s/Loss: [^ ]*/Loss: nan/' b.log >nan-too.log
  run -1 zs-verify nan.log nan-too.log
  [[ $output == *"verdict: FAILED"*"loss of epoch 1, step 3 is not finite in both"* ]]
  grep -v 'Step 3,' a.log >gap.log
  run -1 zs-verify a.log gap.log
  [[ $output == *"step 3 is in a.log and missing in gap.log"* ]]
  # A log of every second step beside the whole one.
  train 2 --zero_stage 2 --output_dir d --bench_step 9 --log_interval 1 >all.log
  train 2 --zero_stage 3 --output_dir e --bench_step 9 --log_interval 2 >second.log
  run -0 zs-verify all.log second.log
  [[ $output == *"verdict: exact"*"rows_alone: 3 in all.log, which second.log leaves out: it has every 2 steps"* ]]
  grep -v 'Step 4,' second.log >lost.log
  run -1 zs-verify all.log lost.log
  [[ $output == *"step 4 is in all.log and missing in lost.log"* ]]
  run -0 zs-verify a.log b.log --format json
  jq -e '.verdict == "exact" and (.rows | length) >= 5' <<<"$output"
}

@test "zs-verify: checkpoints that both run folders have are compared bit by bit" {
  # shellcheck disable=SC2086
  for run in "1 1 2" "3 2 1"; do
    read -r stage ranks steps <<<"$run"
    mpirun --oversubscribe --bind-to none -n "$ranks" zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 4 --log_interval 1 \
      --save_steps 2 --gradient_accumulation_steps "$steps" --zero_stage "$stage" --output_dir "stage$stage" >/dev/null
  done
  run -0 zs-verify stage1/2* stage3/2*
  [[ $output == *"verdict: exact"*"checkpoint_2: exact: gradient 264064 elements, in 16 tensors; float32 "* ]]
  # One bit of one weight, behind the last loss that could show it.
  printf '\1' | dd of="$(echo stage3/2*/checkpoint_2/pytorch_model.bin)" bs=1 seek=40000 conv=notrunc status=none
  run -1 zs-verify stage1/2* stage3/2*
  [[ $output == *"verdict: FAILED"*"checkpoint_2/pytorch_model.bin: does not have the checksum that SHA256SUMS gives"* ]]
  reseal stage3/2*/checkpoint_2
  run -1 zs-verify stage1/2* stage3/2*
  [[ $output == *"verdict: DIFFERENT"*"checkpoint_2: DIFFERENT"$'\n'"checkpoint_2 what: float32 of "*".weight, element "*"checkpoint_2 distance: "*" ulp; 1 of "*" elements differ"*"checkpoint_2 place: ["*"checkpoint_2 float32: different: "*"checkpoint_2 equal: gradient 264064 elements, in 16 tensors; exp_avg "* ]]
}

@test "zs-verify: operands that are no runs are refused" {
  echo hello >words.txt
  : >empty
  mkdir folder
  run -2 zs-verify words.txt no-such-run
  [[ $output == *"no-such-run"* ]]
  run -2 zs-verify words.txt empty
  [[ $output == *"empty: is empty"* ]]
  run -2 zs-verify folder words.txt
  [[ $output == *"folder: is a folder without anything that zs knows; zs-verify takes "* ]]
  run -2 zs-verify words.txt ./words.txt
  cp words.txt others.txt
  run -1 zs-verify words.txt others.txt
  [[ $output == *"verdict: FAILED"*"no step in common"* ]]
  run -2 zs-verify a b c
  run -2 zs-verify words.txt words.txt --zero_stage 1
  [[ $output == *"says nothing about recorded runs"* ]]
}

@test "zs-verify: runs by id and name, checkpoints and files, and never one with itself" {
  for name in one two; do
    zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 3 --log_interval 1 --save_steps 2 --output_dir runs --run_name "$name" >/dev/null
  done
  run -0 zs-verify one two -r runs
  [[ $output == *"verdict: exact"*"checkpoint_2: exact: gradient "*"; float32 "*"; exp_avg "* ]]
  first=$(basename "$(echo runs/2* | cut -d' ' -f1)")
  second=$(basename "$(echo runs/2* | cut -d' ' -f2)")
  ZS_REGISTRY=runs run -0 zs-verify "$first" "$second"
  run -0 zs-verify "runs/$first/final_checkpoint" "runs/$second/final_checkpoint"
  [[ $output == *"config: equal: "*" values"*"training: equal: "*" values"* ]]
  # What goes on otherwise is not the same checkpoint, and what computes otherwise is not the same model.
  cp -r "runs/$second/final_checkpoint" other
  sed -i 's/"position": [0-9]*/"position": 7/; s/"world_size": 1/"world_size": 4/' other/accelerator_states/state.json
  reseal other
  run -1 zs-verify "runs/$first/final_checkpoint" other
  [[ $output == *"verdict: DIFFERENT"*"what: random sampler.position"*"final_checkpoint: 3"*"other: 7"* ]]
  run ! grep -q world_size <<<"$output"
  sed -i 's/"n_head": [0-9]*/"n_head": 1/' other/config.json
  rm other/SHA256SUMS
  run -1 zs-verify "runs/$first/final_checkpoint" other
  [[ $output == *"what: config n_head"* ]]
  echo '{' >other/config.json
  run -1 zs-verify "runs/$first/final_checkpoint" other
  [[ $output == *"other/config.json: is not JSON"* ]]
  run -0 zs-verify "runs/$first/checkpoint_2/gradients.pt" "runs/$second/checkpoint_2/gradients.pt"
  [[ $output == *"verdict: exact"* ]]
  run -1 zs-verify "runs/$first/checkpoint_2/gradients.pt" "runs/$second/checkpoint_2/pytorch_model.bin"
  [[ $output == *"verdict: DIFFERENT"*"what: float32 of transformer."*"distance: "* ]]
  run -2 zs-verify one "$first" -r runs
  [[ $output == *"are the same run"* ]]
  run -2 zs-verify "runs/$first" "runs/$first/run.log"
  run -2 zs-verify one "runs/$second/checkpoint_2" -r runs
  [[ $output == *"name two runs, two recordings, or a checkpoint of the run"* ]]
  cp -r "runs/$first" copy
  run -1 zs-verify one copy -r runs
  [[ $output == *"one is a copy of the other"* ]]
  run -2 zs-verify one three -r runs
  [[ $output == *"no run 'three'"* ]]
}

@test "zs-verify: what one run or checkpoint lacks leaves the comparison undecided; what is damaged or overlaps is FAILED" {
  for name in one two; do
    zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 2 --log_interval 1 --output_dir runs --run_name "$name" >/dev/null
  done
  second=$(echo runs/2* | cut -d' ' -f2)
  cp -r "$second" whole
  run -0 zs-verify one two -r runs
  for file in gradients.pt config.json accelerator_states/state.json accelerator_states; do
    rm -r "$second/final_checkpoint/$file"
    run -1 zs-verify one two -r runs
    [[ $output == *"verdict: FAILED"*"is missing, and SHA256SUMS lists it: the checkpoint is damaged"* ]] || complain "$file: $output"
    reseal "$second/final_checkpoint"
    run -3 zs-verify one two -r runs
    [[ $output == *"verdict: inconclusive"*"final_checkpoint: "*" only in runs/"* ]] || complain "$file: $output"
    rm -r "$second/final_checkpoint" && cp -r whole/final_checkpoint "$second"
  done
  rm -r "$second/final_checkpoint"
  run -3 zs-verify one two -r runs
  [[ $output == *"final_checkpoint is only in one"* ]] || complain "$output"
  cp -r whole/final_checkpoint "$second"
  cp "$second/final_checkpoint/accelerator_states/optimizer_00000.pt" "$second/final_checkpoint/accelerator_states/optimizer_00001.pt"
  run -1 zs-verify one two -r runs
  [[ $output == *"SHA256SUMS: does not list accelerator_states/optimizer_00001.pt"* ]] || complain "$output"
  cp "$second/final_checkpoint/accelerator_states/optimizer_00000.pt" keep.pt
  rm "$second/final_checkpoint/accelerator_states/optimizer_00001.pt"
  echo '{}' >"$second/final_checkpoint/tokenizer.json" # nobody reads it as the checkpoint's
  run -0 zs-verify one two -r runs
  [[ $output == *"verdict: exact"*"final_checkpoint not compared: tokenizer.json of "* ]] || complain "$output"
  rm "$second/final_checkpoint/tokenizer.json"
  mv keep.pt "$second/final_checkpoint/accelerator_states/optimizer_00001.pt"
  reseal "$second/final_checkpoint"
  run -1 zs-verify one two -r runs
  [[ $output == *"two files have elements 0 to "* ]] || complain "$output"
  rm "$second/final_checkpoint/accelerator_states/optimizer_00001.pt"
  sed -i 's/"n_head": 4/"n_head": 4.0/; s/"scale": 1.0/"scale": 1/' "$second"/final_checkpoint/{config,accelerator_states/state}.json
  reseal "$second/final_checkpoint"
  run -0 zs-verify one two -r runs # one number, spelt otherwise
  verdict
}

@test "zs-verify: a name of a tensor makes no line of the verdict, and steers no terminal" {
  for value in 0 1; do
    printf '\x51\0\0\0\0\0\0\0%s\0\0\0%b' '{"\u001b[31mx\nverdict: exact":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} ' "\\$value" >$value.safetensors
  done
  run -1 zs-verify 0.safetensors 1.safetensors
  [ "$(grep -c '^verdict: ' <<<"$output")" = 1 ]
  [[ $output == *'what: float32 of \x1B[31mx\nverdict: exact, element 0'* ]]
}

@test "zs-verify: a metric file holds whole numbers, however short; a file of torch.save before 1.6 is one of tensors" {
  printf '#zs-metrics 1\nrun\tstep\tloss\nr\t1\t5.5\nr\t2\t4.5\nr\t3\t3.25\n' >a.tsv
  sed 's/3.25/3.2500000000000004/' a.tsv >b.tsv
  run -1 zs-verify a.tsv b.tsv
  [[ $output == *"verdict: DIFFERENT"*"step: 3"* ]]
  printf '\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.' >old.pt
  cp old.pt older.pt
  run -2 zs-verify old.pt older.pt
  [[ $output == *"old.pt: "*"PyTorch 1.6"* ]]
}

@test "zs-verify: every element of a tensor is judged, and every attempt, epoch and rank of a run" {
  # tensors NAME FIRST REST: a safetensors file of FIRST and 9 times REST, floats as printf escapes their bytes.
  tensors() {
    printf '\x38\0\0\0\0\0\0\0%s' '{"w":{"dtype":"F32","shape":[10],"data_offsets":[0,40]}}' >"$1"
    # shellcheck disable=SC2059
    { printf "$2" && for _ in {1..9}; do printf "$3"; done; } >>"$1"
  }
  tensors plus.safetensors '\0\0\0\0' '\0\0\x80\x3f'
  tensors minus.safetensors '\0\0\0\x80' '\0\0\x80\x3f'
  tensors large.safetensors '\0\0\0\x80' '\xf9\x02\x16\x50'
  run -1 zs-verify plus.safetensors minus.safetensors
  [[ $output == *"what: float32 of w, element 0"*"different: 1 of 10 elements"* ]]
  run -1 zs-verify --atol 1e-6 plus.safetensors large.safetensors
  [[ $output == *"what: float32 of w, element 1"*"10 of 10 elements differ, 9 beyond the tolerance"* ]]
  run -0 zs-verify --atol 1e-6 plus.safetensors minus.safetensors
  [[ $output == *"verdict: within tolerance"* ]]

  for name in a b; do
    for s in 1 2 3; do
      echo "[rank0]: Epoch 1, Step $s, Loss: $([ $name = a ] && echo nan || echo "9.$s") sync: True"
      echo "[rank1]: Epoch 1, Step $s, Loss: 3.$s sync: True"
    done >$name.log
  done
  run -1 zs-verify a.log b.log
  [[ $output == *"verdict: FAILED"*"loss of epoch 1, step 1 is not finite in a.log"* ]]
  printf 'Epoch %d, Step %d, Loss: %s sync: True\n' 1 10 9.9 1 20 8.8 2 10 3.1 2 20 2.1 >c.log
  sed 's/9.9/5.5/;s/8.8/4.4/' c.log >d.log
  run -1 zs-verify c.log d.log
  [[ $output == *"verdict: DIFFERENT"*"epoch: 1"*"step: 10"*"values: 2 of 8 differ"* ]]
  printf 'Epoch 1, Step %d, Loss: %s sync: True\n' 1 3.1 2 2.1 3 1.1 >whole.log
  { cat whole.log && head -n 1 whole.log; } >died.log
  run -1 zs-verify whole.log died.log
  [[ $output == *"step 2 is in whole.log, but died.log went back to an earlier step and did not reach it again"* ]]
  sed 's/ sync/ grad_norm: 1 sync/' whole.log >more.log
  run -3 zs-verify whole.log more.log
  [[ $output == *"verdict: inconclusive"*"grad_norm is only in more.log"* ]]
  run -0 zs-verify --columns loss whole.log more.log
}
