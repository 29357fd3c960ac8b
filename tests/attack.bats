# SPDX-License-Identifier: Apache-2.0
# Inputs that once broke zs, tested again through its commands. tests/attacks names the tests of other suites that do the
# same; `make check-attack` runs both.
setup() {
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  unset ZS_REGISTRY COLUMNS
}

# log NAME LOSS...: NAME.log, a step for each loss.
log() {
  local name=$1 step=0 loss
  shift
  for loss; do echo "Epoch 1, Step $((step += 1)), Loss: $loss sync: True time: 0.5 alloc_mem: 1 peak_mem: 2"; done >"$name.log"
}

# answers STATUS WORDS COMMAND...: within its time, with that status, and with these words somewhere.
answers() {
  local expected=$1 words=$2 status=0
  shift 2
  timeout -k 5 "$HANG" "$@" >out 2>&1 </dev/null || status=$?
  ((status == expected)) || complain "$*: status $status, not $expected: $(tail -n 5 out)"
  [[ -z $words ]] || grep -qF -- "$words" out || complain "$*: does not say '$words': $(tail -n 5 out)"
}

# states LOG...: what zs-aggregate says of each.
states() { zs-parse "$@" 2>/dev/null | zs-aggregate --warmup 0 --format tsv 2>/dev/null | tail -n +2 | cut -f4 | xargs; }

# poisoned NAME SED: two logs NAME1, NAME2 of 4 steps at two stages, each with a digest, changed by SED.
poisoned() {
  for stage in 1 2; do
    {
      printf 'run: %s\n' expected_steps=4 learning_rate=0.1 zero_stage=$stage
      for step in 1 2 3 4; do
        echo "Epoch 1, Step $step, Loss: 5.$step sync: True learning_rate: 0.1 grad_norm: 1.5 time: 0.1 alloc_mem: 1 peak_mem: 2"
      done
      echo "state_digest: 0123456789abcdef0123456789abcdef"
    } | sed "$2" >"$1$stage.log"
  done
}

@test "attack: runs that never learned, or whose gradients are not finite, are equal in vain" {
  poisoned still 's/learning_rate\([:=]\) *0.1/learning_rate\1 0/; s/= 0/=0/'
  poisoned broken '/Step 4/s/grad_norm: 1.5/grad_norm: nan/'
  poisoned skipped 's/grad_norm: 1.5/grad_norm: inf/; 1s/^/run: dtype=float16\n/'
  for name in still broken skipped; do
    answers 1 'verdict: FAILED' zs-verify ${name}1.log ${name}2.log
    [[ $(states ${name}1.log ${name}2.log) =~ ^(DEAD DEAD|DIVERGED DIVERGED)$ ]] || complain "$name: $(states ${name}1.log ${name}2.log)"
    zs-parse ${name}1.log ${name}2.log | zs-aggregate -o $name.h5 || true
    answers 1 '' zs-report $name.h5 --format md
    head -n 12 out >top
    if grep -i 'same bits' top; then complain "$name: the report says so"; fi
  done
  verdict
}

@test "attack: steps that both runs lack are no agreement, nor is a run that did not get to its end" {
  for run in a b; do
    log $run 5 4 3 2 1
    sed -i "/Step 3,/d; 1s/^/run: expected_steps=5\nrun: run_name=$run\n/" $run.log
    { printf 'run: %s\n' expected_steps=100 exit_code=1 run_name=$run; head -n 4 $run.log | grep Epoch; } >short-$run.log
  done
  [ "$(states a.log b.log)" = "TRUNCATED TRUNCATED" ] || complain "$(states a.log b.log)"
  answers 1 'verdict: FAILED' zs-verify a.log b.log
  answers 1 'verdict: FAILED' zs-verify short-a.log short-b.log
  sed -i 's/expected_steps=5/expected_steps=-5/' a.log b.log
  [[ $(states a.log b.log) != *COMPLETE* ]] || complain "-5 expected steps: $(states a.log b.log)"
  verdict
}

@test "attack: a run is not compared with itself, whatever it is called" {
  log one 5 4 3
  ln -s one.log link.log
  for other in one.log ./one.log link.log "$PWD/one.log"; do answers 2 'the same run' zs-verify one.log "$other"; done
  verdict
}

@test "attack: numbers with something glued to them are read by no reader" {
  for loss in 3,25 1,234.5 3.25.1 3.25_7 3.25e '3;25' '3 25'; do
    log glued "$loss" "$loss"
    answers 1 'glued.log:1: malformed step line' zs-parse glued.log
    if grep -q $'^glued\t' out; then complain "'$loss' gave a record: $(tail -n 1 out)"; fi
  done
  log x 3,25 2,25
  log y 3,99 2,75
  answers 1 'verdict: FAILED' zs-verify x.log y.log
  verdict
}

@test "attack: JSON keys that stand twice, numbers that JSON has not, byte order marks, CRLF" {
  echo '{"step":1,"loss":5,"loss":6}' >twice.jsonl
  answers 1 "twice.jsonl:1: malformed JSON line: key 'loss' stands twice" zs-parse twice.jsonl
  echo '{"step":1,"loss":0123}' >octal.jsonl
  answers 1 'octal.jsonl:1: malformed JSON line' zs-parse octal.jsonl
  printf '\xef\xbb\xbfstep,loss\r\n1,5\r\n2,4\r\n' >table.csv
  answers 0 $'table.csv\t2\t4' zs-parse table.csv
  printf '\xef\xbb\xbfrun: model.name=x\r\nEpoch 1, Step 1, Loss: 5 sync: True\r\n' >mark.log
  answers 0 'model.name=x' zs-parse mark.log
  verdict
}

@test "attack: a curve that is flat but for an ulp, or ends at the ends of the doubles, is drawn in little memory" {
  ulimit -v 3000000
  for losses in "5.0 5.000000000000001 5.0" "1e308 -1e308 1e308" "1e-320 1 1e308"; do
    # shellcheck disable=SC2086
    log flat $losses
    zs-parse flat.log | zs-aggregate -o flat.h5 || complain "$losses: no summary"
    answers 0 '' zs-plot loss flat.h5
    answers 0 '' zs-plot loss flat.h5 --log
    answers 0 '' zs-plot loss flat.h5 -o flat.png
    answers 0 '' zs-report flat.h5 --format html
  done
  verdict
}

@test "attack: a temporary file that somebody foresaw is not followed" {
  log run 5 4 3
  zs-parse run.log | zs-aggregate -o s.h5
  mkdir folder
  echo precious >precious
  # shellcheck disable=SC2016
  answers 0 '' bash -c 'ln -s "$PWD/precious" "folder/.out.h5.tmp.$$"; exec zs-aggregate s.h5 -o folder/out.h5'
  [ "$(cat precious)" = precious ] || complain "it was followed"
  [[ -f folder/out.h5 && ! -L folder/out.h5 ]] || complain "the output is a link"
  answers 0 '' zs-aggregate s.h5 -o "$(printf '%0250d' 1)"
  ln -s nowhere dangling
  answers 2 'dangling: is a link to nothing' zs-aggregate s.h5 -o dangling
  echo kept >read-only
  chmod 444 read-only
  answers 2 'read-only' zs-aggregate s.h5 -o read-only
  [ "$(cat read-only)" = kept ]
  verdict
}

@test "attack: values that are empty have a name, and a picture needs no folder for temporaries" {
  log run 5 4 3
  zs-parse run.log | zs-aggregate -o s.h5
  answers 2 'zs-aggregate: --output is empty' zs-aggregate s.h5 -o ''
  answers 2 'zs-aggregate: an operand is empty' zs-aggregate ''
  answers 2 'zs-runs: --registry is empty' zs-runs -r '' rm a
  TMPDIR=$PWD/none answers 0 '' zs-plot loss s.h5 -o s.png
  verdict
  [ "$(head -c 4 s.png)" = $'\x89PNG' ]
}

@test "attack: a sweep's parameter twice, a run's name as one, more runs than numbers, a wide configuration" {
  echo 'model: {name: tiny}' >base.yaml
  printf 'sweep_name: s\nparameters: {training.seed: {values: [1]}, training: {seed: {values: [2]}}}\n' >twice.yaml
  answers 2 'twice.yaml:2: training.seed is given twice' zs-sweep base.yaml twice.yaml -n
  printf 'sweep_name: s\nparameters: {run.name: {values: [a, b]}}\n' >name.yaml
  answers 2 'run.name cannot vary' zs-sweep base.yaml name.yaml -n
  { printf 'sweep_name: s\nparameters:\n' && printf '  a.k%d: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}\n' {1..30}; } >huge.yaml
  answers 2 'more than 2^64 runs' zs-sweep base.yaml huge.yaml --count
  printf 'k%d: 1\n' {1..30000} >wide.yaml
  printf 'sweep_name: s\nparameters: {training.seed: {values: [1]}}\n' >one.yaml
  answers 0 's_001' zs-sweep wide.yaml one.yaml -n
  verdict
}

@test "attack: words of a registry that a terminal, a spreadsheet or a pattern would obey" {
  answers 2 "one line, without control characters" zs-runs add "run_name=x"$'\e'"[31m" -r reg
  zs-runs -r reg add 'run_name==cmd|"/C calc"!A0' "note="$'\e'"]0;title"$'\a' >/dev/null
  for format in table tsv csv json; do
    answers 0 calc zs-runs -r reg --format $format --show run_name note
    if [ $format != csv ] && grep -q $'[\e\a]' out; then complain "$format: it is raw"; fi
  done
  answers 0 "'=cmd" zs-runs -r reg --format csv --show run_name
  answers 0 "'=cmd" cat reg/runs.csv
  answers 2 "at most 255 letters" zs-runs -r reg add "run_name=$(head -c 30000 /dev/zero | tr '\0' a)"
  zs-runs -r reg add "note=$(head -c 30000 /dev/zero | tr '\0' a)" >/dev/null
  for pattern in '.*b' 'a+b' '(a+)+b'; do answers 0 '' zs-runs -r reg --filter "note~$pattern"; done
  verdict
}

@test "attack: a record of a number beyond all, and a folder whose time was set back" {
  run=$(zs-runs -r reg add run_name=a)
  zs-runs -r reg >/dev/null
  before=$(stat -c %y "reg/$run/record")
  zs-runs -r reg update "$run" note=seen
  touch -d "$before" "reg/$run/record" "reg/$run" reg
  answers 0 seen zs-runs -r reg --show note
  printf '#zs-record 1\nrun_name\tother\n' >"reg/$run/record/99999999999999999999-x.tsv"
  answers 1 'move it away' zs-runs -r reg --show run_name
  if grep -q other out; then complain "it holds"; fi
  a=$(zs-runs -r nan add run_name=a final_valid_loss=nan) b=$(zs-runs -r nan add run_name=b final_valid_loss=3)
  answers 1 nan zs-runs -r nan diff "$a" "$b"
  verdict
}

@test "attack: settings that overflow, that contradict, or that nothing reads" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  small=(zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 1)
  answers 0 'max_gpu_batch_size takes its place: batch_size 12 is 12 micro-batches of 1' "${small[@]}" --gradient_accumulation_steps 641 --batch_size 12 --max_gpu_batch_size 1
  answers 2 'needs at least' "${small[@]}" --gradient_accumulation_steps 641 --batch_size 6700417
  answers 2 'needs at least' zs-verify --num_layers 100000
  answers 2 '--dataset is empty' "${small[@]}" --dataset ''
  answers 2 'training.lr' "${small[@]}" --set training.lr=3
  echo 'training: {lerning_rte: 5}' >mistyped.yaml
  answers 2 "nothing reads 'training.lerning_rte', did you mean 'training.learning_rate'" "${small[@]}" mistyped.yaml
  (ulimit -v 8000000; answers 2 'zs-train: ' "${small[@]}" --dataset /dev/zero; verdict) || complain "an endless data set: $(cat out)"
  verdict
}

@test "attack: JSON that is nested beyond the stack is refused by each reader of a file" {
  deep=$(printf '%0300000d' 0 | tr 0 '[')$(printf '%0300000d' 0 | tr 0 ']')
  mkdir model adapter tokenizer
  for file in model/config.json adapter/adapter_config.json tokenizer.json tokenizer/tokenizer_config.json; do
    echo "{\"x\": $deep}" >$file
  done
  cp "$ROOT/tests/token/gpt2.json" tokenizer/tokenizer.json
  echo "{\"zs_profile\": 1, \"x\": $deep}" >profile.json
  echo text >text
  answers 2 'tokenizer.json: is JSON that is nested too deeply' zs-tokenize --tokenizer tokenizer.json text
  answers 2 'tokenizer_config.json: is JSON that is nested too deeply' zs-tokenize --tokenizer tokenizer text -o text.bin
  answers 2 'profile.json: is JSON that is nested too deeply' zs-plan profile.json
  if [ -x "$BUILD/zs-train" ]; then
    answers 2 'model/config.json: is JSON that is nested too deeply' zs-train --model_name model --init_type gaussian
    answers 2 'adapter/adapter_config.json: is JSON that is nested too deeply' zs-train --model_name tiny-llama --lora_adapter adapter
  fi
  verdict
}

@test "attack: each case that other suites keep is there" {
  grep -v '^#' "$ROOT/tests/attacks" | while IFS=$'\t' read -r fault suite name; do
    [[ -n $fault && -n $suite && -n $name ]] || echo "a line is not FAULT, SUITE and TEST: $fault"
    case $suite in
      light | train) grep -rqF --include=*_test.cpp "\"$name\"" "$ROOT/lib" || echo "$suite has no '$name'" ;;
      *) grep -qF "@test \"$name\"" "$ROOT/tests/$suite.bats" || echo "$suite has no '$name'" ;;
    esac
  done >missing
  [ ! -s missing ] || complain "$(cat missing)"
  verdict
}
