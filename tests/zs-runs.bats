# SPDX-License-Identifier: Apache-2.0
# zs-runs: a registry that loses nothing, and queries.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
  unset ZS_REGISTRY COLUMNS
}

# Four runs, named a to d.
some_runs() {
  a=$(zs-runs add run_name=a sweep_name=lr model.name=gpt2 training.learning_rate=6e-4 final_valid_loss=3.5 host=n1)
  b=$(zs-runs add run_name=b sweep_name=lr model.name=gpt2 training.learning_rate=0.0006 final_valid_loss=nan host=n2)
  c=$(zs-runs add run_name=c model.name=tiny training.learning_rate=1e-3 final_valid_loss=10 status=complete)
  d=$(zs-runs add run_name=d model.name=gpt2-xl 'note=tab	"quote", comma')
}

names() { zs-runs --show run_name "$@" | tail -n +2 | xargs; }

@test "zs-runs: filters compare numbers as numbers, join by and or by or, know sweeps and short names" {
  some_runs
  [ "$(names)" = "a b c d" ]
  [ "$(names --filter model.name=gpt2)" = "a b" ]
  [ "$(names --filter model.name=gpt2 training.learning_rate=0.0006)" = "a b" ]
  [ "$(names --filter learning_rate=6e-4)" = "a b" ]
  [ "$(names --filter 'learning_rate>6e-4')" = c ]
  [ "$(names --filter 'model.name!=gpt2')" = "c d" ]
  [ "$(names --filter 'final_valid_loss<=10')" = "a c" ]
  [ "$(names --filter final_valid_loss=nan)" = b ]
  [ "$(names --filter 'model.name~gpt2-?' 'final_valid_loss!=')" = "a b" ]
  [ "$(names --filter model.name=tiny final_valid_loss=3.5 --or)" = "a c" ]
  [ "$(names --filter_sweep lr)" = "a b" ]
  [ -z "$(names --filter zero.stage=3)" ]
  # An empty list says what the columns hold.
  run -0 --separate-stderr zs-runs --filter model.name=nosuch final_valid_loss=3.5
  [[ $stderr == "zs-runs: warning: none of 4 runs passes: model.name is gpt2"*"; final_valid_loss is "*"absent in others" ]]
  run -0 --separate-stderr zs-runs --filter model.name=gpt2
  [ -z "$stderr" ]
}

@test "zs-runs: sorting, limits and columns" {
  some_runs
  [ "$(names --sort_by final_valid_loss)" = "a c b d" ]
  [ "$(names --sort_by final_valid_loss --descending)" = "c a b d" ]
  [ "$(names --sort_by final_valid_loss --descending --limit 1)" = c ]
  run -0 zs-runs --show run_name learning_rate --filter run_name=c
  [ "$output" = $'run_name\ttraining.learning_rate\nc\t1e-3' ]
  run -0 zs-runs --hide run_id timestamp host note sweep_name status training.learning_rate final_valid_loss
  [ "${lines[0]}" = $'run_name\tmodel.name' ]
  run -0 zs-runs --list_columns --format table
  [[ $output == *"training.learning_rate  configuration     3       3  6e-4"* ]]
}

@test "zs-runs: a table fits its width, marks the sorted column, and says what it leaves out" {
  some_runs
  COLUMNS=60 run -0 zs-runs --format table --sort_by final_valid_loss
  [[ ${lines[0]} == *"final_valid_loss ▲" ]]
  [[ ${lines[1]} == *" 3.5" && ${lines[2]} == *"  10" ]]
  [ "${lines[5]}" = "4 runs, 7 more columns (--list_columns, --show)" ]
  for line in "${lines[@]}"; do ((${#line} <= 60)); done
  run -0 zs-runs --format table --limit 2
  [[ ${lines[-1]} == "2 of 4 runs"* ]]
}

@test "zs-runs: statistics below the table on request, alone in other formats" {
  some_runs
  run -0 zs-runs --format table --statistics --show run_name final_valid_loss
  [ "${lines[4]}" = "d" ] || complain "no table first: $output"
  [[ $output == *$'\ncolumn            runs  values  mean      std  min    25%   50%    75%  max  not_finite  which\n'* ]] || complain "$output"
  [[ $output == *"final_valid_loss     3       2  6.75  4.59619  3.5  5.125  6.75  8.375   10           1"* ]] || complain "$output"
  run -0 zs-runs --statistics --show model.name --format tsv
  [ "${#lines[@]}" = 2 ] || complain "$output"
  [[ ${lines[1]} == $'model.name\t4\t3\t'*$'\tgpt2 (2), gpt2-xl (1), tiny (1)' ]] || complain "$output"
  [ "$(zs-runs --statistics --format json | jq -r '.[] | select(.column == "final_valid_loss") | .mean')" = 6.75 ] || complain json
  refuses_with "zs-runs: --statistics is of a table of runs: leave out --format openmetrics (see zs-runs --help)" zs-runs --statistics --format openmetrics
  verdict
}

@test "zs-runs: tsv, csv and json hold the same" {
  some_runs
  zs-runs --format csv >all.csv
  cmp all.csv saved_models/runs.csv
  [ "$(zs-runs --filter run_name=d --show note)" = $'note\ntab\\t"quote", comma' ]
  [ "$(zs-runs --format csv --filter run_name=d --show note)" = $'note\n"tab\t""quote"", comma"' ]
  [ "$(zs-runs --format json --filter run_name=d | jq -r '.[0].note')" = $'tab\t"quote", comma' ]
  [ "$(zs-runs --format json | jq -c 'map([.run_name, .final_valid_loss])')" = '[["a",3.5],["b","nan"],["c",10],["d",null]]' ]
}

@test "zs-runs: a run is meant by its id, the beginning of it, or its name; show and diff" {
  some_runs
  [ "$(zs-runs show "$a" --format json | jq -r .host)" = n1 ]
  [ "$(zs-runs show b | grep -c $'^configuration\t')" = 3 ]
  run -1 zs-runs diff a b
  [ "${#lines[@]}" = 3 ]
  [ "${lines[0]}" = $'topic\tfield\t'"$a"$'\t'"$b" ]
  [ "${lines[1]}" = $'environment\thost\tn1\tn2' ]
  [ "${lines[2]}" = $'metric\tfinal_valid_loss\t3.5\tnan' ]
  COLUMNS=40 run -1 zs-runs diff a b --format table
  [[ ${lines[0]} == "topic        field             $a  $b" ]]
  run -0 zs-runs diff a "$a"
  zs-runs add run_name=a
  run -2 zs-runs show a
  [[ $output == "zs-runs: 2 runs have the name 'a': $a, "* ]]
  run -2 zs-runs show 2
  [[ $output == "zs-runs: 5 runs begin with '2': "* ]]
}

@test "zs-runs: diff tells the first step at which the losses part" {
  some_runs
  printf 'Epoch 1, Step %d, Loss: 2.%d sync: True time: 0.1 alloc_mem: 10 peak_mem: 20\n' 10 5 20 4 30 3 >a.log
  sed '2s/2\.4/2.4000000001/' a.log >b.log
  zs-parse a.log -o "saved_models/$a/metrics.h5"
  zs-parse b.log -o "saved_models/$b/metrics.h5"
  run -1 zs-runs diff a b
  [ "${lines[3]}" = $'metric\tloss at epoch 1, step 20, the first to differ\t2.4\t2.4000000001' ]
}

@test "zs-runs: diff gives the verdict of what the runs differ in" {
  some_runs
  zs-runs update a state_digest=11 training.seed=1 zero.stage=1
  zs-runs update b state_digest=22 training.seed=1 zero.stage=3
  run -1 zs-runs diff a b
  [[ $output == *$'\nverdict\tbits\ta fault: one training in one arithmetic ends with different bits'* ]]
  zs-runs update b training.dtype=bfloat16
  zs-runs update a training.dtype=float32
  run -1 zs-runs diff a b --format table
  [ "${lines[-1]}" = "other bits at the end: they are not expected to be the same bits, because they differ in number format (float32 and bfloat16)" ]
  zs-runs update b training.seed=2 state_digest=11
  run -1 zs-runs diff a b
  [[ $output == *"the same bits at the end, though they train different things: they differ in seed (1 and 2)"* ]]
}

@test "zs-runs: update makes a column of a new metric, an empty value takes it away" {
  some_runs
  zs-runs update c my_metric=1.5 status=archived
  [ "$(zs-runs --filter 'my_metric>1' --show run_name status)" = $'run_name\tstatus\nc\tarchived' ]
  zs-runs update "$c" my_metric=
  run -2 --separate-stderr zs-runs --show my_metric
  [[ $stderr == "zs-runs: no run has a column 'my_metric': there are run_id, "* ]] || complain "$stderr"
  refuses_with "zs-runs: run_id cannot be changed: it names the folder of the run" zs-runs update c run_id=x
  refuses_with "zs-runs: 'x' is not NAME=VALUE (see zs-runs --help)" zs-runs update c x
}

@test "zs-runs: rm asks, and takes the run with its files" {
  some_runs
  refuses_with "zs-runs: rm asks on a terminal: give --yes to remove without (see zs-runs --help)" zs-runs rm a </dev/null
  zs-runs rm a "$b" --yes
  [ "$(names)" = "c d" ]
  [ ! -e "saved_models/$a" ]
  [ "$(find saved_models -name '.removed*' | wc -l)" = 0 ]
}

# A run as zs-train leaves it that was killed: it has a configuration, a process that is gone, and says "running".
killed_run() {
  local id
  id=$(zs-runs add run_name="$1" status=running host="$(hostname)" process=999999999:1 final_train_loss=2.5 "${@:2}")
  echo 'model: {name: tiny}' >"saved_models/$id/config.yaml"
  echo "$id"
}

@test "zs-runs: a table says what has become of a run, not what it said last; its loss and settings stand before Slurm's" {
  some_runs
  killed_run dead model.name=tiny training.learning_rate=1e-3 slurm_job_id=77 slurm_job_nodelist='node[01-04]' restarts=2
  COLUMNS=200 run -0 zs-runs --format table --filter run_name=dead
  [[ ${lines[0]} == "run_id "*"run_name  status  final_train_loss  slurm_job_id  slurm_job_nodelist  restarts"* ]]
  [[ ${lines[1]} == *"  dead      FAILED  "* ]]
  COLUMNS=80 run -0 zs-runs --format table
  [[ ${lines[0]} == *"status"*"final_valid_loss"*"sweep_name"* ]]
  [[ $output != *slurm* ]]
  [[ $output == *FAILED* && $output == *complete* && $output != *running* ]]
  # To other programs, the records.
  [ "$(zs-runs --filter run_name=dead --show status)" = $'status\nrunning' ]
  [ "$(zs-runs --filter run_name=dead --status --show state)" = $'state\nFAILED' ]
}

@test "zs-runs: a run that is being trained is not removed, nor is any that is named with it" {
  some_runs
  id=$(zs-runs add run_name=alive status=running host="$(hostname)" process="$$:$(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)")
  echo 'model: {name: tiny}' >"saved_models/$id/config.yaml"
  refuses_with "zs-runs: $id: is RUNNING (its process on this host is alive): end that first" zs-runs rm --yes a alive
  [ -d "saved_models/$a" ]
  [ -d "saved_models/$id" ]
  zs-runs update alive process=999999999:1
  zs-runs rm --yes a alive
  [ ! -e "saved_models/$id" ]
}

# A planned run in reg/ that names $1 as its script, with its results folder.
planned_by() {
  mkdir -p "reg/20261121_000000_aaaaaa/record" results/.cells
  : >reg/20261121_000000_aaaaaa/config.yaml
  echo '{}' >results/metadata.json
  printf '#zs-record 1\nrun_name\tx\nstatus\tplanned\nscript\t%s\nexperiment\t%s\ncondition\tc\ndirectory\t%s\n' "$1" "$PWD/results" "$PWD" \
    >reg/20261121_000000_aaaaaa/record/00000001-h-1-0.tsv
}

@test "zs-runs: rerun starts no script that a record names, and nothing of another user's; it shows what it starts" {
  printf 'id >%q\n' "$PWD/pwned" | tee evil.sh batch.sbatch >/dev/null
  planned_by "$PWD/evil.sh"
  run -1 --separate-stderr zs-runs -r reg rerun --failed
  [ "$stderr" = "zs-runs: 20261121_000000_aaaaaa: was planned by $PWD/evil.sh, which is not a script of zs: it is not run" ]
  [ ! -e pwned ]
  # Of the name of one of ours, it is ours that runs; here it finds no plan.
  planned_by "$PWD/batch.sbatch"
  run -0 --separate-stderr zs-runs -r reg rerun --failed --dry_run
  [ "$output" = "$PWD/reg/20261121_000000_aaaaaa" ]
  [ "$stderr" = "cd $PWD && bash $(realpath "$BUILD/..")/slurm/batch.sbatch --rerun $PWD/results --as_before --cells -" ]
  run -1 zs-runs -r reg rerun --failed
  [[ $output == *"zs-runs: "*"/results/metadata.json: plans no training" ]]
  [ ! -e pwned ]
  ((EUID == 0)) || skip "the rest needs two users"
  for path in reg/2* reg/2*/record reg/2*/record/* reg/2*/config.yaml results results/metadata.json; do
    chown -h nobody "$path"
    run -1 --separate-stderr zs-runs -r reg rerun --failed --dry_run
    [ -z "$output" ] || complain "$path: $output"
    [[ $stderr == *" belongs to nobody: its commands would run as you (--any_owner runs them)" ]] || complain "$path: $stderr"
    run -0 --separate-stderr zs-runs -r reg rerun --failed --dry_run --any_owner
    [[ $stderr == *" --any_owner" ]] || complain "$path: not with --any_owner"
    chown -h root "$path"
  done
  verdict
}

@test "zs-runs: nothing that others put into a registry hangs, crashes or blinds it" {
  some_runs
  for put in 'mkfifo $bad/record/00000009-x.tsv' 'ln -s /dev/zero $bad/record/00000009-x.tsv' \
    'truncate -s 3G $bad/record/00000009-x.tsv' 'mkdir $bad/record/00000009-x.tsv'; do
    bad=saved_models/$(zs-runs add run_name=bad)
    eval "$put"
    run -1 --separate-stderr timeout "$HANG" zs-runs --show run_name
    [ "$(xargs <<<"$output")" = "run_name a b c d" ] || complain "$put: $output"
    [[ $stderr == "zs-runs: $bad/record/00000009-x.tsv: is "*": this run is left out" ]] || complain "$put: $stderr"
    rm -rf "$bad"
  done
  for put in 'mkfifo saved_models/runs.csv' 'ln -s /dev/zero saved_models/runs.csv' \
    'mkfifo "saved_models/$a/metrics.h5" "saved_models/$b/metrics.h5"' 'ln -s . saved_models/loop'; do
    rm -rf saved_models/{runs.csv,zs-runs.csv,loop}
    eval "$put"
    for words in "--show run_name" "--status --show run_name" "show a" "--format table"; do
      # shellcheck disable=SC2086
      run --separate-stderr timeout "$HANG" zs-runs $words
      ((status == 0)) || complain "$put: $words: $status $stderr"
    done
    run timeout "$HANG" zs-runs diff a b
    ((status == 1 || status == 2)) || complain "$put: diff: $status"
  done
  verdict
}

@test "zs-runs: a runs.csv of another tool stays as it is" {
  mkdir saved_models
  printf 'run_id,run_name,lr\nold1,x,0.1\n' >saved_models/runs.csv
  cp saved_models/runs.csv before
  run -0 --separate-stderr zs-runs
  [ "$stderr" = "zs-runs: warning: saved_models/runs.csv: zs has not written this, so it stays as it is; the runs of zs are in zs-runs.csv; zs-runs import makes its rows runs of zs" ]
  zs-runs add run_name=a
  zs-runs 2>/dev/null
  cmp before saved_models/runs.csv
  [ "$(ls saved_models/*.csv*)" = $'saved_models/runs.csv\nsaved_models/zs-runs.csv' ]
  cmp <(zs-runs --format csv 2>/dev/null) saved_models/zs-runs.csv
}

@test "zs-runs: secrets, line ends in names, and a wrong line among updates are refused; nothing is half done" {
  some_runs
  refuses_with "zs-runs: wandb_api_key names a secret: it has no place in a record, which others read" zs-runs update a wandb_api_key=x
  refuses_with "zs-runs: a run's name is one line, without control characters" zs-runs add run_name=$'x\nEpoch 1, Step 9, Loss: 0'
  printf 'a\tnote=1\nb\tnote\n' >lines
  refuses_with "zs-runs: 'note' is not NAME=VALUE (see zs-runs --help)" zs-runs update - <lines
  printf 'a\tnote=1\nnobody\tnote=1\n' >lines
  refuses_with "zs-runs: no run 'nobody', and no file or folder of that name" zs-runs update - <lines
  [ -z "$(zs-runs --filter run_name=a note=1 --show run_name 2>/dev/null | tail -n +2)" ]
  [ "$(names)" = "a b c d" ]
}

@test "zs-runs: no text of others steers the terminal" {
  escape=$'\e]0;owned\a\u009b2J\e[31m'
  a=$(zs-runs add run_name=a note="$escape")
  # A name is refused; one that is there all the same, by hand, is spelt out.
  printf '#zs-record 1\nrun_name\t%s\n' "$escape" >"saved_models/$a/record/00000002-x.tsv"
  for words in "" "--format table" "--status --format table" "show $a" "show $a --format table" "--list_columns --format table"; do
    # shellcheck disable=SC2086
    run -0 zs-runs $words
    [[ $output != *[$'\e\a\u009b']* ]] || complain "$words: $output"
    [[ $output == *'\x1B'* || $words == --list* ]] || complain "$words: nothing of it"
  done
  verdict
}

@test "zs-runs: a filter's expression takes no time that grows beyond the value's length" {
  zs-runs add run_name=a note="$(head -c 30000 /dev/zero | tr '\0' a)"
  for pattern in '.*b' 'a+b' '(a+)+b' '(a|aa)+$b'; do
    run -0 --separate-stderr timeout "$HANG" zs-runs --show run_name --filter "note~$pattern"
    [ "$output" = run_name ] || complain "$pattern: $output"
    ((${#stderr} < 200)) || complain "$pattern: a warning of ${#stderr} characters"
  done
  run -2 zs-runs --filter 'note~(a'
  [[ $output == "zs-runs: '(a' is not a regular expression: missing ): (a (see zs-runs --help)" ]]
  verdict
}

@test "zs-runs: an input and an output that are not blocking are read and written whole" {
  zs-runs add run_name=late >/dev/null
  /usr/bin/python3 -c '
import os, subprocess, sys, time
r, w = os.pipe()
os.set_blocking(r, False)
p = subprocess.Popen(["zs-runs", "update", "-"], stdin=r)
os.close(r)
for part in b"late\tno", b"te=1\n", b"late\tother=2\n":
    time.sleep(0.2)
    os.write(w, part)
os.close(w)
sys.exit(p.wait())'
  [ "$(zs-runs --show note other)" = $'note\tother\n1\t2' ]
  for i in {1..40}; do zs-runs add run_name="$i" note="$(head -c 5000 /dev/zero | tr '\0' x)" >/dev/null; done
  zs-runs --format json >whole.json
  /usr/bin/python3 -c '
import os, subprocess, sys, time
r, w = os.pipe()
os.set_blocking(w, False)
p = subprocess.Popen(["zs-runs", "--format", "json"], stdout=w)
os.close(w)
time.sleep(0.5)
sys.stdout.buffer.write(open(r, "rb").read())
sys.exit(p.wait())' >piped.json
  cmp whole.json piped.json
}

@test "zs-runs: the registry is --registry, else ZS_REGISTRY, else saved_models" {
  zs-runs --registry one add run_name=x
  ZS_REGISTRY=two zs-runs add run_name=y
  [ "$(names --registry one) $(ZS_REGISTRY=two names) $(ZS_REGISTRY=two names --registry one)" = "x y x" ]
  refuses_with "zs-runs: saved_models: no such registry; a training makes it, --registry names another" zs-runs
}

@test "zs-runs: a registry that may not be written is read all the same" {
  some_runs
  rm saved_models/runs.csv
  if ((EUID == 0)); then
    unshare -m bash -c 'mount --bind saved_models saved_models && mount -o remount,ro,bind saved_models && zs-runs --show run_name' >out || skip "root may always write, and may not mount here"
  else
    chmod a-w saved_models
    zs-runs --show run_name >out
    chmod u+w saved_models
  fi
  [ "$(xargs <out)" = "run_name a b c d" ]
  [ ! -e saved_models/runs.csv ]
}

@test "zs-runs: it names the file of a damaged record, lists the other runs, and ends with 1" {
  some_runs
  record=$(echo "saved_models/$b"/record/*)
  echo nonsense >"$record"
  run -1 --separate-stderr zs-runs --show run_name
  [ "$(xargs <<<"$output")" = "run_name a c d" ]
  [ "$stderr" = "zs-runs: $record:1: is not a record of a run: this run is left out" ]
}

@test "zs-runs: mistakes name the nearest" {
  some_runs
  refuses_with "zs-runs: no run has a column 'final_valid_los', did you mean 'final_valid_loss'?" zs-runs --sort_by final_valid_los
  refuses_with "zs-runs: 'loss' is not a filter: expected COLUMN=VALUE, or one of != < <= > >= ~ !~ (see zs-runs --help)" zs-runs --filter loss
  refuses_with "zs-runs: unknown action 'shwo', did you mean 'show'? (see zs-runs --help)" zs-runs shwo a
  refuses_with "zs-runs: 'or' needs two filters or more (see zs-runs --help)" zs-runs --or --filter run_name=a
}

@test "zs-runs: many writers at once, some killed, the index deleted half way, by two paths: nothing is lost" {
  run -0 "$ROOT/tests/storm" 16 160 "$BATS_TEST_TMPDIR"
  [[ ${lines[1]} == "lost 0, lost updates 0, duplicated 0, broken runs.csv 0 of "* ]]
}

@test "zs-runs: pandas reads runs.csv with the right types" {
  python_with pandas python3-pandas
  some_runs
  zs-runs update a zero.compile=true zero.stage=3
  zs-runs update b zero.compile=false zero.stage=1
  for run in c d; do zs-runs update $run zero.compile=false zero.stage=2; done
  zs-runs >/dev/null
  run -0 "$PYTHON" -c '
import pandas
runs = pandas.read_csv("saved_models/runs.csv")
print(*(str(runs[c].dtype) for c in ["run_id", "training.learning_rate", "zero.stage", "zero.compile", "final_valid_loss"]), len(runs))'
  [ "$output" = "object float64 int64 bool float64 4" ]
}

@test "zs-runs: watch tells on a terminal how far a log is and what is left, and ends with the training" {
  line() { printf 'Epoch 1, Step %d, Loss: 2.5 sync: True time: 0.1 alloc_mem: 10 peak_mem: 20\n' "$1"; }
  sleep 3600 &
  training=$!
  TERM=xterm script -qec "zs-runs watch $training run.log z3 2" /dev/null </dev/null >screen &
  watching=$!
  { echo "run: expected_steps=100"; line 10; } >run.log
  await grep -q 'z3: step 10/100, loss 2.5' screen
  sleep 0.3
  line 60 >>run.log
  await grep -q 'z3: step 60/100, loss 2.5, [0-9:]* left, [0-9:]* for all' screen
  kill "$training"
  wait "$watching"
  [ -z "$(zs-runs watch $$ run.log z3 2 2>&1)" ]  # no terminal, no line
  run -2 zs-runs watch none run.log z3 2
}

@test "OpenMetrics: a gauge for each outcome, with names and values that a collector takes" {
  zs-runs add run_name='a "b\c' final_valid_loss=3.25 bleu-4=nan training.learning_rate=1e-3 >/dev/null
  zs-runs add run_name=d final_valid_loss=1e-05 bleu_4=inf >/dev/null
  zs-runs --format openmetrics | sed -E 's/run_id="[^"]*"/run_id="I"/' >out
  grep -qxF 'zs_run_final_valid_loss{run_id="I",run_name="a \"b\\c"} 3.25' out
  grep -qxF 'zs_run_final_valid_loss{run_id="I",run_name="d"} 1e-05' out
  grep -qx 'zs_run_bleu_4_*{run_id="I",run_name="a .*"} NaN' out
  grep -qx 'zs_run_bleu_4_*{run_id="I",run_name="d"} +Inf' out
  [ "$(grep -c '^# TYPE zs_run_bleu_4' out)" = 2 ] # two columns, two names
  grep -qxF '# TYPE zs_run_final_valid_loss gauge' out
  [ "$(grep -c '^# TYPE zs_run_final_valid_loss ' out)" = 1 ]
  run ! grep -q learning_rate out # a setting is no outcome
  grep -qxF 'zs_run_status{run_id="I",run_name="d",status="recorded"} 1' out
  [ "$(tail -n 1 out)" = "# EOF" ]
}

@test "zs-runs import: a run of a log is as old as the log" {
  printf 'Epoch 1, Step %s, Loss: 2.5 sync: True time: 0.1 alloc_mem: 1 peak_mem: 2\n' 1 2 >old.log
  touch -d 2024-03-01T12:00:00Z old.log
  zs-aggregate old.log -o s.h5 || [ "$?" = 1 ]
  zs-runs --registry imported import s.h5
  [ "$(zs-runs --registry imported --show run_name timestamp --format tsv | tail -n 1)" = $'old\t2024-03-01T12:00:00Z' ]
}

@test "zs-runs import: a row of another program's table is a run; the table stays, and nothing is taken twice" {
  mkdir saved_models
  {
    echo ',run_id,run_name,timestamp,sweep_name,model.name,training.batch_size,training.learning_rate,final_valid_loss,eval,note,wandb.api_key'
    echo '0,20240101_120000,first,2024-01-01 12:00:00,lr,gpt2,32.0,0.0006,3.25,True,"two
lines, and ""quotes""",s3cret'
    printf '1,20240102_120000,second,2024-01-02 12:00:00,lr,gpt2,32.0,0.001,,False,None,\r\n'
    echo '2,20240103_120000,third'
  } >saved_models/runs.csv
  cp saved_models/runs.csv before.csv
  run -1 zs-runs import saved_models/runs.csv
  [[ ${lines[*]} == *"zs-runs: saved_models/runs.csv:5: has 3 cells, the header 12: left out"*"2 runs imported" ]] || complain "$output"
  diff before.csv saved_models/runs.csv || complain "the table has changed"
  zs-runs --format csv >own.csv 2>err
  grep -q 'zs has not written this, so it stays as it is' err || complain "$(cat err)"
  [ "$(zs-runs --format tsv --show run_name training.batch_size final_valid_loss imported_id 2>err | tail -n +2 | tr '\t\n' '/ ')" = \
    'first/32/3.25/20240101_120000 second/32//20240102_120000 ' ] || complain "$(zs-runs --format tsv)"
  run ! grep -rq s3cret saved_models --include=record* --include=zs-runs.csv
  [ "$(zs-runs show first --format json 2>err | jq -r .note)" = $'two\nlines, and "quotes"' ] || complain "$(zs-runs show first)"
  run -1 zs-runs import saved_models/runs.csv
  [[ $output == *"0 runs imported, 2 known before" ]] || complain "$output"
  # What zs itself lists goes round.
  [ "$(zs-runs --format csv 2>err | zs-runs import -)" = "0 runs imported, 2 known before" ] || complain "not known"
  run -2 zs-runs import /dev/null
  printf 'a,b\n1,2\n' >other.csv
  run -2 zs-runs import other.csv
  [[ $output == *"has none of the columns run_id, run_name and condition"* ]] || complain "$output"
  printf 'run_id,run_id\n1,2\n' >other.csv
  run -2 zs-runs import other.csv
  [[ $output == *"other.csv:1: column 'run_id' is there twice"* ]] || complain "$output"
  printf 'run_id,x\n1,"2\n' >other.csv
  run -2 zs-runs import other.csv
  [[ $output == *"other.csv:2: a quote is not closed"* ]] || complain "$output"
  verdict
}
