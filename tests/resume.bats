# SPDX-License-Identifier: Apache-2.0
# zs-verify --resume: it stops and resumes a training of PyTorch and one of zs, and compares the recordings.
setup_file() { load helper && warm_up; }
teardown_file() { cool_down; }

setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  export PYTHONPATH=$ROOT/share/probe
}

# resumes LOST [WORD...]: the training of resume.py, with WORDs, which forgets LOST when it resumes.
resumes() {
  zs-verify --resume "$PYTHON -m zs_probe $ROOT/tests/resume.py --steps {steps} --total {total} --run {run} ${*:2} {resume}" \
    --resume_with "--load {checkpoint} --lose '$1'" --at 2 --steps 4 --keep "kept-$1"
}

@test "resume: a training that keeps all is exact, its checkpoints too" {
  warm_python
  run -0 resumes ''
  assert_line "verdict: exact"
  assert_line "lost: nothing"
  assert_line "resumed: after step 2 of 4, from kept-/stopped/checkpoint-2.pt"
  assert_line --partial "checkpoints: exact: "
  run -2 resumes ''
  assert_output --partial "kept-: is there already: remove it, or name another folder with --keep"
}

@test "resume: a schedule that ends with the training is named, not called a training that does not repeat itself" {
  warm_python
  run -1 resumes '' --total '{steps}'
  assert_line --regexp '^lost: nothing is said of the resume: .* at step 2: the learning rate depends on \{steps\}; a schedule has to be \{total\} steps long'
}

@test "resume: what a training loses is named: ten things" {
  warm_python
  local lost words expected
  while IFS='|' read -r lost words expected; do
    # shellcheck disable=SC2086
    run -1 resumes "$lost" $words </dev/null
    [[ $(sed -n 's/^lost: //p' <<<"$output") =~ $expected ]] || complain "$lost: $output"
  done <<'END'
weights||^step 3: resume of param/0.weight and 3 more of 12: B did not resume what it left: 4 tensors have other values$
masters||^step 3: resume of param/.* as far apart as rounding to bfloat16 leaves: were the float32 masters kept
moments||^step 3: resume of state.exp_avg/.* tensors have other values
optimizer||^step 3: resume of state.exp_avg/.* 8 tensors of the optimizer's state are gone
step||^step 3: resume of the step counter: .* its counter says 0 steps after 2
schedule||^step 4: the learning rate of group 0 is 0.00875 instead of
rate||^step 3: the learning rate of group 0 is 0.015 instead of 0.0075, x 2
scaler||^(step 3: loss_scale of rank 0: 32 and 8|scaler scale is 32 for 128 in the checkpoints)$
data||^step 3: batch: 5 of 5 samples are missing, 5 samples are others: those of step 1
random||^step 3: .*the random generator torch of rank 0 is in another state
accumulation|--accumulate|^step 3: batch: 5 of 10 samples are missing: .* only the last of 2 micro-batches counts
END
  run -0 resumes '' --accumulate # the control: what was in flight is saved too
  assert_line "verdict: exact"
  verdict
}

@test "resume: where the recordings differ by rounding, so may weights in the checkpoints, and nothing else" {
  warm_python
  run -1 resumes bits
  assert_line "verdict: equal up to rounding"
  assert_line --partial "checkpoints: DIFFERENT: "
  run -1 resumes bits,scaler
  assert_line "verdict: DIFFERENT"
}

@test "resume: a training that fails, saves nothing or has no probe is an error with its log" {
  run -2 zs-verify --resume 'echo "ValueError: no data" >&2; exit 3 # {steps}' --resume_with x --at 1 --steps 2 --keep a
  assert_output --partial "a/whole.log: the training ended with status 3: ValueError: no data"
  run -2 zs-verify --resume 'true {steps}' --resume_with x --at 1 --steps 2 --keep b
  assert_output --partial "b/undisturbed.probe: is no probe"
  run -2 zs-verify --resume 'true' --resume_with x --at 1 --steps 2 --keep c
  assert_output --partial "the command needs {steps}"
  run -2 zs-verify --resume 'true {steps}' --at 1 --steps 2 --keep c
  assert_output --partial "--resume needs --resume_with ARGS"
  run -2 zs-verify --resume 'true {steps}' --resume_with x --at 2 --steps 2 --keep c
  assert_output --partial "expected 1 <= --at < --steps"
  run -2 zs-verify --resume 'true {steps}' --resume_with x --at 1 --steps 2 --iterations 3
  assert_output --partial "--iterations says nothing about a training that is stopped and resumed"
  [ ! -e c ]
}

@test "resume: zs-train goes on to the bits of the undisturbed training, at another stage and on other ranks too" {
  local train='zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps {steps} --save_steps {at} --output_dir {run}'
  run -0 zs-verify --resume "$train {resume}" --resume_with '--checkpoint {checkpoint}' --at 2 --steps 4 --keep same
  assert_line "verdict: exact"
  assert_line "lost: nothing"
  run -0 zs-verify --resume "$train --gradient_accumulation_steps 2" --at 2 --steps 4 --keep other \
    --resume_command "mpirun --oversubscribe -n 2 ${train/--max/--zero_stage 3 --max} --checkpoint {checkpoint}"
  assert_line "verdict: exact"
  run -2 zs-verify --resume "$train" --resume_command 'zs-train nonsense {checkpoint}' --at 2 --steps 4 --keep bad
  assert_output --partial "bad/rest.log: the training ended with status 2"
}

@test "resume: --checkpoint_format: each checkpoint has the other form too, byte for byte what convert makes, and any of them is gone on from" {
  local train='mpirun --oversubscribe -n 2 zs-train --model_name tiny-llama --num_layers 1 --seq_length 16 --max_steps 3 --zero_stage 2 --bf16'
  local form words saved digest
  while read -ru 3 form words; do # mpirun would read the rest of the list
    run -0 $train --save_steps 1 --keep_last 1 --output_dir "$form" --checkpoint_format "$form"
    digest=${digest:-$(sed -n 's/^state_digest: //p' <<<"$output")}
    [[ $output == *"state_digest: $digest"* ]] || complain "$form: $output"
    saved=$(echo "$form"/2*/final_checkpoint)
    [[ -d ${saved%/*}/checkpoint_2/$form && ! -e ${saved%/*}/checkpoint_1 ]] || complain "$form: $(ls "${saved%/*}")"
    (cd "$saved" && sha256sum --quiet -c SHA256SUMS) || complain "$form: sums"
    (cd "$saved" && [[ $(find . -type f ! -name SHA256SUMS | wc -l) == $(wc -l <SHA256SUMS) ]]) || complain "$form: a file has no sum"
    run -0 zs-checkpoint verify "$saved"
    # shellcheck disable=SC2086
    zs-checkpoint convert "$saved" "again-$form" --to "$form" $words >said || complain "$form: $(cat said)"
    diff -r "again-$form" "$saved/$form" || complain "$form: not what convert makes"
    [[ $form != hf ]] || continue
    run -0 $train --max_steps 5 --save_final false --output_dir more --resume_from "$saved/$form"
    sed -n 's/^state_digest: //p' <<<"$output" >>more.digests
  done 3<<'END'
deepspeed --stage 2 --ranks 2 --dtype bf16
universal --dtype bf16
dcp --ranks 2
safetensors
hf
END
  [[ $(sort -u more.digests | wc -l) == 1 && $(wc -l <more.digests) == 4 ]] || complain "$(cat more.digests)"
  verdict
}

@test "resume: --checkpoint_format that this training cannot have is refused before its first step" {
  local words expected
  while IFS='|' read -r words expected; do
    # shellcheck disable=SC2086
    run -2 zs-train --model_name tiny-llama --num_layers 1 --seq_length 16 --max_steps 1 $words </dev/null
    [[ $output == *"$expected"* ]] || complain "$words: $output"
  done <<'END'
--checkpoint_format dcp --optimizer lion|--checkpoint_format dcp has AdamW's state, and this training has that of Lion: use hf or safetensors
--checkpoint_format hf --freeze norm|--checkpoint_format hf is for trainings of all parameters, and some are frozen
--checkpoint_format dcp --save_final false|--checkpoint_format has no effect here: it needs --save_steps
END
  run -2 zs-train --model_name tiny-vit --max_steps 1 --checkpoint_format deepspeed
  [[ $output == *"needs the order of the model's modules, which zs does not know of this one: use universal"* ]] || complain "$output"
  # The two tools know the same forms.
  run -2 zs-train --checkpoint_format none
  local forms=${output##*is not one of }
  run -2 zs-checkpoint convert --to none a b
  [[ ${forms%% (*} == "$(sed 's/.*is not one of //;s/ (.*//' <<<"$output")" ]] || complain "$forms and $output"
  verdict
}

@test "resume: zs-train goes on from what other programs load, by way of each form, on other ranks and stages, to the same bits" {
  local train='zs-train --model_name tiny --num_layers 1 --seq_length 16 --batch_size 1 --max_steps 4' whole form words
  run -0 $train --gradient_accumulation_steps 2 --save_steps 2 --output_dir whole
  whole=$(echo whole/2*)
  while read -r form words; do
    # shellcheck disable=SC2086
    zs-checkpoint convert "$whole/checkpoint_2" "$form" --to $words >said || complain "$form: $(cat said)"
    $train --gradient_accumulation_steps 2 --output_dir "of-$form" --resume_from "$form" >said 2>&1 || complain "$form: $(cat said)"
    zs-verify "$whole/final_checkpoint" of-"$form"/2*/final_checkpoint >said || complain "$form: $(cat said)"
    [[ $(cat said) == "verdict: exact"* ]] || complain "$form: $(cat said)"
  done <<'END'
zero-2 deepspeed --stage 2 --ranks 3
dcp dcp --ranks 2
universal universal
tensors safetensors
END
  run -0 mpirun --oversubscribe -n 2 $train --zero_stage 3 --output_dir ranks --resume_from zero-2
  assert_output --partial 'note: the checkpoint was trained with lr '
  run -0 zs-verify "$whole/final_checkpoint" ranks/2*/final_checkpoint
  # What cannot be gone on from is told by name, before a step is taken.
  run -2 $train --num_layers 2 --resume_from dcp
  assert_output --partial 'has no '
  assert_output --partial 'it is a checkpoint of another model'
  run -2 $train --max_steps 2 --resume_from dcp
  assert_output --partial 'has 2 steps done'
  rm dcp/__1_0.distcp
  run -2 $train --resume_from dcp
  assert_output --partial '__1_0.distcp: is missing'
  verdict
}
