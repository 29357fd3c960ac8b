# SPDX-License-Identifier: Apache-2.0
# Operands: every tool gives a file, folder or run the same meaning, or rejects it with the same words.
# setup_file makes all kinds of operands once, with the tools.
setup_file() {
  load helper
  warm
  cd "$BATS_FILE_TMPDIR"
  local data=$ROOT/tests/data tiny="--model_name tiny --num_layers 1 --seq_length 16 --batch_size 1 --max_steps 4 --save_steps 2"
  # shellcheck disable=SC2086
  zs-train $tiny --run_name alpha1 --zero_stage 3 --deepcompile --profile_steps 3 >/dev/null
  one=$(basename saved_models/2*) && export one
  # shellcheck disable=SC2086
  zs-train $tiny --run_name alpha2 --seed 7 >/dev/null
  log 1 >a.log
  gzip -c a.log >packed.log.gz
  zs-parse a.log >records.tsv
  zs-parse a.log --format h5 -o records.h5
  gzip -c records.tsv >records.gz
  zstd -q records.tsv -o records.zst
  zs-aggregate records.tsv -o summary.h5
  mkdir logs results empty deepspeed trainer traces
  for folder in logs results; do
    cp a.log $folder/one.log
    log 2 >$folder/two.log
  done
  echo '{"conditions": {"one": {"exit_code": 0}, "two": {"exit_code": 0}}}' >results/metadata.json
  tar xzf "$data/checkpoints/0.19.8-deepspeed-stage2-ranks2-dtypebf16.tar.gz" -C deepspeed --strip-components 1
  tar xzf "$data/checkpoints/trainer.tar.gz" -C trainer --strip-components 1
  cp "saved_models/$one/profile.json" .
  cp "saved_models/$one/final_checkpoint/gradients.pt" .
  cp "saved_models/$one/final_checkpoint/pytorch_model.bin" weights.pt
  zs-checkpoint convert --to safetensors "saved_models/$one/checkpoint_2" converted >/dev/null
  cp converted/model.safetensors .
  cp -r "$data/probe/whole" probe
  python3 "$ROOT/tests/rollouts.py" zs none dump
  cp "$data/traces/"rank-*.gz traces
  cp traces/rank-0.pt.trace.json.gz trace.gz
  echo '{"schema": "1.0.1", "pid": 7, "nodes": [{"name": "aten::add", "id": 2}]}' >execution.json
  cp -r "$data/trackers/wandb" wandb
  cp -r "$data/trackers/tensorboard" tensorboard
  cp wandb/*/run-peer0001.wandb .
  cp tensorboard/tensors/events* events.out.tfevents.1
  printf 'model:\n  name: tiny\n' >config.yaml
  printf 'sweep_name: s\nparameters:\n  zero.stage: {values: [1, 2]}\n' >sweep.yaml
  printf 'run_name,loss\nx,1\n' >table.csv
  cp "$data/images/rgba.png" image.png
  : >empty.log
  head -c 4096 /dev/urandom >random.bin
  cp "$ROOT/tests/token/merges.txt" "$ROOT/tests/token/vocab.json" .
  zs-tokenize -t vocab.json merges.txt -o tokens.bin
}

setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
}

# log FACTOR: a log of eight steps of a loss.
log() { awk -v k="$1" 'BEGIN { for (i = 1; i <= 8; i++) print "Epoch 1, Step " i ", Loss: " 4 / (i + k) " sync: True time: 0." k " alloc_mem: 1000000 peak_mem: 2000000" }'; }

@test "records are told by their first bytes, through compression, by every tool" {
  log 1 >a.log
  log 2 >b.log
  zs-parse a.log b.log >two.tsv
  grep -v '^#' two.tsv >bare.tsv
  printf '\xEF\xBB\xBF' | cat - two.tsv >marked.txt
  gzip -c two.tsv >two.gz
  zstd -q two.tsv -o two.tsv.zst
  zs-parse a.log b.log --format h5 -o two.h5
  gzip -c two.h5 >h5.packed
  for file in two.tsv bare.tsv marked.txt two.gz two.tsv.zst two.h5 h5.packed; do
    [ "$(zs-aggregate "$file" -f tsv | cut -f1 | paste -sd,)" = condition,a,b ] || complain "zs-aggregate $file"
    [ "$(zs-report "$file" -f md | grep -oE '^\| `?[ab]`? ' | sort -u | tr -d '|` \n')" = ab ] || complain "zs-report $file"
    zs-plot loss "$file" -o picture.svg || complain "zs-plot $file"
    for name in a b; do grep -q ">$name<" picture.svg || complain "zs-plot $file: no $name"; done
    run -2 zs-verify "$file" a.log
    [[ $output == *"holds 2 runs, expected one"* ]] || complain "zs-verify $file: $output"
  done
  verdict
}

@test "a name that is no run is told alike by every tool, with the nearest" {
  for name in alpha1 alpha2; do zs-runs add -r saved_models run_name=$name >/dev/null; done
  for id in saved_models/2*; do log 1 | zs-parse --format h5 -o "$id/metrics.h5"; done
  for command in 'zs-runs show' zs-report 'zs-plot loss' zs-aggregate 'zs-verify alpha1' 'zs-plot gradients' 'zs-report --gradients'; do
    # shellcheck disable=SC2086
    run -2 $command alpha3
    [[ $output == "${command%% *}: no run 'alpha3', did you mean 'alpha1'?" ]] || complain "$command: $output"
    # shellcheck disable=SC2086
    run -2 $command 2
    [[ $output == "${command%% *}: 2 runs begin with '2': "* ]] || complain "$command: $output"
  done
  verdict
}

# A row a thing that somebody names: the operand, what a sentence calls it, and what each tool makes of it: the status where
# the tool takes it, '-' where it refuses it with the one sentence, 'o' where it refuses it with words of its own, which the
# last field has. The columns: zs-parse, zs-aggregate, zs-report, zs-plot loss; zs-plot gradients, zs-report --gradients;
# zs-plot trace, zs-report --trace, zs-trace; zs-checkpoint; zs-runs show, import; zs-plan; zs-tokenize, its --info;
# zs-verify beside a run, beside a checkpoint; zs-train; zs-sweep.
things() {
  cat <<'END_OF_TABLE'
records.tsv|a file of metric records|0 0 0 0 - - - - - - - o - 0 - 1 o - -|holds records and no summary|name two runs
records.h5|a file of metric records in HDF5|0 0 0 0 - - - - - - - o - - - 1 o - -|holds records and no summary|name two runs
records.gz|a file of metric records|0 0 0 0 - - - - - - - o - 0 - 1 o - -|holds records and no summary|name two runs
records.zst|a file of metric records|0 0 0 0 - - - - - - - o - 0 - 1 o - -|holds records and no summary|name two runs
summary.h5|a file of metric records in HDF5|0 0 0 0 - - - - - - - 0 - - - 1 o - -|name two runs
a.log|a text|0 0 0 0 - - - - - - - o - 0 - 1 o o o|is it a table of runs|name two runs|illegal map value
packed.log.gz|a text|0 0 0 0 - - - - - - - o - 0 - 1 o o o|is it a table of runs|name two runs|illegal map value
logs|a folder of logs|0 0 0 0 - - - - - - - - - 0 - o o - -|holds 2 runs, expected one|name two runs
results|the results folder of an experiment|0 0 0 0 - - - - - - 0 - - 0 - o o - -|holds 2 runs, expected one|name two runs
saved_models/one|the folder of a run|0 0 0 0 0 0 0 0 0 0 0 - 0 - - 3 o - -|name two runs
alpha1|-|0 0 0 0 0 0 0 0 0 0 0 o 0 o o 3 o o o|No such file or directory|name two runs
PREFIX|-|0 0 0 0 0 0 0 0 0 0 0 o 0 o o 3 o o o|No such file or directory|name two runs
2|-|o o o o o o o o o o o o o o o o o o o|2 runs begin with '2': |No such file or directory
alpha3|-|o o o o o o o o o o o o o o o o o o o|no run 'alpha3', did you mean 'alpha1'?|No such file or directory
saved_models|a folder of runs|0 0 0 0 - - - - - - - - - - - o o - -|holds 2 runs, expected one|name two runs
saved_models/one/final_checkpoint|a checkpoint|- - - - 0 0 - - - 0 - - - - - o 1 - -|name two runs
saved_models/one/checkpoint_2|a checkpoint|- - - - 0 0 - - - 0 - - - - - o 0 - -|name two runs
deepspeed|a checkpoint|- - - - o o - - - 0 - - - - - o 1 - -|has no gradients.pt|name two runs
trainer|a folder of checkpoints|- - - - o o - - - 0 - - - - - o 1 - -|has no gradients.pt|name two runs
model.safetensors|a file of tensors|- - - - 0 0 - - - 0 - - - - - o 0 - -|name two runs
weights.pt|a file of tensors|- - - - 0 0 - - - 0 - - - - - o 1 - -|name two runs
gradients.pt|a file of tensors|- - - - 0 0 - - - 0 - - - - - o 1 - -|name two runs
probe|the folder of a probe|- - 3 - - - - - - - - - - o - o o - -|has no "text"|name two runs|is a record of zs_probe
dump|a dump of log-probabilities|- - 0 - - - - - - - - - - o - o o - -|zs-tokenize takes text|name two runs|holds log-probabilities, and another
trace.gz|a profiler trace|- - - - - - 0 0 0 - - - - 0 - - - - -
execution.json|an execution trace of PyTorch, without times|- - - - - - - - - - - - - 0 - - - - -
traces|a folder of profiler traces|- - - - - - 0 0 0 - - - - 0 - - - - -
wandb|a folder of runs of TensorBoard, W&B or MLflow|0 1 1 0 - - - - - - - - - - - 3 o - -|name two runs
run-peer0001.wandb|a run of TensorBoard or W&B|0 1 1 0 - - - - - - - - - - - 3 o - -|name two runs
tensorboard|a folder of runs of TensorBoard, W&B or MLflow|0 1 1 0 - - - - - - - - - - - o o - -|holds 2 runs, expected one|name two runs
events.out.tfevents.1|a run of TensorBoard or W&B|0 1 1 0 - - - - - - - - - - - 1 o - -|name two runs
tokens.bin|a token file|- - - - - - - - - - - - - - 0 - - - -
config.yaml|a text|1 o o o - - - - - - - o - 0 - 1 o 0 0|no metric line of a log|is it a table of runs|name two runs
vocab.json|a text|1 o o o - - - - - - - o - 0 - 1 o o o|no metric line of a log|is it a table of runs|name two runs|is not a key
profile.json|a profile of a step's operations|- - - - - - - - - - - - 0 0 - - - - -
image.png|a picture|- - - - - - - - - - - - - - - - - - -
table.csv|a text|1 o o o - - - - - - - 0 - 0 - 1 o o o|no metric line of a log|name two runs|must be a mapping
empty.log|empty|o o o o - - - - - - - o - 0 - o o o o|is empty, expected|is empty: a table of runs|name two runs
empty|a folder without anything that zs knows|- - - - - - - - - - - - - o - - - - -|holds no file
missing|-|o o o o o o o o o o o o o o o o o o o|no run 'missing'|No such file or directory
a/missing|-|o o o o o o o o o o o o o o o o o o o|a/missing: No such file or directory|no run 'a/missing'
random.bin|not a file that zs knows|- - - - - - - - - - - - - - 0 - - - -
-|a stream|0 o o o - - o o o - - o o 0 - - - o o|no metric records|is not a profiler trace|is it a table of runs|is not JSON|illegal map value
END_OF_TABLE
}

# walk COLUMN NAME COMMAND...: the answers of a tool, whose NAME the sentence has; X is the operand.
walk() {
  cd "$BATS_FILE_TMPDIR"
  local column=$1 name=$2 operand kind answers own expected pattern said matched cells=0
  shift 2
  while IFS='|' read -r operand kind answers own; do
    read -ra answers <<<"$answers"
    expected=${answers[column]}
    operand=${operand/one/$one}
    [[ $operand != PREFIX ]] || operand=${one%??}
    rm -rf elsewhere
    status=0
    said=$("${@/#X/$operand}" 2>&1 >out <"$([[ $operand == - ]] && echo a.log || echo /dev/null)") || status=$?
    cells=$((cells + 1))
    case $expected in
      # zs-tokenize takes a folder for its files, and refuses the first that is no text.
      -) [[ $status == 2 && ($said == "${name%% *}: ${operand/#-/stdin}: is $kind; $name takes "* || \
          $said == "zs-tokenize: $operand/"*": is "*"; zs-tokenize takes text"*) && $said != *$'\n'* ]] ;;
      o)
        matched=$(grep -cF "${own//|/$'\n'}" <<<"$said" || true)
        [[ $status == 2 && $said == "${name%% *}: "* && $matched != 0 ]]
        ;;
      *) [[ $status == "$expected" && (-s out || $status != 0) ]] ;;
    esac || complain "$name $operand: expected $expected, got $status: $(head -c 300 <<<"$said")"
  done < <(things)
  echo "$cells cells" >&3
  verdict
}

@test "every kind of thing: zs-parse" { walk 0 zs-parse zs-parse X; }
@test "every kind of thing: zs-aggregate" { walk 1 zs-aggregate zs-aggregate X -f tsv; }
@test "every kind of thing: zs-report" { walk 2 zs-report zs-report X -f md -o -; }
@test "every kind of thing: zs-plot" { walk 3 zs-plot zs-plot loss X; }
@test "every kind of thing: zs-plot gradients" { walk 4 'zs-plot gradients' zs-plot gradients X; }
@test "every kind of thing: zs-report --gradients" { walk 5 'zs-report --gradients' zs-report -f md -o - --gradients X; }
@test "every kind of thing: zs-plot trace" { walk 6 'zs-plot trace' zs-plot trace X; }
@test "every kind of thing: zs-report --trace" { walk 7 'zs-report --trace' zs-report -f md -o - --trace X; }
@test "every kind of thing: zs-trace" { walk 8 zs-trace zs-trace X; }
@test "every kind of thing: zs-checkpoint" { walk 9 zs-checkpoint zs-checkpoint show X; }
@test "every kind of thing: zs-runs show" { walk 10 zs-runs zs-runs show X; }
@test "every kind of thing: zs-runs import" { walk 11 'zs-runs import' zs-runs import -r elsewhere X; }
@test "every kind of thing: zs-plan" { walk 12 zs-plan zs-plan X; }
@test "every kind of thing: zs-tokenize" { walk 13 zs-tokenize zs-tokenize -t vocab.json X; }
@test "every kind of thing: zs-tokenize --info" { walk 14 'zs-tokenize --info' zs-tokenize --info X; }
@test "every kind of thing: zs-verify beside a run" { walk 15 zs-verify zs-verify X alpha2; }
@test "every kind of thing: zs-verify beside a checkpoint" { walk 16 zs-verify zs-verify X converted/model.safetensors; }
@test "every kind of thing: zs-train" { walk 17 zs-train zs-train --print_plan X; }
@test "every kind of thing: zs-sweep" { walk 18 zs-sweep zs-sweep --dry_run X sweep.yaml; }

# The actions of zs-runs that take runs; X is the operand.
actions_of_runs=('show X' 'diff X alpha2' 'update X note=1' 'rerun X --dry_run' 'export X elsewhere' 'rm X')
answer() { # answer ACTION NAME: status and output
  local words
  read -ra words <<<"$1"
  rm -rf elsewhere
  status=0
  said=$(zs-runs "${words[@]/#X/$2}" 2>&1 </dev/null) || status=$?
  said="$status $said"
}

@test "every action of zs-runs means the same run by its id, the beginning of it, its name and its folder" {
  cd "$BATS_FILE_TMPDIR"
  for action in "${actions_of_runs[@]}"; do
    answer "$action" alpha1
    first=$said
    [[ $first == [01]' '* || $first == *"rm asks on a terminal"* ]] || complain "$action: $first"
    for name in "$one" "${one%??}" "saved_models/$one" "saved_models/$one/" "$PWD/saved_models/$one"; do
      answer "$action" "$name"
      [ "$said" = "$first" ] || complain "$action of $name: $said, and of alpha1: $first"
    done
  done
  # Training goes on with the same run.
  first=$(zs-train --resume alpha1 2>&1) || true
  for name in "$one" "saved_models/$one"; do
    said=$(zs-train --resume "$name" 2>&1) || true
    [[ $said == "$first" && $said == *"final_checkpoint: has 4 steps done"* ]] || complain "--resume $name: $said"
  done
  # Where the registry is another, a folder means its own.
  said=$(cd / && zs-runs -r "$PWD/empty" show "$OLDPWD/saved_models/$one" --format json)
  [[ $said == *'"run_name": "alpha1"'* ]] || complain "show of another registry: $said"
  verdict
}

@test "every action of zs-runs refuses what is no run by the same sentence" {
  cd "$BATS_FILE_TMPDIR"
  for action in "${actions_of_runs[@]}"; do
    while IFS='|' read -r name sentence; do
      answer "$action" "$name"
      [[ $said == "2 zs-runs: $sentence"* ]] || complain "$action of $name: $said"
    done <<END
a.log|a.log: is a text; zs-runs
logs|logs: is a folder of logs; zs-runs
saved_models|saved_models: is a folder of runs; zs-runs
saved_models/$one/final_checkpoint|saved_models/$one/final_checkpoint: is a checkpoint; zs-runs
traces|traces: is a folder of profiler traces; zs-runs
alpha3|no run 'alpha3', did you mean 'alpha1'?
2|2 runs begin with '2': 
a/missing|a/missing: No such file or directory
END
    [[ $action == @(show|update|rerun)* ]] || {
      answer "$action" results
      [[ $said == "2 zs-runs: results: is the results folder of an experiment; zs-runs of a run takes runs"* ]] || complain "$action of results: $said"
    }
  done
  verdict
}

@test "what may not be read is said, and is nothing else" {
  ((EUID != 0)) || skip "root may read all"
  cd "$BATS_FILE_TMPDIR"
  chmod 0 a.log
  for command in zs-parse zs-aggregate zs-report zs-trace 'zs-checkpoint show' zs-plan; do
    # shellcheck disable=SC2086
    run -2 $command a.log
    [[ $output == *"a.log: Permission denied" ]] || complain "$command: $output"
  done
  chmod 644 a.log
  verdict
}
