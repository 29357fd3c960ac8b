# SPDX-License-Identifier: Apache-2.0
# TensorBoard and W&B: zs reads runs that their packages wrote (tests/peers/trackers.py write), and writes runs of its own.
# `make check-peers` reads those with the packages.
setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  unset ZS_REGISTRY WANDB_DIR
  DATA=$ROOT/tests/data/trackers
}

# column NAME FILE: its cells, one a line, of the text form.
column() { grep -v '^#' "$2" | awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) k = i; next } { print $k }'; }

train() { zs-train --model_name tiny --num_layers 1 --seq_length 16 --output_dir runs "$@"; }

@test "TensorBoard: simple values and tensors, of several files, without the steps that a restart voids" {
  run -0 zs-parse "$DATA/tensorboard" -o out.tsv
  run -0 zs-parse "$DATA/tensorboard/plain" -o plain.tsv
  assert_equal "$(column step plain.tsv | xargs)" "10 20 30 40"
  # The file's floats have 24 bits, and these are their values.
  assert_equal "$(column loss plain.tsv | xargs)" "2.5 9.999999747378752e-06 1.5 1.25"
  assert_equal "$(column part plain.tsv | xargs)" "2 2"
  grep -qx '#@ plain model.name=gpt2' plain.tsv
  run -0 zs-parse "$DATA/tensorboard/tensors" -o tensors.tsv
  assert_equal "$(column loss tensors.tsv | xargs)" "2.5 9.999999747378752e-06 nan -1.25"
  assert_equal "$(column learning_rate tensors.tsv | xargs)" "3e-04 0.00029 0.00028 0"
  [ "$(grep -c -v '^#' out.tsv)" = 10 ] # two runs, each with its header
  run -0 zs-parse "$DATA"/tensorboard/plain/*
  [ "$(grep -c '^plain' <<<"$output")" = 4 ]
}

@test "W&B: a run's folder, its file, the folder of all runs" {
  run -0 zs-parse "$DATA/wandb" -o out.tsv
  assert_equal "$(column loss out.tsv | xargs)" "2.5 1e-05 nan -1.25"
  assert_equal "$(column step out.tsv | xargs)" "10 20 30 40"
  assert_equal "$(column note out.tsv | head -n 1)" 'step "10"'
  grep -qx '#@ a_run optimizer.name=adamw' out.tsv
  grep -qx '#@ a_run wandb_tags=x,y' out.tsv
  grep -qx '#@ a_run exit_code=0' out.tsv
  zs-parse "$DATA"/wandb/*/ | grep -v source >folder.tsv
  zs-parse "$DATA"/wandb/*/*.wandb | grep -v source >file.tsv
  diff <(grep -v source out.tsv) folder.tsv
  diff folder.tsv file.tsv
  zs-parse "$DATA/wandb" | zs-aggregate --format tsv | grep -q '^a_run'
  # Runs of one name keep their IDs.
  mkdir -p twice
  for id in peer0001 peer0002; do cp -r "$DATA"/wandb/*-peer0001 "twice/offline-run-20260101_000000-$id"; done
  [ "$(zs-parse twice | cut -f 1 | grep -v '^#' | sort -u | xargs)" = "peer0001 peer0002 run" ] || complain "$(zs-parse twice | cut -f 1 | sort -u)"
  verdict
}

@test "W&B: zs-parse reads a history with or without configuration and summary, leaves keys out, and reports damage" {
  mkdir -p wandb/run-20260101_000000-abcd1234/files
  cd wandb/run-20260101_000000-abcd1234/files
  printf '{"_step": 0, "train/loss": 2.5, "train/global_step": 10}\n{"_step": 1, "train/loss": 2.25, "train/global_step": 20}\n' >wandb-history.jsonl
  printf 'wandb_version: 1\nlearning_rate:\n  desc: null\n  value: 0.0003\noptimizer:\n  value:\n    name: adamw\napi_key:\n  value: secret0\n_wandb:\n  value:\n    t: {1: [1]}\n' >config.yaml
  printf '{"best": 2.25, "hf_token": "secret1", "_wandb": {"runtime": 3}}' >wandb-summary.json
  cd "$BATS_TEST_TMPDIR"
  run -0 zs-parse wandb -o out.tsv
  assert_equal "$(column loss out.tsv | xargs)" "2.5 2.25"
  for line in learning_rate=0.0003 optimizer.name=adamw wandb.summary.best=2.25 wandb_run=abcd1234; do
    grep -qx "#@ abcd1234 $line" out.tsv || complain "no $line: $(grep '#@' out.tsv)"
  done
  run ! grep -q 'secret\|runtime' out.tsv
  printf 'a: [1\n' >wandb/run-20260101_000000-abcd1234/files/config.yaml
  run -1 --separate-stderr zs-parse wandb
  [[ $stderr == *"files/config.yaml:"* ]] || complain "$stderr"
  [ "$(grep -c '^abcd1234' <<<"$output")" = 2 ] || complain "$output"
  verdict
}

@test "torn at every byte: what is whole is kept, the rest is a fault with its place, and nothing crashes" {
  mkdir run-20260101_000000-x
  local file size
  for file in "$DATA"/wandb/*/*.wandb "$DATA"/tensorboard/tensors/*; do
    for ((size = 1; size < $(stat -c %s "$file"); size += 61)); do
      local torn=run-20260101_000000-x/run-x.wandb
      [[ $file == *.wandb ]] || torn=run-20260101_000000-x/events.out.tfevents.1.x
      head -c "$size" "$file" >"$torn"
      run zs-parse "$torn"
      [[ $status == [12] && $output == *"zs-parse: $torn: "* ]] || complain "$size bytes of $file: $status: ${output:0:200}"
      rm "$torn"
    done
  done
  verdict
}

@test "the W&B run that a condition names fills in what its log lacks" {
  mkdir -p results/wandb
  cp -r "$DATA"/wandb/* results/wandb/
  echo '{"condition_order": ["a"], "conditions": {"a": {"command": "train", "exit_code": 0, "wandb_run": "unknown"}}}' >results/metadata.json
  {
    echo "wandb: Run data is saved locally in /somewhere/wandb/run-20260101_000000-peer0001"
    for step in 10 20; do
      echo "Epoch 1, Step $step, Loss: 2.$step sync: True time: 0.1 alloc_mem: 1000000 peak_mem: 2000000"
    done
  } >results/a.log
  run -0 zs-parse results -o out.tsv
  assert_equal "$(column step out.tsv | xargs)" "10 20 30 40"
  assert_equal "$(column loss out.tsv | xargs)" "2.1 2.2 nan -1.25"
  assert_equal "$(column learning_rate out.tsv | xargs)" "3e-04 0.00029 0.00028 0"
  grep -qx '#@ a seed=7' out.tsv
  grep -q '^#@ a wandb_source=.*/results/wandb/' out.tsv
}

@test "a training writes for both, and zs-parse reads the same values back" {
  train --max_steps 6 --use_tensorboard --use_wandb --wandb_project p --wandb_tags a b >log
  local folder=(runs/*/) wandb
  zs-parse "${folder[0]}" -o own.tsv
  wandb=$(jq -r .wandb_run <(zs-runs --registry runs --format json | jq '.[0]'))
  zs-parse "${folder[0]}wandb" -o wandb.tsv
  grep -qx "#@ [^ ]* wandb_run=$wandb" wandb.tsv
  grep -qx '#@ [^ ]* wandb_tags=a,b' wandb.tsv
  grep -qx "run: wandb_run=$wandb" log
  local name
  for name in step loss grad_norm learning_rate iteration_time peak_mem; do
    diff <(column "$name" own.tsv) <(column "$name" wandb.tsv)
  done
  zs-parse "${folder[0]}tensorboard" -o board.tsv
  diff <(column step own.tsv) <(column step board.tsv)
  paste <(column loss own.tsv) <(column loss board.tsv) | awk '{ d = $1 - $2; exit !(d * d <= 1e-12 * $1 * $1) }'
  # What is known of the run is there too.
  local digest
  digest=$(sed -n 's/^#@ [^ ]* state_digest=//p' own.tsv)
  grep -q "state_digest=$digest" board.tsv
  [ -L "${folder[0]}wandb/latest-run" ]
  local files=("${folder[0]}"wandb/offline-run-*/files)
  jq -e '."train/global_step" == 6 and ._wandb.runtime >= 0' "${files[0]}/wandb-summary.json"
  grep -A1 '^"seed":' "${files[0]}/config.yaml" | grep -q 'value: 42'
  run -2 train --max_steps 1 --use_wandb --wandb_mode online
  assert_output --partial "offline"
  train --max_steps 1 --use_wandb --wandb_mode disabled --seed 9 >log
  run ! grep -q wandb_run log
}

@test "a resumed training keeps its W&B run, with every step once, and TensorBoard has them once too" {
  train --max_steps 6 --save_steps 2 --use_tensorboard --use_wandb >log
  local folder=(runs/*/)
  rm -r "${folder[0]}"final_checkpoint "${folder[0]}"checkpoint_[46]
  zs-parse "${folder[0]}wandb" -o before.tsv
  run -0 zs-train --resume "$(basename "${folder[0]}")" --registry runs
  zs-parse "${folder[0]}wandb" -o after.tsv
  assert_equal "$(column step after.tsv | xargs)" "1 2 3 4 5 6"
  diff <(column loss before.tsv) <(column loss after.tsv)
  [ "$(find "${folder[0]}wandb" -name '*.wandb' | wc -l)" = 1 ]
  zs-parse "${folder[0]}tensorboard" -o board.tsv
  assert_equal "$(column step board.tsv | xargs)" "1 2 3 4 5 6"
}

@test "attributes by --set, folders of logs without metadata.json, detailed logs" {
  log() { for step in 1 2 3; do echo "Epoch 1, Step $step, Loss: $1.5 sync: True time: 0.1 alloc_mem: 1 peak_mem: 2"; done; }
  mkdir -p plain logs/logs_v0.16_run1 logs/logs_v0.16_run2 logs/logs_main_run1
  log 1 >plain/a.log
  cp plain/a.log plain/a_detailed.log
  log 2 >plain/b_detailed.log
  run -0 zs-parse plain -o plain.tsv
  assert_equal "$(grep -v '^#' plain.tsv | cut -f 1 | grep -v '^run$' | sort -u | xargs)" "a b"
  for run in v0.16_run1 v0.16_run2 main_run1; do log 3 >"logs/logs_$run/train.log"; done
  run -0 zs-parse logs -o logs.tsv
  assert_equal "$(sed -n 's/^#@ \(.*\) revision=.*/\1/p' logs.tsv | xargs)" "main_run1 v0.16_run1 v0.16_run2"
  grep -qx '#@ v0.16_run2 revision=v0.16' logs.tsv
  zs-parse logs | zs-aggregate --by revision --format tsv | cut -f 1 | grep -qx v0.16
  run -0 zs-parse --set 'revision=x,note=two words, or more' plain/a.log
  assert_line '#@ a revision=x'
  assert_line '#@ a note=two words, or more'
  run -2 zs-parse --set wandb_api_key=1 plain/a.log
  assert_output --partial "names a secret"
}

@test "MLflow's database of SQLite is read as its runs, and a torn one is an error" {
  python3 - <<'PY'
import sqlite3
store = sqlite3.connect("mlflow.db")
store.executescript("""
CREATE TABLE runs (run_uuid TEXT PRIMARY KEY, name TEXT, status TEXT, start_time INTEGER, lifecycle_stage TEXT);
CREATE TABLE metrics (key TEXT, value FLOAT, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan BOOLEAN);
CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);""")
for number, name, stage in ((1, "first", "active"), (2, "second", "active"), (3, "empty", "active"), (4, "gone", "deleted")):
    store.execute("INSERT INTO runs VALUES (?, ?, 'FINISHED', ?, ?)", (f"id{number}", name, number, stage))
    store.execute("INSERT INTO params VALUES ('learning_rate', ?, ?)", (str(number / 1000), f"id{number}"))
    store.execute("INSERT INTO params VALUES ('api_key', 'geheim', ?)", (f"id{number}",))
    store.execute("INSERT INTO tags VALUES ('mlflow.source.git.commit', 'abc', ?)", (f"id{number}",))
    for step in range(1, 4) if name != "empty" else ():
        store.execute("INSERT INTO metrics VALUES ('train_loss', ?, ?, ?, ?, 0)", (4 / step + number, 1700000000000 + 500 * step, f"id{number}", step))
    if name == "second":
        store.execute("INSERT INTO metrics VALUES ('eval_loss', 0, 1700000002000, 'id2', 3, 1)")
store.commit()
PY
  run -1 --separate-stderr zs-parse mlflow.db  # one has no metric
  [[ $stderr == *"1 of 3 runs of MLflow have no metric, and are left out"* ]] || complain "$stderr"
  [ "$(grep -v '^#\|^run' <<<"$output" | cut -f1,2 | xargs)" = "first 1 first 2 first 3 second 1 second 2 second 3" ] || complain "$output"
  [[ $output == *"#@ second learning_rate=0.002"* && $output == *"#@ first commit=abc"* && $output != *geheim* && $output != *gone* ]] || complain "$output"
  mkdir store && cp mlflow.db store/  # a folder with it
  zs-parse store 2>/dev/null | zs-aggregate --format tsv >table || true
  [ "$(cut -f1 table | sed 1d | xargs)" = "first second" ] || complain "$(cat table)"
  head -c 6000 mlflow.db >torn.db
  run -2 zs-parse torn.db
  [[ $output == *"torn.db: cannot be read as MLflow's database: "* ]] || complain "$output"
  verdict
}

@test "MLflow's values without steps are numbered by their times, and a failed run has failed" {
  mkdir -p runs/aaaa1111/metrics
  printf '%s\n' 'run_name: plain' 'status: 4' >runs/aaaa1111/meta.yaml
  for count in 1 2 3 4; do
    echo "170000000${count}000 $((9 - count)) 0" >>runs/aaaa1111/metrics/loss
    echo "170000000${count}001 0.$count 0" >>runs/aaaa1111/metrics/lr
  done
  echo '1700000002002 6.5 0' >runs/aaaa1111/metrics/val_loss
  [ "$(zs-parse runs/aaaa1111 | grep -v '^#' | awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
    { printf "%s:%s:%s:%s ", $at["step"], $at["loss"], $at["learning_rate"], $at["valid_loss"] }')" = \
    "1:8:0.1: 2:7:0.2:6.5 3:6:0.3: 4:5:0.4: " ] || complain "$output"
  run -1 --separate-stderr zs-aggregate -f tsv runs/aaaa1111
  [[ $stderr == *"is FAILED: its status in MLflow is FAILED"* ]] || complain "$stderr"
  verdict
}

@test "a folder of an MLflow run that cannot be read is an error, and no run without parameters" {
  cp -r "$ROOT/tests/cases/zs-parse/mlflow/mlruns" .
  rm -r mlruns/0/aaaa1111/params
  ln -s params mlruns/0/aaaa1111/params
  run zs-parse mlruns
  [[ $status != 0 && $output == *"mlruns/0/aaaa1111/params: cannot list the folder: Too many levels of symbolic links"* ]] || complain "$output"
  verdict
}
