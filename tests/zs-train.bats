# SPDX-License-Identifier: Apache-2.0
# Training on real MPI ranks: the same bits for every stage and number of ranks, and clear errors.
setup_file() {
  load helper
  warm
  cd "$BATS_FILE_TMPDIR"
  export SMALL="--model_name tiny --num_layers 2 --seq_length 32 --batch_size 1 --bench_step 6 --log_interval 2"
  train 1 8 --zero_stage 0 --output_dir reference --eval >reference.log
}

setup() {
  load helper
  warm
  load digests
  cd "$BATS_FILE_TMPDIR"
}

# train RANKS ACCUMULATION OPTION...: zs-train on so many ranks.
train() {
  local ranks=$1 steps=$2
  shift 2
  # shellcheck disable=SC2086
  timeout "$HANG" mpirun --oversubscribe --bind-to none -n "$ranks" zs-train $SMALL --gradient_accumulation_steps "$steps" "$@"
}

digest() { sed -n 's/^state_digest: //p' "$1"; }

# noted GROUP RANKS ACCUMULATION STAGE: a training for one_digest_each, of odd stages with the compiled schedule.
noted() { training "$1" "$2" "$SMALL --gradient_accumulation_steps $3 --zero_stage $4 $( (($4 % 2)) && echo --deepcompile) --output_dir out"; }

@test "zs-train: every stage, baseline and compiled, on 1, 2 and 4 ranks ends with one state digest" {
  [[ $(digest reference.log) =~ ^[0-9a-f]{32}$ ]]
  for ranks in 1 2 4; do
    for stage in 0 1 2 3; do
      noted all $ranks $((8 / ranks)) $stage
    done
  done
  run -0 one_digest_each
  [[ $output == "all $(digest reference.log)" ]] || complain "$output"
  # The program itself, whose losses are the same too.
  for ranks in 2 4; do
    train $ranks $((8 / ranks)) --zero_stage 3 --deepcompile --output_dir out >log
    [[ $(digest log) == "$(digest reference.log)" ]] || complain "$ranks ranks: $(digest log)"
    diff <(grep -o 'Loss: [^ ]*' reference.log) <(grep -o 'Loss: [^ ]*' log) || complain "$ranks ranks: losses"
  done
  verdict
}

@test "zs-train: names for plans: fsdp is stage 3, ddp stage 0, deepspeed zero" {
  for backend in fsdp ddp deepspeed; do
    training names 2 "$SMALL --gradient_accumulation_steps 4 --backend $backend --output_dir out"
  done
  run -0 one_digest_each
  [[ $output == "names $(digest reference.log)" ]]
}

@test "zs-train: bytes sent are the bandwidth-optimal formula of each stage" {
  psi=$(sed -n 's/^run: model.parameters=//p' reference.log)
  declare -A factor=([0]=2 [1]=2 [2]=5 [3]=12) # times psi (N-1)/N elements, with 4 accumulation steps
  for stage in 0 1 2 3; do
    train 2 4 --zero_stage $stage --bench_step 2 --output_dir out >log
    sent=$(sed -n 's/^Epoch.*comm_bytes: \([0-9]*\).*/\1/p' log | tail -n 1)
    ((sent == factor[$stage] * psi * 4 / 2)) || complain "stage $stage sends $sent bytes, psi is $psi"
  done
  verdict
}

@test "zs-train: metrics.h5 holds what the log says, to the last bit" {
  run -0 zs-parse reference.log --run x -o log.tsv
  run -0 bash -c 'zs-aggregate --format tsv reference/*/metrics.h5'
  /usr/bin/python3 - <<'END'
import glob, h5py
name = glob.glob("reference/*/metrics.h5")[0]
runs = h5py.File(name)["runs"]
run = runs[list(runs)[0]]
rows = [line.rstrip("\n").split("\t") for line in open("log.tsv") if not line.startswith("#")]
header, rows = rows[0], rows[1:]
assert len(rows) == 4 and len(run["step"]) == 6, (len(rows), len(run["step"]))
for row in rows:
    cells = dict(zip(header, row))
    at = int(cells["step"]) - 1
    for column in ("loss", "iteration_time", "grad_norm", "valid_loss"):
        if cells[column]: assert float(cells[column]) == run[column][at], (column, cells[column], run[column][at])
assert cells["valid_loss"]
END
}

@test "zs-train: --print_plan prints the plan, a pass at a wrong place is refused" {
  run -0 zs-train $SMALL --zero_stage 3 --passes selective_gather,prefetch --print_plan
  [[ ${lines[0]} == "# plan: stage 3, 1 ranks, 1 micro-steps, passes: selective_gather prefetch" ]]
  [[ $output == *$'\tnorm'* ]]
  run -2 zs-train $SMALL --zero_stage 3 --passes prefetch,selective_gather --print_plan
  [[ $output == *"use --passes selective_gather,prefetch"* ]]
}

@test "zs-train: any number of ranks that has the step's micro-batches ends with one state digest" {
  train 1 12 --output_dir out >log
  twelve=$(digest log)
  [[ $twelve =~ ^[0-9a-f]{32}$ ]]
  for ranks in 3 6; do
    for stage in 1 3; do
      noted twelve $ranks $((12 / ranks)) $stage
    done
  done
  # Five and seven ranks have not as many each; of three one has none of two.
  for stage in 0 1 2 3; do
    training twelve $((stage < 2 ? 5 : 7)) "$SMALL --train_batch_size 12 --zero_stage $stage $( ((stage % 2)) && echo --deepcompile) --output_dir out"
  done
  training two 1 "$SMALL --gradient_accumulation_steps 2 --output_dir out"
  for stage in 1 3; do
    training two 3 "$SMALL --train_batch_size 2 --zero_stage $stage --output_dir out"
  done
  run -0 one_digest_each
  [[ $output == *"twelve $twelve"* ]] || complain "$output"
  shares() { # shellcheck disable=SC2086
    timeout "$HANG" mpirun --oversubscribe --bind-to none -n "$1" zs-train $SMALL --train_batch_size 12 --output_dir out "${@:2}"
  }
  shares 5 --zero_stage 3 --offload_device cpu --offload_param cpu --activation_checkpointing >log 2>err
  grep -q '12 micro-batches a step on 5 ranks: 3 have none in the last of 3 micro-steps' err || complain "$(cat err)"
  [[ $(digest log) == "$twelve" ]] || complain "offloaded: $(digest log)"
  grep -qx 'run: global_batch_size=12' log || complain "$(grep global_batch log)"
  verdict
}

@test "zs-train: a rank sends what its micro-batches are in whole subtrees: the formula of zs-plan" {
  psi=$(sed -n 's/^run: model.parameters=//p' reference.log)
  # 12 micro-batches on 3 ranks: a subtree of 4 leaves each. On 4 ranks: 2 + 1 leaves, so two sums of each rank.
  for way in "3 4 1" "4 3 2"; do
    read -r ranks steps sums <<<"$way"
    train "$ranks" "$steps" --zero_stage 1 --bench_step 2 --output_dir out >log
    sent=$(sed -n 's/^Epoch.*comm_bytes: \([0-9]*\).*/\1/p' log | tail -n 1)
    # The log has the most of a rank: slices are even to one element.
    ideal=$(((sums + 1) * psi * 4 * (ranks - 1) / ranks))
    ((sent >= ideal && sent <= ideal + 400)) || complain "$ranks ranks send $sent bytes, expected $ideal, psi is $psi"
  done
  verdict
}

@test "zs-train: a batch that cannot be divided is refused, saying what would do" {
  # shellcheck disable=SC2086
  run -2 mpirun --oversubscribe -n 3 zs-train --model_name tiny --max_steps 1 --train_batch_size 4 --output_dir out3
  [[ $output == *"train_batch_size is 4, and batch_size x gradient_accumulation_steps x ranks is ? x ? x 3"*"with batch_size set ranks may have one micro-batch less than others"* ]]
  run -2 mpirun --oversubscribe -n 3 zs-train --model_name tiny --max_steps 1 --train_batch_size 4 --batch_size 1 --gradient_accumulation_steps 4 --output_dir out3
  [[ $output == *"is 1 x 4 x 3: no whole numbers make them equal"* ]]
  [ ! -e out3 ]
}

@test "zs-train: a token file, and text through a tokenizer, train alike; a tokenizer past the vocabulary is an error" {
  export ZS_CACHE=$PWD/cache
  cp /usr/share/common-licenses/GPL-3 text
  zs-tokenize -t "$ROOT/tests/token/gpt2.json" text -o text.bin
  run -0 zs-train $SMALL --dataset text.bin --set model.vocab_size=1000 --output_dir tokens
  first=$(digest <(echo "$output"))
  [ -n "$first" ]
  for round in 1 2; do # the second time from the cache
    run -0 zs-train $SMALL --dataset text --tokenizer "$ROOT/tests/token/gpt2.json" --set model.vocab_size=1000 --output_dir text$round
    [[ $(digest <(echo "$output")) == "$first" ]]
  done
  [ "$(find cache -name '*.bin' | wc -l)" = 1 ]
  run -2 zs-train $SMALL --dataset text.bin --set model.vocab_size=300 --output_dir out3
  [[ $output == *"text.bin: holds the id "*", but the vocabulary has 300: "* ]]
  [ ! -e out3 ]
}

@test "zs-train: bad input is a clear error with status 2, and leaves nothing" {
  printf 'model:\n  name: tiny\n batch: [\n' >typo.yaml
  run -2 zs-train typo.yaml --output_dir out4
  [[ $output == *"typo.yaml:"[0-9]*":"[0-9]*": "* ]]
  unset ZS_DATA
  run -2 zs-train $SMALL --dataset no-such-text --output_dir out4
  [[ $output == "zs-train: no-such-text: No such file or directory; a data set's name is looked for in the folder \$ZS_DATA, which is not set" ]]
  printf 'too short' >short.txt
  run -2 zs-train $SMALL --dataset short.txt --output_dir out4
  [[ $output == *"short.txt: holds 9 tokens, too few"* ]]
  run -2 zs-train --model_name tinny --output_dir out4
  [[ $output == *"did you mean 'tiny'?"* ]]
  run -2 zs-train $SMALL --learning_rate nan --output_dir out4
  [ ! -e out4 ]
  run -2 zs-train $SMALL --output_dir /proc/nowhere
  [[ $output == *"/proc/nowhere"* ]]
}

@test "zs-train: a folder of texts, gzip or not, is a data set; what is not text is left out" {
  mkdir -p texts
  cp /usr/share/common-licenses/Apache-2.0 texts/a.txt
  gzip -c /usr/share/common-licenses/BSD >texts/b.gz
  head -c 5000 /dev/zero >texts/c.bin
  run -0 zs-train $SMALL --dataset texts --output_dir out
  [[ $output == *"dataset_tokens=$(($(wc -c </usr/share/common-licenses/Apache-2.0) + $(wc -c </usr/share/common-licenses/BSD) + 1))"* ]]
}

@test "zs-train: a killed rank ends the run, and no rank remains" {
  export ZS_MARK=killed-$BATS_SUITE_TMPDIR
  # shellcheck disable=SC2086
  mpirun --oversubscribe --bind-to none -n 2 zs-train $SMALL --bench_step 100000 --output_dir out5 >killed.log 2>&1 &
  launcher=$!
  await grep -q 'Step 2,' killed.log
  mapfile -t ranks < <(marked zs-train)
  ((${#ranks[@]} == 2))
  kill -KILL "${ranks[1]}"
  wait $launcher && status=0 || status=$?
  echo "mpirun ended with $status"
  ((status != 0))
  gone() { [ -z "$(marked zs-train)" ]; }
  await gone
  run -1 zs-aggregate --format tsv out5/*/metrics.h5 # TRUNCATED, and readable
}

@test "on a terminal one line shows how far it is, and the log is in its file; a pipe gets the log" {
  command -v script >/dev/null || no_package bsdutils
  cd "$BATS_TEST_TMPDIR"
  small="zs-train --model_name tiny --num_layers 1 --seq_length 32 --max_steps 30 --log_interval 1"
  TERM=xterm script -qec "$small --run_name seen" /dev/null </dev/null >screen
  grep -qE '\[#+-*\] step [0-9]+/30  loss [0-9.]+  .*tokens/s  [0-9]+:[0-9]{2}:[0-9]{2} left' screen || complain "no progress: $(cat -v screen)"
  grep -qE 'final loss [0-9.]+, state digest [0-9a-f]{32}' screen || complain "no result: $(cat -v screen)"
  if grep -q 'Epoch 1, Step' screen; then complain "log lines on a terminal"; fi
  [ "$(grep -c '^Epoch 1, Step' saved_models/*/run.log)" -eq 30 ] || complain "the log is not whole"
  run -0 --separate-stderr $small
  [ "$(grep -c '^Epoch 1, Step' <<<"$output")" -eq 30 ] || complain "a pipe gets no log"
  [ -z "$stderr" ] || complain "stderr: $stderr"
  verdict
}

@test "zs-train: where memory gives out, it says what was asked, what is held and what needs less" {
  # Less than the model's state, then room for that and not for the logits.
  for case in "2500000 --model_name gpt2-large --zero_stage 0" "4000000 --model_name gpt2 --num_layers 1 --batch_size 64 --zero_stage 1 --offload_device nvme --nvme_path nvme --offload_ratio 0.5" \
    "4000000 --model_name gpt2 --num_layers 1 --batch_size 64"; do
    read -r limit options <<<"$case"
    # shellcheck disable=SC2086
    run -2 --separate-stderr bash -c 'ulimit -v "$1" && shift && exec zs-train "$@"' _ "$limit" $options --seq_length 256 --bench_step 1 \
      --save_final false --output_dir out
    # A model that takes a while to make is told first.
    [[ ${stderr_lines[-1]} =~ ^"zs-train: no room for "[0-9.]+" "[MG]"B on cpu, where "[0-9.]+" "[MG]"B are held; parameters, gradients and optimizer state are " ]] ||
      complain "$case: $stderr"
    [[ $stderr == *"less "*"on more ranks"*"--activation_checkpointing keeps the activations of one layer" ]] || complain "$case: $stderr"
    [[ $options != *offload* || $stderr == *"; --offload_ratio 1 leaves no optimizer state there"* ]] || complain "$case: $stderr"
    [[ ${#stderr_lines[@]} == 1 || ( ${#stderr_lines[@]} == 2 && ${stderr_lines[0]} == *": to make it takes a while" ) ]] || complain "$case: $stderr"
  done
  [[ $stderr == *"--max_gpu_batch_size 32 keeps the activations of half of the sequences"* ]] || complain "$stderr"
  verdict
}
