# SPDX-License-Identifier: Apache-2.0
# slurm/batch.sbatch without Slurm: which arguments it rejects, and what it does if a condition fails.
setup() {
  load helper
  load drawing
  no_pictures
  mkdir "$BATS_TEST_TMPDIR/a folder" && cd "$BATS_TEST_TMPDIR/a folder"
}

batch() { bash "$ROOT/slurm/batch.sbatch" "$@"; }

@test "batch: a mistyped option, a second set and an unknown set are refused with status 2" {
  run -2 --separate-stderr batch --hlep
  [[ $stderr == "batch.sbatch: unknown option '--hlep'"* ]]
  run -2 --separate-stderr batch minimal_test full_comparison
  [[ $stderr == "batch.sbatch: one set at a time"* ]]
  run -2 --separate-stderr batch minimal_tset
  [[ $stderr == *minimal_test* ]]
  ZS_RANKS=two run -2 --separate-stderr batch minimal_test
  [[ $stderr == *"ZS_RANKS: 'two'"* ]]
  [ ! -e results ]
}

@test "batch: a condition that fails is FAILED, does not stop the others, and makes the status 1" {
  fake_trainer
  pictures
  run -1 --separate-stderr batch
  [[ ${lines[-1]} == "report: $PWD/results/results_"*/report.html ]]
  cd results/results_*
  for file in experiment_log.txt metadata.json summary.h5 report.md report.html loss_comparison.png \
    iteration_time_comparison.png memory_usage_comparison.png; do
    [ -s "$file" ] || complain "no $file"
  done
  [ "$(jq -c '[.conditions[].exit_code]' metadata.json)" = "[0,0,42,0,0,42]" ]
  [ "$(jq -r '.condition_order | length' metadata.json)" = 6 ]
  for name in $(jq -r '.condition_order[]' metadata.json); do
    grep -qF -- "$(cat $name.log)" "${name}_detailed.log" || complain "${name}_detailed.log lacks what $name.log has"
  done
  [ "$(grep -c '| FAILED | 42 |' experiment_log.txt)" = 2 ]
  [ "$(grep -c '| SUCCESS | 0 |' experiment_log.txt)" = 4 ]
  grep -q FAILED report.md
  run ! grep basis report.md
  grep -q FAILED report.html
  verdict
}

@test "batch: --rerun trains what failed and nothing else, with what it was planned with" {
  fake_trainer
  run -1 batch full_comparison -- --seed 7
  sed -i 's/--zero_stage 3/--never/' bin/zs-train
  run -2 --separate-stderr batch --rerun results/results_*
  [[ $stderr == "zs-runs: changed since this was submitted: "*/bin/zs-train* ]]
  sha256sum bin/zs-train | sed "s|bin/|$PWD/bin/|" >results/results_*/frozen.sha256
  run -0 --separate-stderr batch --rerun results/results_*
  [ "$(grep -c ': done in' <<<"$stderr")" = 2 ]
  [ "$(jq -c '[.conditions[].exit_code]' results/*/metadata.json)" = "[0,0,0,0,0,0]" ]
  [ "$(jq '[.conditions[].arguments | contains(["--seed", "7"])] | all' results/*/metadata.json)" = true ]
  run -0 --separate-stderr batch --rerun results/results_*
  [[ $stderr == "nothing in "*" has failed or is missing" ]]
  run -2 batch --rerun "$BATS_TEST_TMPDIR"
}

@test "sweep: every run of a sweep is trained with its own configuration" {
  fake_trainer
  run -0 --separate-stderr bash "$ROOT/slurm/sweep.sbatch" "$ROOT/share/configs/config.yaml" "$ROOT/share/configs/sweep.yaml" -- --seed 7
  runs=$(zs-sweep "$ROOT/share/configs/config.yaml" "$ROOT/share/configs/sweep.yaml" --count)
  [ "$(jq -c '[.conditions[].exit_code] | unique, length' results/*/metadata.json)" = $'[0]\n'"$runs" ]
  for name in $(jq -r '.condition_order[]' results/*/metadata.json); do
    [ -s "$(echo results/*/configs/$name.yaml)" ] || complain "no configuration of $name"
    grep -q "configs/$name.yaml' --seed 7" results/*/${name}_detailed.log || complain "$name was trained with something else"
  done
  [ "$(head -n 1 results/*/report.md)" = "# Sweep of $runs conditions" ] || complain "not the report of a sweep: $(head -n 1 results/*/report.md)"
  # The folder knows what it is.
  run -0 zs-report results/*/
  [ "$(head -n 1 results/*/report.md)" = "# Sweep of $runs conditions" ] || complain "made again as another: $(head -n 1 results/*/report.md)"
  run -2 bash "$ROOT/slurm/sweep.sbatch" no-such.yaml
  run -2 bash "$ROOT/slurm/sweep.sbatch" a b c
  verdict
}

@test "train: the exit status is the training's" {
  fake_trainer
  echo 'model: {name: tiny}' >a.yaml
  run -0 bash "$ROOT/slurm/train.sbatch"
  [[ $output == *"state_digest: "* ]]
  run -42 bash "$ROOT/slurm/train.sbatch" a.yaml -- --zero_stage 3
  run -2 bash "$ROOT/slurm/train.sbatch" --zero_stage 3
}

@test "batch: options after -- reach every training, as they were typed" {
  fake_trainer
  run -1 batch zero_comparison -- --dataset "a b.txt"
  [ "$(jq "[.conditions[].command | test(\"--dataset 'a b.txt'\$\")] | all" results/*/metadata.json)" = true ]
  [ "$(jq '[.conditions[].arguments | .[-2:] == ["--dataset", "a b.txt"]] | all' results/*/metadata.json)" = true ]
}

@test "batch: a signal stops the running condition and no rank stays" {
  fake_trainer
  sed -i 's/^{/echo $$ >>pids; exec sleep 3600; {/' bin/zs-train
  bash "$ROOT/slurm/batch.sbatch" minimal_test 2>err &
  batch=$!
  await [ -s pids ]
  kill -TERM $batch
  wait $batch && status=0 || status=$?
  [ $status = 143 ]
  # shellcheck disable=SC2046
  none_runs $(cat pids)
}

@test "batch: on 2 ranks, for real: the conditions end with one state digest" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  run -0 --separate-stderr batch full_comparison -- --num_layers 2 --seq_length 16 --max_steps 3 --log_interval 1
  [ "$(cat results/*/z*.log | grep -oE 'state_digest: [0-9a-f]{32}' | sort -u | wc -l)" = 1 ]
}

@test "batch: on 2 ranks, for real: a Llama reads text through its own tokenizer, a ViT images; accuracies are in the report" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  command -v python3 >/dev/null || no_package python3
  # A Llama with the tokenizer in its folder: the words decide the size of the vocabulary.
  zs-train --model_name tiny-llama --set model.vocab_size=1600 --num_layers 1 --seq_length 16 --max_steps 1 --save_final false --save_pretrained llama --output_dir made >log
  cp "$ROOT/tests/token/gpt2.json" llama/tokenizer.json
  python3 "$ROOT/tests/pictures.py" pictures 3 12
  digests() { cat results/*/z*.log | grep -oE 'state_digest: [0-9a-f]{32}' | sort -u | wc -l; }
  printf 'sets: {two: {description: x, conditions: {z1_baseline: {zero_stage: 1}, z3_baseline: {zero_stage: 3}}}}\n' >set.yaml
  export ZS_CONDITIONS=$PWD/set.yaml
  ZS_CACHE=$PWD/cache run -0 --separate-stderr batch two -- --model_name llama --dataset "$ROOT/LICENSE" --seq_length 32 --max_steps 3
  [ "$(digests)" = 1 ] || complain "Llama: $(digests) digests"
  grep -q 'run: tokenizer=.*llama' results/*/z1_baseline.log || complain "not its own tokenizer"
  ls cache/tokens/*.bin >/dev/null || complain "nothing was tokenised"
  mv results llama-results
  run -0 --separate-stderr batch two -- --model_name tiny-vit --num_layers 1 --dataset "$PWD/pictures" --max_steps 3
  [ "$(digests)" = 1 ] || complain "ViT: $(digests) digests"
  for file in results/*/report.md results/*/report.html; do
    grep -qi 'accuracy' "$file" || complain "no accuracy in $file"
  done
  grep -q 'class0' results/*/report.html || complain "no class in the report"
  verdict
}

@test "batch: without Slurm --submit says what to do instead" {
  fake_trainer
  mkdir only
  for tool in bash env realpath dirname sed mkdir cat; do ln -s "$(command -v $tool)" only/; done
  run -2 --separate-stderr env PATH="$PWD/only" bash "$ROOT/slurm/batch.sbatch" --submit minimal_test
  [ "$stderr" = "batch.sbatch: no Slurm here (sbatch is not on PATH): --local runs it without" ]
  [ ! -e results ]
}

@test "batch: what failed is run again here, one after another; a second call finds nothing to do" {
  fake_trainer
  run -1 batch zero_comparison
  [ "$(zs-runs --status --filter state=FAILED --show condition basis)" = $'condition\tbasis\nz3_baseline\tzs-train: out of memory, exit code 42, no metrics' ]
  [ "$(zs-runs rerun --failed --dry_run)" = "$(jq -r .conditions.z3_baseline.run results/*/metadata.json)" ]
  sed -i 's/--zero_stage 3/--never/' bin/zs-train
  sha256sum bin/zs-train | sed "s|bin/|$PWD/bin/|" >"$(echo results/*/frozen.sha256)"
  cd /
  run -0 --separate-stderr zs-runs --registry "$BATS_TEST_TMPDIR/a folder/saved_models" rerun --failed
  [ "$(grep -c ': done in' <<<"$stderr")" = 1 ]
  run -0 zs-runs --registry "$BATS_TEST_TMPDIR/a folder/saved_models" rerun --failed
  [ "$output" = "nothing to run again" ]
}

@test "batch: a set that zs-train would not take is refused before anything runs" {
  fake_trainer
  run -2 --separate-stderr batch minimal_test -- --zero_stgae 3
  [[ $stderr == "zs-runs: z1_baseline: unknown option '--zero_stgae', did you mean "* ]]
  [ -z "$(ls results)" ]
  [ ! -e saved_models ]
}

@test "batch: a results folder on a full disk is an error with its place" {
  fake_trainer
  unshare -rm true 2>/dev/null || skip "no mounts here"
  mkdir results
  run -2 --separate-stderr unshare -rm bash -c 'mount -t tmpfs -o size=8k none results && cd "$PWD" && mkdir -p results/x && head -c 20000 /dev/zero >results/full; exec bash "$ROOT/slurm/batch.sbatch" minimal_test'
  echo "$stderr"
  [[ $stderr == *"zs-runs: "*/results/results_*": write: No space left on device" ]]
  # A disk that fills up while it trains: how to go on is said.
  echo 'sets: {mine: {run: "echo step 1 loss 1; head -c 1000000 /dev/zero >results/full; true {options}", conditions: {a: {}}}}' >mine.yaml
  ZS_CONDITIONS=mine.yaml run -2 --separate-stderr unshare -rm bash -c 'mount -t tmpfs -o size=200k none results && cd "$PWD" && exec bash "$ROOT/slurm/batch.sbatch" mine'
  [[ $stderr == *"metadata.json: write: No space left on device"*"cannot write "*"; once it can be written: zs-runs rerun "*/results/results_* ]]
}

@test "batch: a run whose process was killed is FAILED, not running for ever" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 100000 >log &
  pid=$!
  await compgen -G 'saved_models/*/metrics.h5' >/dev/null
  [ "$(zs-runs --status --show state basis | tail -n 1)" = $'RUNNING\tits process on this host is alive' ]
  kill -KILL $pid
  wait $pid || true
  run -0 zs-runs --status --show state basis
  [[ ${lines[1]} == $'FAILED\tits process on this host is gone, '*"/100000 steps in the metrics" ]]
  run -1 zs-runs rerun --failed
  [[ $output == *"no script has planned it: zs-train --resume "* ]]
}

@test "batch: what failed is named with the command that goes on, and how many have ended" {
  fake_trainer
  sed -i 's/^{/sleep 1; {/' bin/zs-train
  run -1 --separate-stderr batch zero_comparison
  results=$(realpath results/results_*)
  [[ ${stderr_lines[0]} == "[1/3] z1_baseline" ]] || complain "${stderr_lines[0]}"
  [[ $stderr == *"[1/3] z1_baseline: done in "*" s, state digest 0123456789abcdef0123456789abcdef; 1 of 3 have ended, the rest takes about "[0-9]*:[0-9][0-9]:[0-9][0-9]* ]] ||
    complain "no time left"
  [[ $stderr == *"[3/3] z3_baseline: FAILED with exit code 42 after "*$'\n    zs-train: out of memory\n'*"3 of 3 have ended"* ]] || complain "no failure"
  go_on=$(sed -n 's/^to go on: //p' <<<"$stderr")
  [ "$go_on" = "zs-runs rerun '$results'" ] || complain "to go on: $go_on"
  run -0 zs-runs show "$results"
  [[ $output == *$'condition\tz1_baseline\tCOMPLETE: '*$'condition\tz3_baseline\tFAILED: '* ]] || complain "$output"
  sed -i 's/--zero_stage 3/--never/' bin/zs-train
  sha256sum bin/zs-train | sed "s|bin/|$PWD/bin/|" >"$results/frozen.sha256"
  cd /
  run -0 --separate-stderr bash -c "$go_on"
  [[ $stderr == *"[3/3] z3_baseline: done in "* ]] || complain "not run again"
  [[ $stderr != *"to go on"* ]] || complain "something is left"
  verdict
}

@test "batch: two that go on with an experiment at once never get the same condition" {
  fake_trainer
  run -1 batch full_comparison
  results=$(realpath results/results_*)
  for i in {1..4}; do
    zs-runs plan --again failed "$results" "host=$(hostname)" "process=$$:$(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)" >got.$i &
  done
  wait
  [ "$(cat got.* | cut -f1 | sort | xargs)" = "z3_baseline z3_deepcompile" ]
}

@test "batch: zs-runs start ends with 125 and says why if it cannot start a condition" {
  fake_trainer
  one_condition
  run -0 batch one
  results=$(realpath results/results_*)
  run -125 --separate-stderr zs-runs start "$results" b -- touch started
  [ "$stderr" = "zs-runs: $results: has no condition 'b', did you mean 'a'?" ]
  run -125 --separate-stderr zs-runs start "$results" a -- "$PWD/no-such-launcher"
  [ "$stderr" = $'[1/1] a\nzs-runs: '"$PWD/no-such-launcher: No such file or directory" ]
  echo >>bin/zs-train
  run -125 --separate-stderr zs-runs start "$results" a -- touch started
  [ "$stderr" = "zs-runs: changed since this was submitted: $PWD/bin/zs-train; restore it, or submit a new run" ]
  [ ! -e started ]
}

# A set of one condition, which trains.
one_condition() {
  printf 'sets: {one: {description: x, conditions: {%s: {zero_stage: 1}}}}\n' "${1:-a}" >set.yaml
  export ZS_CONDITIONS=$PWD/set.yaml
}

@test "batch: no secret of the environment or of the command line is written anywhere" {
  fake_trainer
  one_condition
  secret=s3cret$RANDOM$RANDOM
  export SLURM_JWT=$secret SLURM_SECRET=$secret NCCL_TOKEN=$secret OMPI_MCA_btl_key=$secret ZS_PASSWORD=$secret CUDA_X=$secret OMP_PLACES=cores
  run -0 --separate-stderr batch one -- --set "wandb.api_key=$secret" "--set=hub.token=$secret" --set wandb.project=plain
  run ! grep -ra "$secret" results saved_models
  grep -q '^OMP_PLACES=cores$' results/*/a_detailed.log
  [ "$(jq -c '.conditions.a.arguments | .[-5:]' results/*/metadata.json)" = \
    '["--set","wandb.api_key=(withheld)","--set=hub.token=(withheld)","--set","wandb.project=plain"]' ] || complain "$(cat results/*/metadata.json)"
  run -0 bash "$ROOT/slurm/train.sbatch" -- --set "wandb.api_key=$secret" --seed 7
  run ! grep -ra "$secret" results saved_models
  [[ $(zs-runs --filter condition=train --show command | tail -n 1) == *" --set 'wandb.api_key=(withheld)' --seed 7" ]]
  verdict
}

@test "batch: a condition that would write another's log is refused before anything runs" {
  fake_trainer
  printf 'sets: {u: {description: x, conditions: {a_detailed: {zero_stage: 1}, a: {zero_stage: 1, seed: 7}}}}\n' >set.yaml
  ZS_CONDITIONS=set.yaml run -2 --separate-stderr batch u
  [ "$stderr" = "zs-runs: condition 'a_detailed': NAME_detailed.log is the log of condition NAME: call it something else" ]
  [ ! -e saved_models ]
  [ -z "$(ls results)" ]
}

@test "batch: where every condition fails the status is 1, with a report; a closed stderr changes nothing" {
  fake_trainer
  one_condition
  sed -i 's/--zero_stage 3/--zero_stage/' bin/zs-train
  run -1 batch one
  [ -s "$(echo results/*/report.html)" ]
  rm -rf results
  run -1 bash -c 'bash "$0" one 2>&-' "$ROOT/slurm/batch.sbatch"
  [ -s "$(echo results/*/report.html)" ]
}

@test "batch: a folder whose name has a line end is refused before anything runs; 08 is a number of restarts" {
  fake_trainer
  one_condition
  mkdir $'line\nend'
  cd $'line\nend'
  run -2 --separate-stderr batch one
  [[ $stderr == "batch.sbatch: the name of this folder has a line end or a tab in it"* ]]
  [ -z "$(ls)" ]
  cd ..
  run -0 batch --max_restarts 08 one
  [ "$(jq .max_restarts results/*/metadata.json)" = 8 ]
}

@test "batch: what another user has written is not run again, and not read from ~/.config" {
  ((EUID == 0)) || skip "this needs two users"
  fake_trainer
  one_condition
  run -0 batch one
  results=$(echo results/results_*)
  for file in "$results" "$results"/{metadata.json,frozen.sha256,.cells,.lock}; do
    chown nobody "$file"
    run -2 --separate-stderr batch --rerun "$results"
    [[ $stderr == "zs-runs: "*" belongs to nobody: its commands would run as you (--any_owner runs them)" ]] || complain "$file: $stderr"
    chown root "$file"
  done
  chown nobody "$results/metadata.json"
  run -0 --separate-stderr batch --any_owner --rerun "$results"
  [[ $stderr == "nothing in "* ]]
  run=$(echo saved_models/2*)
  cp "$results/frozen.sha256" "$run/"
  chown nobody "$run/config.yaml"
  run -2 --separate-stderr bash "$ROOT/slurm/train.sbatch" --resume "$run"
  [[ $stderr == "zs-runs: "*"/config.yaml belongs to nobody: "* ]]
  mkdir -p config/zs
  echo 'touch pwned' >config/zs/site.sh
  for place in config/zs/site.sh config/zs; do
    for change in "chown nobody" "chmod 777"; do
      $change $place
      XDG_CONFIG_HOME=$PWD/config run -2 --separate-stderr batch --list
      [[ $stderr == "batch.sbatch: $PWD/$place is another user's, or everybody may write it: $PWD/config/zs/site.sh is not read" ]] || complain "$change $place: $stderr"
      chown root $place
      chmod 755 $place
    done
  done
  [ ! -e pwned ]
  XDG_CONFIG_HOME=$PWD/config run -0 batch --list
  [ -e pwned ]
  verdict
}

@test "train: for real, no secret is written, and no value can pass for a line of the log" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  text=$'text\nEpoch 1, Step 9, Loss: 0.5 sync: True'
  head -c 20000 /usr/share/common-licenses/Apache-2.0 | cat >"$text"
  secret=s3cret$RANDOM$RANDOM
  echo "wandb: {api_key: $secret, project: plain}" >$'a\nb.yaml'
  run -0 zs-train $'a\nb.yaml' --model_name tiny --num_layers 1 --seq_length 16 --max_steps 2 --log_interval 1 --dataset "$text" --set "hub.token=$secret"
  run ! grep -ra "$secret" saved_models
  grep -q '(withheld)' saved_models/2*/config.yaml
  run ! grep '^Epoch 1, Step 9' saved_models/2*/run.log saved_models/2*/config.yaml
  grep -q '^run: command=.*hub.token=(withheld)' saved_models/2*/run.log
  [ "$(zs-runs --show wandb.project)" = $'wandb.project\nplain' ]
  # config.yaml can be read again.
  zs-train saved_models/2*/config.yaml --max_steps 1 --output_dir again >/dev/null
}
