# SPDX-License-Identifier: Apache-2.0
# make check-slurm: whole workflows on the sandbox, with everything that befalls jobs (20 minutes on 2 cores).
setup_file() {
  load ../helper
  load ../cluster
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built"
  cluster_up --nodes 4 --cpus 2
}

teardown_file() {
  load ../helper
  "$ROOT/slurm/sandbox/down"
}

setup() {
  load ../helper
  load ../cluster
  mkdir "$BATS_TEST_TMPDIR/a folder" && cd "$BATS_TEST_TMPDIR/a folder"
}

# Says what was measured, also where the test passes.
measured() { echo "# $*" >&3; }

small=(--num_layers 2 --seq_length 32)

@test "check-slurm: the batch's six digests on 2 nodes x 2 ranks are one, and equal to the run without Slurm" {
  sbatch --parsable --output=out --nodes=2 --ntasks=4 "$ROOT/slurm/batch.sbatch" -- "${small[@]}" --max_steps 40 >job
  ended "$(cat job)"
  [ "$state $code" = "COMPLETED 0" ]
  ended "$(told report)"
  results=$(told results)
  cat "$results"/slurm-report-*
  [ "$state $code" = "COMPLETED 0" ]
  [ -s "$results/report.html" ]
  [ "$(jq -r '[.conditions[].slurm_nodes | test(",|-")] | all' "$results/metadata.json")" = true ]
  ZS_RANKS=4 env -u SLURM_CONF bash "$ROOT/slurm/batch.sbatch" -- "${small[@]}" --max_steps 40
  [ "$(cat results/*/z?_*e*.log | grep -cE '^state_digest: ')" = 24 ]
  [ "$(cat results/*/z*.log | grep -oE 'state_digest: [0-9a-f]{32}' | sort -u | wc -l)" = 1 ]
  [ "$(column state --status | tr ' ' '\n' | sort | uniq -c | xargs)" = "12 COMPLETE" ]
}

@test "check-slurm: a sweep of 24 cells, 4 at a time; three are killed in three ways; exactly these are run again" {
  cat >base.yaml <<'END'
model: {name: tiny, num_layers: 2, context_length: 32}
training: {batch_size: 2, max_steps: 300, log_interval: 50, save_steps: 50, keep_last: 1, save_gradients: false}
END
  cat >sweep.yaml <<'END'
sweep_name: many
parameters:
  training.learning_rate: {values: [1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3]}
  training.seed: {values: [1, 2]}
  zero.stage: {values: [1, 3]}
END
  bash "$ROOT/slurm/sweep.sbatch" --sbatch --nodes=1 --sbatch --ntasks=2 --max_parallel 4 --max_restarts 0 base.yaml sweep.yaml >out
  results=$(told results) array=$(told array) report=$(told report)
  # victim: sets `cell` and `task`, one that trains, and not for long yet.
  victim() {
    local steps
    for task in $(squeue -h -r -j "$array" -t RUNNING -o %K); do
      cell=$(sed -n "${task}p" "$results"/.cells/todo.*)
      steps=$(steps_of "$(jq -r ".conditions.$cell.run" "$results/metadata.json")")
      if [[ $steps -ge 2 && $steps -lt 200 && " ${killed[*]} " != *" $cell "* ]]; then return 0; fi
    done
    return 1
  }
  killed=()
  # One of the ranks of one, by kill -9.
  await victim
  kill -KILL "$(ranks_of "$(scontrol show job "${array}_$task" | sed -n 's/^JobId=\([0-9]*\).*/\1/p')" | tail -n 1)"
  killed+=("$cell")
  (($(squeue -h -r -j "$array" -t RUNNING | wc -l) <= 4))
  # One by scancel.
  await victim
  scancel "${array}_$task"
  killed+=("$cell")
  # One with its node.
  await victim
  node=$(squeue -h -r -j "${array}_$task" -o %N)
  scontrol update nodename="$node" state=down reason="a test"
  killed+=("$cell")
  sleep 5
  # A node whose daemon answers may have come back by itself.
  scontrol update nodename="$node" state=resume || true
  expected=$(printf '%s\n' "${killed[@]}" | sort | xargs)
  ended "$report"
  cat "$results"/slurm-report-*
  [ "$state $code" = "FAILED 1" ]
  [ "$(grep -E '^many_[0-9]+: (FAILED|MISSING|PREEMPTED)' "$results"/slurm-report-* | cut -d: -f1 | xargs)" = "$expected" ]
  [ "$(column condition --status --filter state!=COMPLETE)" = "$expected" ]
  zs-runs --status --filter state!=COMPLETE --show condition state basis
  seeds=$(column training.seed)

  zs-runs rerun --failed --sweep many >out
  [[ $(grep '^array: ' out) == *" (3 conditions)" ]]
  run -0 zs-runs rerun --failed --sweep many
  [ "$output" = "nothing to run again" ]
  ended "$(told report)"
  cat "$results"/slurm-report-*
  [ "$state $code" = "COMPLETED 0" ]
  [ "$(column state --status | tr ' ' '\n' | sort | uniq -c | xargs)" = "24 COMPLETE" ]
  [ "$(column training.seed)" = "$seeds" ]
  run -0 zs-runs rerun --failed
  [ "$output" = "nothing to run again" ]
}

@test "check-slurm: 20 preemptions, by requeue, signal and time limit: one run, the digest of the undisturbed one" {
  cat >undisturbed.yaml <<'END'
model: {name: tiny, num_layers: 2, context_length: 128}
training: {batch_size: 4, max_steps: 1200, log_interval: 50, save_steps: 7, keep_last: 2, save_gradients: false}
END
  cp undisturbed.yaml disturbed.yaml
  ZS_RANKS=4 env -u SLURM_CONF bash "$ROOT/slurm/train.sbatch" undisturbed.yaml >undisturbed.log
  RANDOM=1
  bash "$ROOT/slurm/train.sbatch" --sbatch --output=out --sbatch --nodes=2 --sbatch --ntasks=4 disturbed.yaml | tee said
  job=$(sed -n 's/^job: //p' said) run=$(sed -n 's/^run: //p' said)
  kinds=(requeue usr1 term)
  for ((i = 0; i < 20; ++i)); do
    steps=$(steps_of "$run")
    await reached "$run" $((steps + 2 + RANDOM % 12))
    kind=${kinds[RANDOM % 3]}
    # Slurm looks for limits every half a minute only: many steps.
    if ((i == 5 || i == 13)); then kind=limit; fi
    case $kind in
      requeue) scontrol requeue "$job" ;;
      usr1) scancel --batch --signal=USR1 "$job" ;;
      term) scancel --signal=TERM "$job" ;;
      limit) scontrol update JobId="$job" TimeLimit=1 ;;
    esac
    again() { [[ $(state_of "$job") == PENDING ]]; }
    await again
    [ "$(column state --status --filter run_name=disturbed)" = PENDING ]
    scontrol update JobId="$job" TimeLimit=60
  done
  ended "$job"
  grep -v '^run: ' out | tail
  [ "$state $code" = "COMPLETED 0" ]
  of() { column "$1" --filter run_name=disturbed "${@:2}"; }
  [ "$(of state --status)" = COMPLETE ]
  [ "$(of restarts)" = 20 ]
  [ "$(of segments | tr , '\n' | wc -l)" = 21 ]
  measured "went on after the steps $(of segments)"
  # The state digest is one, and so is every loss; zs-runs has seen that each step is there once.
  run -1 zs-runs diff undisturbed disturbed
  [ -z "$(grep -E 'digest|loss' <<<"$output")" ]
  [[ $(of state_digest) =~ ^[0-9a-f]{32}$ ]]
  [ "$(of state_digest)" = "$(column state_digest --filter run_name=undisturbed)" ]
  # The log has each step once too.
  [ -z "$(grep -oE 'Step [0-9]+,' "$run/run.log" | sort | uniq -d)" ]
}

@test "check-slurm: a training on 4 nodes that loses one goes on with 3, and then with 4: the digest of the undisturbed one" {
  cat >whole.yaml <<'END'
model: {name: tiny, num_layers: 2, context_length: 64}
training: {batch_size: 2, train_batch_size: 24, max_steps: 300, log_interval: 50, save_steps: 5, keep_last: 2, save_gradients: false}
END
  cp whole.yaml lost.yaml
  ZS_RANKS=4 env -u SLURM_CONF bash "$ROOT/slurm/train.sbatch" whole.yaml >whole.log
  # on NODES ARGUMENT...: submits, and sets `job`.
  on() {
    bash "$ROOT/slurm/train.sbatch" --sbatch --output=out --sbatch --no-requeue --sbatch --nodes="$1" --sbatch --ntasks="$1" "${@:2}" >said
    job=$(sed -n 's/^job: //p' said)
  }
  on 4 lost.yaml
  run=$(sed -n 's/^run: //p' said)
  await reached "$run" 20
  node=$(squeue -h -j "$job" -o %N | xargs -n 1 scontrol show hostnames | tail -n 1)
  scontrol update nodename="$node" state=down reason="a test"
  ended "$job"
  [ "$state" = NODE_FAIL ]
  # A node whose daemon answers may come back by itself.
  scontrol update nodename="$node" state=drain reason="a test"
  steps=$(steps_of "$run")
  on 3 --resume "$run"
  await reached "$run" $((steps + 60))
  scancel "$job"
  ended "$job"
  [ "$state" = CANCELLED ]
  scontrol update nodename="$node" state=resume
  (($(steps_of "$run") < 300))
  on 4 --resume "$run"
  ended "$job"
  grep -v '^run: ' out | tail
  [ "$state $code" = "COMPLETED 0" ]
  [ "$(column state --status --filter run_name=lost)" = COMPLETE ]
  measured "went on after the steps $(column segments --filter run_name=lost)"
  [[ $(column state_digest --filter run_name=lost) =~ ^[0-9a-f]{32}$ ]]
  [ "$(column state_digest --filter run_name=lost)" = "$(column state_digest --filter run_name=whole)" ]
  [ -z "$(grep -oE 'Step [0-9]+,' "$run/run.log" | sort | uniq -d)" ]
}

@test "check-slurm: a rank that hangs in a collective ends the job within 60 s, named with its node" {
  echo '{model: {name: tiny, num_layers: 1, context_length: 16}, training: {max_steps: 1000000}}' >config.yaml
  bash "$ROOT/slurm/train.sbatch" --sbatch --output=out --sbatch --nodes=2 --sbatch --ntasks=4 config.yaml >said
  job=$(sed -n 's/^job: //p' said) run=$(sed -n 's/^run: //p' said)
  await reached "$run" 3
  node=$(scontrol show hostnames "$(squeue -h -j "$job" -o %N)" | tail -n 1)
  for pid in $(ranks_of "$job"); do
    if grep -qzx 'SLURM_PROCID=3' "/proc/$pid/environ"; then kill -STOP "$pid"; fi
  done
  begin=$SECONDS
  ended "$job"
  measured "ended $((SECONDS - begin)) s after rank 3 on $node was stopped: $(grep -m 1 '^zs-train: ' out)"
  ((SECONDS - begin <= 60))
  [ "$state" = FAILED ]
  grep -qE "^zs-train: rank [0-2] on n[1-4]: .*rank 3 on $node" out
  gone() { [ -z "$(ranks_of "$job")" ]; }
  await gone
  [ "$(column state --status)" = FAILED ]
}

@test "check-slurm: a revision compared with itself on 2 nodes x 2 ranks is the same" {
  git init -q repo
  git -C repo -c user.name=n -c user.email=e commit -q --allow-empty -m one
  ended "$(sbatch --parsable --output=out --nodes=2 --ntasks=4 "$ROOT/slurm/compare-revisions.sbatch" --revision1 HEAD --revision2 HEAD \
    --repo "$PWD/repo" --build true --runs_per_revision 2 \
    --run "\$ZS_LAUNCH $BUILD/zs-train --model_name tiny ${small[*]} --max_steps 30 --log_interval 1")" 600
  cat out
  # So few runs may not decide about the speed.
  [[ "$state $code" == "COMPLETED 0" || "$state $code" == "FAILED 3" ]]
  grep -q 'HEAD.2 against HEAD.1: identical bits (state digest [0-9a-f]*)' out
}

@test "check-slurm: what the chain adds to the trainings, from submission to report" {
  fake_trainer
  printf '%s\n' 'sweep_name: quick' 'parameters: {training.seed: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}}' >sweep.yaml
  echo '{model: {name: tiny}, zero: {stage: 1}}' >base.yaml
  for parallel in 1 4; do
    begin=${EPOCHREALTIME/./}
    bash "$ROOT/slurm/sweep.sbatch" --submit --max_parallel $parallel base.yaml sweep.yaml >out
    planned=${EPOCHREALTIME/./}
    ended "$(told report)"
    [ "$state $code" = "COMPLETED 0" ]
    measured "12 trainings of no length, $parallel at a time: $(((${EPOCHREALTIME/./} - begin) / 12000)) ms each, of which $(((planned - begin) / 12000)) for plan and submission"
  done
}
