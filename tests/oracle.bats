# SPDX-License-Identifier: Apache-2.0
# An independent check: a loop in plain Python PyTorch repeats a training of zs-train from its weights and batches.
setup() {
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  python_with 'torch, h5py' python3-torch python3-h5py
}

# trains RANKS ACCUMULATION STAGE: 50 steps of tiny; their losses.
trains() {
  mpirun --oversubscribe --bind-to none -n "$1" zs-train --model_name tiny --seq_length 64 --batch_size 4 --gradient_accumulation_steps "$2" \
    --zero_stage "$3" --learning_rate 3e-4 --max_steps 50 --log_interval 1 --save_initial initial --dump_batches batches.h5 --output_dir out >run.log
  sed -n 's/^Epoch.* Loss: \([^ ]*\) .*/\1/p' run.log >losses
}

@test "oracle: stock PyTorch follows 50 steps of tiny within 2e-6, on four ranks and on one" {
  trains 1 4 0
  mkdir one
  mv losses initial batches.h5 one/
  trains 4 1 3
  run -0 "$PYTHON" "$ROOT/tests/oracle.py" initial/pytorch_model.bin batches.h5 losses
  echo "# four ranks, stage 3: $output" >&3
  # What PyTorch was given of four ranks is what one rank had.
  [ "$(wc -l <losses)" = 50 ]
  cmp losses one/losses
  zs-verify initial/pytorch_model.bin one/initial/pytorch_model.bin
  "$PYTHON" -c 'import h5py
one, four = h5py.File("one/batches.h5"), h5py.File("batches.h5")
assert list(one) == list(four) and all((one[name][:] == four[name][:]).all() for name in one)'
}

@test "oracle: it notices another learning rate" {
  zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 4 --log_interval 1 --learning_rate 3.3e-4 --save_initial initial \
    --dump_batches batches.h5 --output_dir out >run.log
  sed -n 's/^Epoch.* Loss: \([^ ]*\) .*/\1/p' run.log >losses
  run -1 "$PYTHON" "$ROOT/tests/oracle.py" initial/pytorch_model.bin batches.h5 losses
  [[ $output == *"step 2: loss"*"apart"* ]]
}
