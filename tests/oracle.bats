# SPDX-License-Identifier: Apache-2.0
# An independent check: a loop in plain Python PyTorch repeats a training of zs-train from its weights and batches.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
  python_with 'torch, h5py' python3-torch python3-h5py
}

# follows RANKS ACCUMULATION STAGE: 50 steps of tiny, and the oracle after them.
follows() {
  mpirun --oversubscribe --bind-to none -n "$1" zs-train --model_name tiny --seq_length 64 --batch_size 4 --gradient_accumulation_steps "$2" \
    --zero_stage "$3" --learning_rate 3e-4 --max_steps 50 --log_interval 1 --save_initial initial --dump_batches batches.h5 --output_dir out >run.log
  sed -n 's/^Epoch.* Loss: \([^ ]*\) .*/\1/p' run.log >losses
  run -0 "$PYTHON" "$ROOT/tests/oracle.py" initial/pytorch_model.bin batches.h5 losses
  echo "# $1 ranks, stage $3: $output" >&3
}

@test "oracle: stock PyTorch follows 50 steps of tiny within 2e-6, on one rank" {
  follows 1 4 0
}

@test "oracle: stock PyTorch follows 50 steps of tiny within 2e-6, on four ranks" {
  follows 4 1 3
}

@test "oracle: it notices another learning rate" {
  zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 4 --log_interval 1 --learning_rate 3.3e-4 --save_initial initial \
    --dump_batches batches.h5 --output_dir out >run.log
  sed -n 's/^Epoch.* Loss: \([^ ]*\) .*/\1/p' run.log >losses
  run -1 "$PYTHON" "$ROOT/tests/oracle.py" initial/pytorch_model.bin batches.h5 losses
  [[ $output == *"step 2: loss"*"apart"* ]]
}
