# SPDX-License-Identifier: Apache-2.0
# Training on real MPI ranks: the same bits whatever the stage and rank count, and clear errors.
setup_file() {
  load helper
  cd "$BATS_FILE_TMPDIR"
  export SMALL="--model_name tiny --num_layers 2 --seq_length 32 --batch_size 1 --bench_step 6 --log_interval 2"
  train 1 8 --zero_stage 0 --output_dir reference --eval >reference.log
}

setup() {
  load helper
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

@test "zs-train: every stage, baseline and compiled, on 1, 2 and 4 ranks ends with one state digest" {
  [[ $(digest reference.log) =~ ^[0-9a-f]{32}$ ]]
  for ranks in 1 2 4; do
    for stage in 0 1 2 3; do
      extra=(); ((stage % 2)) && extra=(--deepcompile)
      train $ranks $((8 / ranks)) --zero_stage $stage "${extra[@]}" --output_dir out >log
      [[ $(digest log) == "$(digest reference.log)" ]] || complain "stage $stage on $ranks ranks: $(digest log)"
      diff <(grep -o 'Loss: [^ ]*' reference.log) <(grep -o 'Loss: [^ ]*' log) || complain "stage $stage on $ranks ranks: losses"
    done
  done
  verdict
}

@test "zs-train: names for plans: fsdp is stage 3, ddp stage 0, deepspeed zero" {
  for backend in fsdp ddp deepspeed; do
    train 2 4 --backend $backend --output_dir out >log
    [[ $(digest log) == "$(digest reference.log)" ]] || complain "$backend: $(digest log)"
  done
  verdict
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

@test "zs-train: a rank count that does not suit is refused, saying which do" {
  run train 3 1 --zero_stage 2 --output_dir out3
  ((status == 2))
  [[ $output == *"exact sums need a power of two of ranks (1, 2, 4, 8 "* ]]
  run -2 train 1 3 --output_dir out3
  [[ $output == *"power of two of gradient accumulation steps"*"--reduction any"* ]]
  [ ! -e out3 ]
}

@test "zs-train: --reduction any takes any rank count, says once what is lost, and repeats its bits" {
  for stage in 1 3; do
    run -0 --separate-stderr train 3 2 --zero_stage $stage --reduction any --bench_step 4 --output_dir any
    [[ $stderr == *"3 ranks x 2 accumulation steps"* ]]
    [[ $(grep -c "accumulation steps" <<<"$stderr") == 1 ]]
    first=$(grep ^state_digest: <<<"$output")
    [[ $(train 3 2 --zero_stage $stage --reduction any --bench_step 4 --output_dir any 2>/dev/null | grep ^state_digest:) == "$first" ]]
  done
  run -0 --separate-stderr train 2 4 --reduction any --output_dir any
  [ -z "$stderr" ]
  [[ $(digest <(echo "$output")) == "$(digest reference.log)" ]]
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
  for case in "2500000 --model_name gpt2-large --zero_stage 0" "4000000 --model_name gpt2 --num_layers 1 --batch_size 64"; do
    read -r limit options <<<"$case"
    # shellcheck disable=SC2086
    run -2 --separate-stderr bash -c 'ulimit -v "$1" && shift && exec zs-train "$@"' _ "$limit" $options --seq_length 256 --bench_step 1 \
      --save_final false --output_dir out
    # A model that takes a while to make is told first.
    [[ ${stderr_lines[-1]} =~ ^"zs-train: no room for "[0-9.]+" "[MG]"B on cpu, where "[0-9.]+" "[MG]"B are held; parameters, gradients and optimizer state are " ]] ||
      complain "$case: $stderr"
    [[ $stderr == *"less "*"on more ranks"*"--activation_checkpointing keeps those of one layer" ]] || complain "$case: $stderr"
    [[ ${#stderr_lines[@]} == 1 || ( ${#stderr_lines[@]} == 2 && ${stderr_lines[0]} == *": to make it takes a while" ) ]] || complain "$case: $stderr"
  done
  [[ $stderr == *"--max_gpu_batch_size 32 keeps the activations of half as many sequences"* ]] || complain "$stderr"
  verdict
}
