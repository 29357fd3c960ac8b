# SPDX-License-Identifier: Apache-2.0
# Trainings of other programs in batches, sweeps and single jobs: --run, and run: in the files.
setup() {
  load helper
  load drawing
  no_pictures
  bats_load_library bats-support
  bats_load_library bats-assert
  cd "$BATS_TEST_TMPDIR"
  unset ZS_RUN ZS_REGISTRY ZS_CONDITIONS ZS_RANKS
  # It tells which rank it is, and logs a loss that its options decide. Rank 1 may fail.
  cat >train.py <<'PY'
import argparse, json, os
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float, default=1.0)
p.add_argument("--zero_stage", type=int)
p.add_argument("--steps", type=int, default=4)
p.add_argument("--fail_at", type=int, default=-1)
p.add_argument("--config")
p.add_argument("--width", type=int)
p.add_argument("--seed", type=int, default=0)
p.add_argument("--compile", action="store_true")
a = p.parse_args()
rank = int(os.environ.get("RANK", 0))
with open(f"ranks.{rank}", "w") as file:
    print(*(os.environ.get(name) for name in ("WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")), file=file)
if a.config and a.zero_stage: assert json.load(open(a.config))["zero_optimization"]["stage"] == a.zero_stage
for step in range(1, a.steps + 1):
    if step == a.fail_at and rank == 1: raise ValueError(f"bad batch at step {step}")
    if rank == 0: print(f"Epoch 1, Step {step}, Loss: {a.lr / step + a.seed / 100} sync: True time: 0.01 alloc_mem: 100 peak_mem: 200", flush=True)
PY
}

# runs COLUMN...: of all runs, without a header.
runs() { zs-runs --show "$@" --format tsv | sed 1d; }

@test "batch: conditions of another program run on all ranks, are recorded, reported, and only what failed runs again" {
  cat >conditions.yaml <<'YAML'
run: $ZS_LAUNCH python3 train.py {options}
sets:
  mine:
    conditions:
      z1: {zero_stage: 1, compile: true}
      z3: --zero_stage 3 --fail_at 3
YAML
  run -1 --separate-stderr env ZS_CONDITIONS=conditions.yaml ZS_RANKS=2 bash "$ROOT/slurm/batch.sbatch" --local mine -- --lr 0.5
  [ "$(cut -d' ' -f1,2,3 ranks.0)" = "2 0 127.0.0.1" ]
  [ "$(cut -d' ' -f1,2,3 ranks.1)" = "2 1 127.0.0.1" ]
  [ "$(cut -d' ' -f4 ranks.0)" = "$(cut -d' ' -f4 ranks.1)" ]
  runs run_name state zero.stage training.learning_rate >table
  diff - table <<'END'
z1	COMPLETE	1	0.5
z3	FAILED	3	0.5
END
  grep -q 'ValueError: bad batch at step 3' <<<"$stderr"
  results=(results/results_*)
  grep -q '`z3` FAILED' "${results[0]}/report.md"
  [ "$(zs-parse "${results[0]}" 2>/dev/null | grep -c $'^z1\t')" = 4 ]
  # Only z3 runs again, with the words that it was planned with.
  zs-runs rerun "${results[0]}" >out 2>err || true
  grep -q '\[2/2\] z3' err
  refute grep -q '\] z1' err
  ls saved_models/*/run_attempt1.log
  [ "$(zs-runs --format tsv --show restarts --filter run_name=z3 | sed 1d)" = 1 ]
}

@test "batch: a script that has changed since it was planned is not run" {
  printf 'sets:\n  mine:\n    conditions:\n      z3: --zero_stage 3 --fail_at 1\n' >conditions.yaml
  run -1 env ZS_CONDITIONS=conditions.yaml ZS_RANKS=2 bash "$ROOT/slurm/batch.sbatch" --local --run '$ZS_LAUNCH python3 train.py' mine
  echo '# changed' >>train.py
  run -1 zs-runs rerun results/results_*
  [[ $output == *"changed since this was submitted: "*"train.py; restore it, or submit a new run"* ]]
}

@test "batch: --run names an option that a condition lacks: zs-runs refuses it before it makes a file" {
  printf 'sets:\n  mine:\n    conditions:\n      z1: --zero_stage 1\n' >conditions.yaml
  refuses_with "zs-runs: z1: {zero_stag}: it has no option 'zero_stag', did you mean 'zero_stage'?; {{ is a brace" \
    env ZS_CONDITIONS=conditions.yaml bash "$ROOT/slurm/batch.sbatch" --local --run 'python3 train.py --zero_stage {zero_stag}' mine
  [ -z "$(ls -A results saved_models 2>/dev/null | grep -v '^results:$')" ]
}

@test "sweep: another program's keys are its own, and a file is made for each run" {
  echo '{"zero_optimization": {"stage": 0}, "bf16": {"enabled": false}}' >ds.json
  printf 'width: 8\nlr: 0.1\n' >base.yaml
  cat >sweep.yaml <<'YAML'
run: python3 train.py {options} --config {file:ds.json zero_optimization.stage=zero_stage}
sweep_name: stages
parameters:
  lr: [0.5, 0.25]
  zero_stage: [2, 3]
YAML
  run -0 bash "$ROOT/slurm/sweep.sbatch" --local base.yaml sweep.yaml -- --steps 3
  runs run_name state zero.stage training.learning_rate final_train_loss steps >table
  sed -E 's/0\.1666.*\t/x\t/; s/0\.0833.*\t/y\t/' table >short
  diff - short <<'END'
stages_001	COMPLETE	2	0.5	x	3/3
stages_002	COMPLETE	3	0.5	x	3/3
stages_003	COMPLETE	2	0.25	y	3/3
stages_004	COMPLETE	3	0.25	y	3/3
END
  [ "$(runs arguments.width | sort -u)" = 8 ]
  # A picture of it names the runs by their settings, as the report does, each in the same colour.
  zs-plot loss results/* -o loss.svg
  zs-report results/* -o report.html >/dev/null
  names=$(grep -o 'learning rate 0[.0-9]*, ZeRO stage [23]' loss.svg | sort -u)
  [ "$(wc -l <<<"$names")" = 4 ] || complain "$names"
  refute grep -q stages_00 loss.svg
}

@test "sweep: one file that is a sweep is expanded over the usual base" {
  printf 'run: python3 train.py --lr {lr} --steps 200\nlr: [0.5, 0.25]\n' >own.yaml
  run -0 bash "$ROOT/slurm/sweep.sbatch" --local own.yaml
  [ "$(runs run_name training.learning_rate | xargs)" = "own_001 0.5 own_002 0.25" ] || complain "$(runs run_name training.learning_rate)"
}

@test "sweep: seeds and --repeats are repetitions, of which the report gives mean and spread; two folders lie side by side" {
  echo 'width: 8' >base.yaml
  printf 'run: python3 train.py {options}\nsweep_name: s\nparameters:\n  lr: [0.5, 0.25]\n  seed: [1, 2, 3]\n' >sweep.yaml
  run -0 bash "$ROOT/slurm/sweep.sbatch" --local base.yaml sweep.yaml
  seeds=$(echo results/results_*)
  grep -qF 'learning rate **0.25**, with a final loss of **0.082500 ± 0.010 (3 runs)**. The next is learning rate **0.5**, with 0.14500 ± 0.010 (3 runs). The 95 % intervals of their means lie apart.' "$seeds/report.md" || complain "$(head -5 "$seeds/report.md")"
  [ "$(zs-aggregate --format tsv "$seeds" | cut -f1,2 | sed 1d | xargs)" = "s_001 3 s_004 3" ]
  refute grep -q 'do not say: .*the seed' "$seeds/report.md"
  # All run once before any runs again.
  printf 'run: python3 train.py {options}\nsets:\n  two:\n    conditions:\n      a: --lr 1\n      b: --lr 2\n' >conditions.yaml
  mkdir again
  (cd again && run -0 env ZS_CONDITIONS=../conditions.yaml bash "$ROOT/slurm/batch.sbatch" --local --repeats 2 --run 'python3 ../train.py {options}' two)
  repeated=$(echo again/results/results_*)
  [ "$(jq -r '.condition_order | join(" ")' "$repeated/metadata.json")" = "a-1 b-1 a-2 b-2" ]
  [ "$(zs-parse "$repeated" | zs-aggregate --format tsv | cut -f1,2 | sed 1d | xargs)" = "a 2 b 2" ]
  cp -r "$repeated" monday
  cp -r "$repeated" tuesday
  [ "$(zs-aggregate --format tsv monday tuesday/ | cut -f1,2 | sed 1d | xargs)" = "monday/a 2 monday/b 2 tuesday/a 2 tuesday/b 2" ]
  [ "$(zs-parse monday tuesday | zs-aggregate --format tsv | cut -f1 | sed 1d | xargs)" = "monday/a monday/b tuesday/a tuesday/b" ]
  run -0 zs-report monday tuesday -o both.html
  grep -q 'tuesday/b' both.html
  run -2 bash "$ROOT/slurm/batch.sbatch" --local --repeats 0 two
  [[ $output == *"--repeats needs a number of runs, 1 to 999"* ]] || complain "$output"
}

@test "train: another program's training is one run, with the options behind --" {
  run -0 env ZS_RANKS=2 bash "$ROOT/slurm/train.sbatch" --run '$ZS_LAUNCH python3 train.py' -- --steps 5 --lr 2
  [ "$(cut -d' ' -f1 ranks.1)" = 2 ]
  [ "$(runs state steps training.learning_rate)" = $'COMPLETE\t5/5\t2' ]
  run -1 env ZS_RANKS=2 bash "$ROOT/slurm/train.sbatch" --run '$ZS_LAUNCH python3 train.py' -- --fail_at 2
  [ "$(runs state | tail -n 1)" = FAILED ]
  run -1 env ZS_RANKS=2 bash "$ROOT/slurm/train.sbatch" --run '$ZS_LAUNCH python3 train.py --fail_at 2'
  run -0 zs-runs rerun --failed --dry_run
  [ "$(grep -c 'train.sbatch --resume' <<<"$output")" = 2 ] || complain "$output"
}

# A training that saves when it is warned, as a folder of safetensors, and goes on from one.
saving_trainer() {
  cat >save.py <<'PY'
import argparse, json, os, signal, struct, sys, time
p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=8)
p.add_argument("--out")
p.add_argument("--from", dest="start")
a = p.parse_args()
warned = []
signal.signal(signal.SIGUSR1, lambda *_: warned.append(1))
first = int(a.start.rsplit("_", 1)[1]) if a.start else 0
for step in range(first + 1, a.steps + 1):
    print(f"Epoch 1, Step {step}, Loss: {1 / step} sync: True time: 0.01 alloc_mem: 100 peak_mem: 200", flush=True)
    while step == 3 and not warned and not a.start: time.sleep(0.05)
    if warned:
        os.makedirs(f"{a.out}/checkpoint_{step - 1}")
        head = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        open(f"{a.out}/checkpoint_{step - 1}/model.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + b"abcd")
        os.makedirs(f"{a.out}/checkpoint_{step}")  # begun, and not there
        sys.exit(1)  # as a launcher ends of whose ranks one was stopped
PY
}

@test "preempted: a warning reaches the training below its shell, which goes on from its newest whole checkpoint, as the same run" {
  saving_trainer
  bash "$ROOT/slurm/train.sbatch" --run 'true && python3 save.py {options} --out {run} {resume}; exit $?' --resume_with '--from {checkpoint}' -- --steps 8 >out 2>&1 3>&- &
  script=$!
  at_step_3() { grep -qs 'Step 3' saved_models/*/run.log; }
  await at_step_3
  kill -USR1 $script
  wait $script && code=0 || code=$?
  [ "$code" = 75 ]
  [ "$(runs state)" = PREEMPTED ]
  run=(saved_models/2*)
  # Where there is no zs-train: it is not needed.
  mkdir light
  ln -s "$BUILD"/zs-* light
  rm -f light/zs-train
  run -0 env BUILD="$PWD/light" PATH="$PWD/light:${PATH#*:}" bash "$ROOT/slurm/train.sbatch" --resume "${run[0]}"
  [ "$(runs state restarts)" = $'COMPLETE\t1' ]
  [ "$(grep -c . saved_models/2*/run_attempt1.log)" = 3 ]
  # It began again behind what was saved; of both attempts the newer rows stand.
  head -n 1 saved_models/2*/run.log | grep 'Step 3,'
  [ "$(zs-parse saved_models/2* | grep -v '^#' | cut -f 2 | sed 1d | xargs)" = "1 2 3 3 4 5 6 7 8" ]
  [[ "$(runs resumed_from)" == */checkpoint_2 ]]
}

@test "probes: the report of a batch begins with whether its conditions compute the same" {
  # As zs_probe writes them, of one tensor.
  cat >probed.py <<'PY'
import base64, json, os, struct, sys
folder, value = os.environ["ZS_PROBE"], float(sys.argv[-1])
os.makedirs(folder)
def tensor(name, x):
    return {"name": name, "dtype": "F32", "shape": [1], "of": 1, "begin": 0, "count": 1, "digest": struct.pack("<d", x).hex(),
            "squares": x * x, "sketch": base64.b64encode(struct.pack("<8d", x, *[0.0] * 7)).decode()}
with open(folder + "/rank-0.jsonl", "w") as file:
    for row in ({"zs_probe": 2, "rank": 0, "world_size": 1, "id": os.urandom(8).hex(), "torch": "2", "layout": "plain", "framework": "", "tied": {}, "frozen": [], "unseen": []},
                {"start": 0, "tensors": [tensor("param/w", 1.0)]},
                {"step": 1, "computed": None, "loss": 1.0, "losses": [1.0], "scalars": {}, "groups": [{"lr": 1.0, "optimizer": "SGD", "params": ["w"]}], "batch": [], "rng": {}, "locals": [],
                 "tensors": [tensor("grad/w", value), tensor("param/w", 1.0 - value)], "values": None}, {"end": 1, "rank": 0, "every": 1, "since": 0, "lines": 1, "how": "whole"}):
        print(json.dumps(row), file=file)
print(f"Epoch 1, Step 1, Loss: {len(sys.argv)}.0 sync: True time: 0.01 alloc_mem: 100 peak_mem: 200")
PY
  cat >conditions.yaml <<'YAML'
run: python3 probed.py {options}
sets:
  same: {conditions: {a: --value 0.5, b: --value 0.5}}
  printed: {conditions: {a: --value 0.5, b: --of_one_rank --value 0.5}}
  other: {conditions: {a: --value 0.5, b: --value 0.25}}
YAML
  export ZS_PROBE=on ZS_CONDITIONS=conditions.yaml
  run -0 bash "$ROOT/slurm/batch.sbatch" --local same
  grep -F "step by step beside a's: b is equal to the bit." results/*/report.md
  refute grep -F "The logged losses differ" results/*/report.md
  rm -r results
  run -0 bash "$ROOT/slurm/batch.sbatch" --local printed
  grep -F "The logged losses differ and the recorded tensors do not: a log may have the loss of one rank, or of one micro-batch." results/*/report.md
  refute grep -E "tells noise|No condition logged a state digest" results/*/report.md
  rm -r results
  run -1 bash "$ROOT/slurm/batch.sbatch" --local other
  grep -F "step by step beside a's: b is DIFFERENT (step 1: gradient of w: x 1/2)." results/*/report.md
}

@test "batch: logs without a time, or without a loss, miss that picture alone; the report is named last" {
  cat >silent.py <<'PY'
import json, sys
for step in range(1, 5):
    if "--time" in sys.argv: print(json.dumps({"step": step, "step_time": 0.1}), flush=True)
    else: print(json.dumps({"step": step, "loss": 2 / step}), flush=True)
PY
  cat >conditions.yaml <<'YAML'
run: python3 silent.py {options}
sets:
  no_time: {conditions: {a: --seed 1, b: --seed 2}}
  no_loss: {conditions: {a: --time --seed 1, b: --time --seed 2}}
YAML
  export ZS_CONDITIONS=conditions.yaml
  for set in no_time no_loss; do
    run --separate-stderr bash "$ROOT/slurm/batch.sbatch" --local $set
    ((status < 2)) || complain "$set: status $status: $stderr"
    [[ ${lines[-1]} == "report: "*/report.html ]] || complain "$set: ${lines[-1]}"
    [ -s "${lines[-1]#report: }" ] || complain "$set: there is no ${lines[-1]#report: }"
    [[ $stderr != *" failed; the logs are in"* ]] || complain "$set: $stderr"
    folder=${lines[-1]#report: }
    folder=${folder%/*}
    [[ $set != no_time || -s $folder/loss_comparison.png && ! -e $folder/iteration_time_comparison.png ]] || complain "$set: $(ls "$folder")"
    [[ $set != no_loss || ! -e $folder/loss_comparison.png ]] || complain "$set: $(ls "$folder")"
    zs-report "$folder" >said || true
    rm -r results
  done
  verdict
}

@test "probes: zs says that nothing was recorded if a script has no optimizer" {
  echo 'print("hello")' >script.py
  ZS_PROBE=probe PYTHONPATH=$ROOT/share/probe run -0 --separate-stderr python3 -m zs_probe script.py
  [ "$output" = hello ]
  # shellcheck disable=SC2154
  [ "$stderr" = "zs_probe: nothing was recorded: no optimizer of torch made a step" ]
  [ ! -e probe ]
}

@test "probes: a module that was only asked for is watched when it is imported" {
  mkdir deepspeed && echo 'def initialize(): pass' >deepspeed/__init__.py
  run -0 env ZS_PROBE=probe PYTHONPATH="$ROOT/share/probe/site:." python3 -c '
import importlib.util
importlib.util.find_spec("deepspeed")
import deepspeed
print(deepspeed.initialize.__module__)'
  [ "$output" = zs_probe.boot ]
}

@test "batch: the report lists an option of the script that differs between conditions, and versions that differ" {
  printf 'import json\nfor step in range(1, 5): print(json.dumps({"step": step, "loss": 2 / step}), flush=True)\n' >own.py
  printf 'run: python3 own.py {options}\nsets:\n  mine: {conditions: {a: --stage 1, b: --stage 1 --accum 2}}\n' >conditions.yaml
  export ZS_CONDITIONS=conditions.yaml
  run bash "$ROOT/slurm/batch.sbatch" --local mine
  grep -qx '| condition | accum |' results/*/report.md || complain "$(grep '| condition' results/*/report.md)"
  grep -qx '| `b` | 2 |' results/*/report.md || complain "$(grep '| `b`' results/*/report.md)"
  grep -q '^| versions | python 3' results/*/report.md || complain "$(grep '^| ' results/*/report.md)"
  verdict
}
