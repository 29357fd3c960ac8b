# SPDX-License-Identifier: Apache-2.0
# Settings of zs-train: length of a training, split of a batch, initial values, what is saved. A setting without an effect
# is reported.
setup() {
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  # 80 windows of 16 tokens: 72 to train on, 8 held out.
  head -c $((80 * 16 + 1)) /usr/share/common-licenses/GPL-3 >text
  small=(--model_name tiny --num_layers 1 --seq_length 16 --dataset text --output_dir runs)
}

value() { sed -n "s/^run: $1=//p" log; }

@test "zs-train: the first command of a new user works: the sequence length is the model's own" {
  run -0 zs-train --model_name tiny --num_layers 1 --bench_step 1
  echo "$output" >log
  [ "$(value seq_length)" = 256 ]
  grep -qx 'note: seq_length is 256: it is not set, and tiny has 256 positions' log
}

@test "zs-train: num_epochs says how long, up and down; max_steps may end it earlier, and the log says so" {
  zs-train "${small[@]}" --batch_size 4 --num_epochs 2 --save_final false >log
  [ "$(value expected_steps)" = 36 ]
  grep -q '^Epoch 2, Step 36,' log
  run ! grep ^note: log
  zs-train "${small[@]}" --batch_size 4 --num_epochs 8 --save_final false >log
  [ "$(value expected_steps)" = 144 ]
  grep -q '^Epoch 8, Step 144,' log
  zs-train "${small[@]}" --batch_size 4 --num_epochs 8 --max_steps 20 --save_final false >log
  [ "$(value expected_steps)" = 20 ]
  grep -qx 'note: stopped by max_steps before the end of epoch 2: num_epochs 8 takes 144 steps, max_steps is 20' log
  grep -qx 'note: stopped by max_steps .*' runs/*/run.log
  zs-train "${small[@]}" --batch_size 4 --save_final false >log
  [ "$(value expected_steps)" = 100 ]
  grep -qx 'note: max_steps is 100: neither max_steps nor num_epochs is set' log
  zs-train "${small[@]}" --batch_size 4 --max_steps 3 --eval_steps 500 --save_steps 4 --lr_warmup_steps 50 --save_final false >log
  grep -qx 'note: eval_steps is 500, and the training ends at step 3: it is never evaluated' log
  grep -qx 'note: save_steps is 4, and the training ends at step 3: no checkpoint is written' log
  grep -qx 'note: lr_warmup_steps is 50, and the training ends at step 3: the learning rate never gets to learning_rate' log
}

@test "zs-train: the configuration that other trainers have trains what it says" {
  cat >train_config.yaml <<'END'
model:
  name: "gpt2"  # Model name/type
  context_length: 1024  # Context length for the model
data:
  dataset_size: "10M"  # Dataset size (e.g., "10M")
  dataset_path: "/data"  # Path to dataset
training:
  batch_size: 32  # Batch size for training
  max_gpu_batch_size: 16  # Maximum batch size per GPU
  eval_batch_size: 16  # Batch size for evaluation
  gradient_accumulation_steps: 8  # Number of gradient accumulation steps
  learning_rate: 0.0006  # Learning rate
  num_epochs: 1  # Number of training epochs
  correct_bias: true  # Whether to correct bias in optimizer
  seed: 42  # Random seed
  scheduler: "cosine"  # Learning rate scheduler (linear, cosine)
  warmup_steps: 100  # Number of warmup steps
  save_steps: 500  # Save model every X steps
  eval_steps: 500  # Evaluate model every X steps
run:
  name: "test"  # Run name
  init_type: "normal"  # Initialization type (normal, gaussian)
  checkpoint: null  # Checkpoint to start from (null for none)
END
  # A small model and 1020 steps of 32 sequences of 2 tokens.
  head -c $((36268 * 2 + 1)) <(cat /usr/share/common-licenses/*) >text
  run -0 --separate-stderr zs-train train_config.yaml "${small[@]}" --seq_length 2
  [ -z "$stderr" ]
  echo "$output" >log
  [ "$(value global_batch_size)/$(value batch_size)/$(value gradient_accumulation_steps)" = 32/16/2 ]
  grep -qx 'note: train_config.yaml:11: training.gradient_accumulation_steps is 8, and max_gpu_batch_size takes its place: batch_size 32 is 2 micro-batches of 16' log
  [ "$(value expected_steps)" = 1020 ]
  [ "$(grep -o '^Epoch.*valid_loss' log | sed 's/.*Step \([0-9]*\),.*/\1/' | xargs)" = "500 1000" ]
  [ "$(cd runs/*/ && echo checkpoint_* final_checkpoint)" = "checkpoint_1000 checkpoint_500 final_checkpoint" ]
  grep -q '^Epoch 1, Step 50,.* learning_rate: 0.000294' log  # warming up: 49 of 100
  grep -q '^Epoch 1, Step 1020,.* learning_rate: 0.0000000017' log # the end of the cosine
}

@test "zs-train: init_type gaussian draws every tensor alike, under either of its names" {
  for key in run.init_type initialization.init_type; do
    zs-train "${small[@]}" --max_steps 1 --save_final false --set $key=gaussian initialization.init_std=0.1 initialization.init_mean=0.5 --save_initial "$key" >log
  done
  cmp run.init_type/pytorch_model.bin initialization.init_type/pytorch_model.bin
  /usr/bin/python3 - <<'END'
import array, statistics, zipfile
archive = zipfile.ZipFile("run.init_type/pytorch_model.bin")
tensors = [name for name in archive.namelist() if "/data/" in name]
assert len(tensors) == 16, tensors
for name in tensors:
    w = array.array("f", archive.read(name))
    n, mean, std = len(w), statistics.fmean(w), statistics.stdev(w)
    assert abs(mean - 0.5) < 5 * 0.1 / n ** 0.5, (name, mean)
    assert abs(std - 0.1) < 5 * 0.1 / (2 * n) ** 0.5, (name, std)
END
}

@test "zs-train: the final model is saved, unless save_final is false" {
  zs-train "${small[@]}" --max_steps 2 --output_dir with >log
  find with -path '*/final_checkpoint/pytorch_model.bin' -size +0 | grep -q .
  zs-train "${small[@]}" --max_steps 2 --save_final false --output_dir without >log
  [ "$(cd without/2*/ && echo *)" = "config.yaml metrics.h5 record run.log" ]
  zs-train "${small[@]}" --max_steps 2 --save_final false --save_steps 2 --output_dir steps >log
  [ "$(cd steps/2*/ && echo *checkpoint*)" = "checkpoint_2" ]
}

@test "zs-train: what looks like a setting and is read by nothing is said once, on stderr and in the log" {
  printf 'training: {lr: 3, max_steps: 1, save_final: false}\nmodle: {name: x}\nmine: {lr: 4}\n' >odd.yaml
  refuses_with "zs-train: odd.yaml:1: nothing reads 'training.lr', did you mean 'training.learning_rate'?; odd.yaml:2: nothing reads 'modle.name', did you mean 'model.name'?" \
    zs-train odd.yaml "${small[@]}"
  printf 'training: {max_steps: 1, save_final: false}\nepochs: 3\nmine: {lr: 4}\n' >odd.yaml
  run -0 --separate-stderr zs-train odd.yaml "${small[@]}"
  # shellcheck disable=SC2154
  [ "$stderr" = "zs-train: warning: odd.yaml:2: nothing reads 'epochs', did you mean 'training.num_epochs'?" ]
  [ "$(grep "nothing reads" runs/*/run.log)" = "note: odd.yaml:2: nothing reads 'epochs', did you mean 'training.num_epochs'?" ]
  [ "$(zs-runs --registry runs --show mine.lr --format tsv | tail -n 1)" = 4 ]
  refuses_with "zs-train: --set: nothing reads 'training.lr', did you mean 'training.learning_rate'? (see zs-train --help)" \
    zs-train "${small[@]}" --set training.lr=3
  refuses_with "zs-train: unknown option '--lr', did you mean '--learning_rate'? (see zs-train --help)" zs-train --lr 3
}

@test "every tool: an empty value is what a variable leaves that is not set" {
  refuses_with "zs-train: --dataset is empty: is the variable set? (see zs-train --help)" zs-train --dataset ""
  refuses_with "zs-runs: --registry is empty: is the variable set? (see zs-runs --help)" zs-runs -r "" rm --yes x
  refuses_with "zs-plot: an operand is empty: is the variable set? (see zs-plot --help)" zs-plot loss ""
}

@test "zs-train: of several names for one key the last one typed holds; in a file they are an error" {
  zs-train "${small[@]}" --save_final false --bench_step 1 --max_steps 3 >log
  [ "$(value expected_steps)" = 3 ]
  printf 'training:\n  bench_step: 1\n  max_steps: 3\n' >both.yaml
  refuses_with "zs-train: both.yaml:3: 'training.max_steps' is given twice, first as 'training.max_steps' in both.yaml:2" \
    zs-train both.yaml
}

@test "zs-train: what cannot fit is refused at once, with what it needs and what there is" {
  (
    ulimit -v 8000000 # it would fill the machine
    run -2 timeout "$HANG" zs-train "${small[@]}" --num_layers 100000 --batch_size 1000000000
    [[ $output == "zs-train: tiny with 100000 layers, stage 3 and batches of 1000000000 x 16 tokens needs at least "*" TB for each rank; "*" has "*": use fewer layers, "* ]]
    run -2 timeout "$HANG" zs-verify --num_layers 100000 --batch_size 1000000000
    [[ $output == "zs-verify: tiny with 100000 layers, "*" needs at least "* ]]
  )
  [ ! -e runs ]
}

@test "zs-train: a checkpoint's steps count, and the error says how to add more" {
  zs-train "${small[@]}" --max_steps 3 >log
  run -2 zs-train "${small[@]}" --max_steps 2 --checkpoint runs/*/final_checkpoint
  [[ $output == "zs-train: runs/"*"/final_checkpoint: has 3 steps done, and they count: of 2 none is left. For as many more, set --max_steps 5" ]]
  run -0 zs-train "${small[@]}" --max_steps 5 --save_final false --checkpoint runs/*/final_checkpoint
}

@test "zs-train: names with one letter between them have names of their own, and the old ones still work" {
  zs-train "${small[@]}" --max_steps 4 --save_final false --lr_warmup_steps 4 --timing_warmup 3 >new
  zs-train "${small[@]}" --max_steps 4 --save_final false --set training.warmup_steps=4 training.warmup_step=3 >old
  diff <(grep -o 'Loss: [^ ]*\|learning_rate: [^ ]*\|^state_digest.*\|.*warmup.*' new | grep -v command) \
    <(grep -o 'Loss: [^ ]*\|learning_rate: [^ ]*\|^state_digest.*\|.*warmup.*' old | grep -v command)
  grep -qx 'run: timing_warmup=3' new
  grep -qx 'run: lr_warmup_steps=4' new
  # Three steps left out of four: the summary is the last step's own time.
  [ "$(sed -n 's/^Summary.*iteration_time: \([^ ]*\) .*/\1/p' new)" = "$(sed -n 's/.*Step 4,.* time: \([^ ]*\) .*/\1/p' new)" ]
}

@test "batch.sbatch: epochs that are asked for lift its own limit of steps, and --max_steps that of a set" {
  fake_trainer
  printf 'sets: {one: {conditions: {a: {zero_stage: 0, bench_step: 9}, b: --zero_stage 1}}}\n' >sets.yaml
  ZS_CONDITIONS=sets.yaml ZS_RANKS=1 run bash "$ROOT/slurm/batch.sbatch" one -- --max_steps 5
  [ "$(sed -n 's/^  max_steps: \([0-9]*\) .*/\1/p' saved_models/*/config.yaml | sort -u)" = 5 ]
  rm -rf results saved_models
  ZS_CONDITIONS=sets.yaml ZS_RANKS=1 run bash "$ROOT/slurm/batch.sbatch" one -- --num_epochs 2
  [ "$(grep -h 'max_steps:\|num_epochs:' saved_models/*/config.yaml | sed 's/ *#.*//' | sort | uniq -c | xargs)" = "1 max_steps: 9 2 num_epochs: 2" ]
}

@test "zs-train: a setting that nothing reads is refused, with the switch that would make it count; zs-runs plan agrees" {
  refuses_with "zs-train: --profile_dir has no effect here: it needs --profile or --profile_steps; leave it out" zs-train "${small[@]}" --profile_dir traces
  refuses_with "zs-train: --set: training.loss_scale has no effect here: it needs --dtype float16 or --autocast float16; leave it out, or set it to null" \
    zs-train "${small[@]}" --set training.loss_scale=64
  refuses_with "zs-train: --tf32 has no effect here: it needs a GPU; leave it out" zs-train "${small[@]}" --device cpu --tf32
  refuses_with "zs-train: --image_mean has no effect here: it needs a model that takes images; leave it out" zs-train "${small[@]}" --image_mean 0.3
  refuses_with "zs-train: --results has no effect with --print_plan: leave it out (see zs-train --help)" zs-train "${small[@]}" --print_plan --results r.json
  refuses_with "zs-train: --backend: the backend ddp says 0, and --zero_stage says zero.stage is 3: leave one of them out" zs-train "${small[@]}" --backend ddp --zero_stage 3
  [ ! -e runs ]
  run -0 zs-train "${small[@]}" --max_steps 1 --save_final false --profile --profile_dir traces
  compgen -G 'traces/rank-0.*'
}

@test "zs-train --resume: what is set for the rest of a run stays for the next resume, and is told at its step" {
  zs-train "${small[@]}" --max_steps 4 --save_steps 2 --save_final false --run_name x
  cp runs/2*/config.yaml before.yaml
  zs-train --resume x --registry runs --max_steps 6 --learning_rate 0.5 --log_interval 1 --save_final true --save_steps 4 >log
  grep -qx 'note: training.learning_rate is 0.5 from step 5 on (--learning_rate), and was 0.001' log
  [ "$(sed -n 's/.*Step 6,.*learning_rate: \([^ ]*\).*/\1/p' log)" = 0.5 ]
  cmp runs/2*/config.4.yaml before.yaml
  zs-train --resume x --registry runs --max_steps 8 >log
  [ "$(sed -n 's/.*Step 8,.*learning_rate: \([^ ]*\).*/\1/p' log)" = 0.5 ]
  # The newest checkpoint is final_checkpoint, of step 6.
  run ! grep -q 'Step 6,' log
  refuses_with "zs-train: --run_name has no effect with --resume: a run keeps its name; leave it out (see zs-train --help)" zs-train --resume x --registry runs --run_name y
}

@test "zs-train: of another program's options, those that change nothing are taken, and the others are translated" {
  zs-train "${small[@]}" --max_steps 1 --save_final false --eager --attn_impl sdpa --host_ip 127.0.0.1 --machine_rank 0 \
    --sync_before_reduce --sync_after_reduce --sync_before_allgather --sync_after_allgather >log
  for option in eager attn_impl host_ip machine_rank sync_{before,after}_{reduce,allgather}; do
    grep -q "^note: --$option has no effect: " log || complain "$option: $(grep ^note: log)"
  done
  translated() {
    run -2 zs-train "${small[@]}" --max_steps 1 "$1"
    [[ $output == *"unknown option '$1', did you mean '$2'?"* ]] || complain "$output"
  }
  translated --save_weights "--save_initial DIR"
  translated --load_weights "--model_name FOLDER"
  translated --offload_opt_states "--passes offload_adam_states"
  run -2 zs-train "${small[@]}" --max_steps 1 --eager --compile
  [[ $output == *"--eager asks for plain kernels and --compile for fused ones"* ]] || complain "$output"
  verdict
}
