# SPDX-License-Identifier: Apache-2.0
# The throwaway cluster, with real daemons, and the workflows on it.
setup_file() {
  load helper
  load cluster
  cluster_up --nodes 2 --gpus 2
}

teardown_file() {
  load helper
  "$ROOT/slurm/sandbox/down"
}

setup() {
  load helper
  load cluster
  load drawing
  no_pictures
  mkdir "$BATS_TEST_TMPDIR/a folder" && cd "$BATS_TEST_TMPDIR/a folder"
}

@test "sandbox: env points Slurm's commands at it, and status shows its nodes" {
  unset SLURM_CONF
  eval "$("$ROOT/slurm/sandbox/env")"
  [ "$(sinfo -h -N -o %N | xargs)" = "n1 n2" ]
  run -0 "$ROOT/slurm/sandbox/status"
  [[ $output == *"4 daemons"* || $output == *"3 daemons"* ]]
  [[ $output == *n1*idle*n2*idle* ]]
}

@test "sandbox: it listens on the loopback device only" {
  command -v ss >/dev/null || no_package iproute2
  run ss -ltnp
  [[ $output == *slurmctld* ]]
  [ -z "$(grep -E 'slurm' <<<"$output" | grep -vF '127.0.0.1:')" ]
}

@test "sandbox: a second one in its place is refused, one elsewhere is not there" {
  run -2 "$ROOT/slurm/sandbox/up"
  [[ $output == "up: there is a sandbox in $ZS_SANDBOX already"* ]]
  mkdir mine
  ZS_SANDBOX=$PWD/mine run -2 "$ROOT/slurm/sandbox/down"
  [ -d mine ]
  ZS_SANDBOX=/tmp/zs-none run -1 "$ROOT/slurm/sandbox/status"
  ZS_SANDBOX=/tmp/zs-none run -2 "$ROOT/slurm/sandbox/env"
  run -2 "$ROOT/slurm/sandbox/up" --nodse 3
}

@test "sandbox: a link in its place, and a folder that others may enter or have made, are left alone" {
  mkdir -m 755 theirs
  touch theirs/.zs-sandbox theirs/slurm.conf
  ln -s theirs link
  refused() {
    for tool in up down status env; do
      ZS_SANDBOX=$PWD/$1 run -2 "$ROOT/slurm/sandbox/$tool"
      [[ $output == "$tool: $PWD/$1 must be a folder of yours that other users cannot enter"* ]] || complain "$1: $tool: $output"
    done
  }
  refused theirs
  chmod 700 theirs
  refused link
  if ((EUID == 0)); then
    chown nobody theirs
    refused theirs
  fi
  [ -e theirs/slurm.conf ]
  [ -L link ]
  verdict
}

@test "sandbox: after kill -9 of its daemons, down leaves no process and no file" {
  export ZS_SANDBOX=$BATS_TEST_TMPDIR/other SLURM_CONF=$BATS_TEST_TMPDIR/other/slurm.conf
  "$ROOT/slurm/sandbox/up" --nodes 1
  job=$(sbatch --parsable --output=out --wrap 'trap "" TERM; echo here; while :; do sleep 1; done')
  await grep -qs here out
  kill -KILL $(grep -lzsxF "ZS_SANDBOX_DAEMON=$ZS_SANDBOX" /proc/[0-9]*/environ | cut -d/ -f3)
  "$ROOT/slurm/sandbox/down"
  [ ! -e "$ZS_SANDBOX" ]
  [ -z "$(leftovers "$ZS_SANDBOX")" ]
}

@test "sandbox: a job's exit code is the job's own" {
  ended "$(sbatch --parsable --output=out --wrap 'srun bash -c "exit 42"')"
  [ "$state $code" = "FAILED 42" ]
}

@test "sbatch: the ranks of a training wait for each other in every fence of PMIx" {
  fake_trainer
  sed -i 's/^{/{ echo "fence: ${SLURM_PMIX_FENCE-unset}"/' bin/zs-train
  echo 'model: {name: tiny}' >config.yaml
  ended "$(sbatch --parsable --output=out --nodes=2 "$ROOT/slurm/train.sbatch" config.yaml)"
  cat out
  grep -qx 'fence: ring' saved_models/*/run.log
  # What the sandbox's own Slurm does for a plain srun.
  scontrol show config | grep -qE '^PMIxCollFence *= ring'
}

@test "sbatch: a mistyped set fails the job with 2" {
  ended "$(sbatch --parsable --output=out "$ROOT/slurm/batch.sbatch" minimal_tset)"
  [ "$state $code" = "FAILED 2" ]
  grep -q "minimal_test" out
}

# submitted SCRIPT ARGUMENT...: submits an experiment, and waits for its report: sets `results`, `state` and `code`.
submitted() {
  rm -f out
  ended "$(sbatch --parsable --output=out --nodes=2 --ntasks=4 "$ROOT/slurm/$1" "${@:2}")"
  cat out
  [ "$state $code" = "COMPLETED 0" ]
  reported
}

# reported: waits for the report that `out` tells of.
reported() {
  results=$(told results)
  ended "$(told report)"
  cat "$results"/slurm-report-*
}

@test "sbatch: arrays of conditions and a report; what fails is named, and rerun submits only that, once" {
  fake_trainer
  # More arrays than one: so small is the largest.
  sed -i 's/^MaxArraySize=.*/MaxArraySize=4/' "$SLURM_CONF"
  scontrol reconfigure
  submitted batch.sbatch --max_parallel 3
  sed -i 's/^MaxArraySize=.*/MaxArraySize=10001/' "$SLURM_CONF"
  scontrol reconfigure
  [ "$state $code" = "FAILED 1" ]
  grep -qxE 'array: [0-9]+ [0-9]+ \(6 conditions\)' out
  [ "$(jq -c '[.conditions[].exit_code]' "$results/metadata.json")" = "[0,0,42,0,0,42]" ]
  [ "$(jq -r '.conditions.z1_baseline.launch' "$results/metadata.json")" = "srun --mpi=pmix --ntasks=4 --kill-on-bad-exit=1 --cpus-per-task=1" ]
  grep -q 'z3_baseline: FAILED with exit code 42' "$results"/slurm-report-*
  [ "$(column condition --status --filter state=FAILED)" = "z3_baseline z3_deepcompile" ]
  sed -i 's/--zero_stage 3/--never/' bin/zs-train
  run -1 --separate-stderr zs-runs rerun --failed
  [[ $stderr == *": changed since this was submitted: "*/bin/zs-train* ]]
  sha256sum bin/zs-train | sed "s|bin/|$PWD/bin/|" >"$results/frozen.sha256"
  zs-runs rerun --failed >out
  [[ $(grep '^array: ' out) == *" (2 conditions)" ]]
  run -0 zs-runs rerun --failed
  [ "$output" = "nothing to run again" ]
  reported
  [ "$state $code" = "COMPLETED 0" ]
  [ "$(column state --status | tr ' ' '\n' | sort -u)" = COMPLETE ]
  run -0 zs-runs rerun --failed
  [ "$output" = "nothing to run again" ]
}

@test "sbatch: an element that its user cancels after it began is CANCELLED in table, log and report; one that never began MISSING" {
  fake_trainer
  sed -i 's/^{/echo begun; if [[ "$*" == *"--zero_stage 2"* ]]; then sleep 60; fi; {/' bin/zs-train
  bash "$ROOT/slurm/batch.sbatch" --submit --max_parallel 1 zero_comparison >out
  results=$(told results) array=$(told array)
  await grep -qs begun "$results/z2_baseline.log"
  scancel "${array}_3"
  scancel "${array}_2"
  reported
  [ "$state $code" = "FAILED 1" ]
  grep -q '^z2_baseline: CANCELLED' "$results"/slurm-report-*
  grep -q '| z2_baseline | CANCELLED |' "$results/experiment_log.txt"
  grep -q '| z3_baseline | MISSING |' "$results/experiment_log.txt"
  [ "$(column state --status --filter condition=z2_baseline) $(column state --status --filter condition=z3_baseline)" = "CANCELLED MISSING" ]
  # In the table and in the sentence.
  [ "$(zs-aggregate --format tsv "$results/summary.h5" 2>/dev/null | cut -f1,4 | grep -v COMPLETE | paste -sd' ')" = $'condition\tstatus z2_baseline\tCANCELLED z3_baseline\tMISSING' ]
  grep -q '`z2_baseline` CANCELLED' "$results/report.md"
  grep -q '`z3_baseline` MISSING' "$results/report.md"
  [ "$(grep -cE 'UNKNOWN|TRUNCATED' "$results/report.md")" = 0 ]
}

@test "sbatch: on two nodes the conditions have the state digest of mpirun" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  small=(--num_layers 2 --seq_length 16 --max_steps 3 --log_interval 1)
  submitted batch.sbatch minimal_test -- "${small[@]}"
  [ "$state $code" = "COMPLETED 0" ]
  [ -s "$results/report.html" ]
  # The same training on 2 ranks of mpirun, which share the micro-batches of 4.
  mapfile -t arguments < <(jq -r '.conditions.z1_baseline.arguments[]' "$results/metadata.json")
  accumulation=$(sed -n 's/^run: gradient_accumulation_steps=//p' "$results/z1_baseline.log")
  env -u SLURM_CONF mpirun --oversubscribe --bind-to none -n 2 zs-train "${arguments[@]}" --gradient_accumulation_steps $((2 * accumulation)) --output_dir beside >beside.log
  digests=$(cat beside.log "$results"/*_{baseline,deepcompile}.log | grep -oE 'state_digest: [0-9a-f]{32}')
  [ "$(wc -l <<<"$digests") $(sort -u <<<"$digests" | wc -l)" = "3 1" ]
}

# a_training: a configuration that takes some seconds.
a_training() {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  echo '{model: {name: tiny, num_layers: 1, context_length: 16}, training: {max_steps: 400, save_steps: 50, keep_last: 1}}' >config.yaml
}

# submit_training SCRIPT-OPTION...: submits it on both nodes; sets `job` and `run`, its folder.
submit_training() {
  bash "$ROOT/slurm/train.sbatch" --sbatch --output=out --sbatch --nodes=2 "$@" config.yaml >said
  job=$(sed -n 's/^job: //p' said) run=$(sed -n 's/^run: //p' said)
}

@test "sbatch: a training that is warned of its time limit saves, is requeued, and goes on as one run" {
  a_training
  job=$(sbatch --parsable --output=out --nodes=2 --comment="for zs" "$ROOT/slurm/train.sbatch" config.yaml)
  planned() { compgen -G 'saved_models/2*/config.yaml' >/dev/null; }
  await_in "$job" planned
  run=$(realpath saved_models/2*)
  await_in "$job" trains "$run"
  scancel --batch --signal=USR1 "$job"
  waits() { [[ $(state_of "$job") == PENDING ]]; }
  await_in "$job" waits
  run -0 zs-runs --status --show state basis
  [[ ${lines[1]} == PENDING$'\t'"squeue: job $job PENDING"*", continues after "*"/400 steps in the metrics" ]]
  run -0 zs-runs rerun --failed
  [ "$output" = "nothing to run again" ]
  ended "$job"
  grep -v '^run: ' out
  [ "$state $code" = "COMPLETED 0" ]
  run -0 zs-runs --status --show state steps restarts slurm_job nodes
  [ "${lines[1]}" = $'COMPLETE\t400/400\t1\t'"$job"$'\tn[1-2]' ]
  grep -q 'stopped after step [0-9]*; requeued to continue' out
  scontrol show job "$job" | grep -qE "^ *Comment=for zs zs=$run *$"
}

@test "sbatch: a training that may not restart is PREEMPTED, and rerun goes on with it" {
  a_training
  submit_training --max_restarts 0
  await_in "$job" trains "$run"
  scancel --batch --signal=USR1 "$job"
  ended "$job"
  [ "$state $code" = "FAILED 75" ]
  [ "$(column state --status)" = PREEMPTED ]
  zs-runs rerun --failed >said
  run -0 zs-runs rerun --failed
  [ "$output" = "nothing to run again" ]
  ended "$(sed -n 's/^job: //p' said)"
  [ "$state $code" = "COMPLETED 0" ]
  [ "$(column state --status) $(column restarts)" = "COMPLETE 1" ]
}

@test "sbatch: a training that its user cancels is CANCELLED, also when Slurm is not there to ask, and rerun goes on with it" {
  a_training
  sed -i 's/max_steps: 400/max_steps: 4000/' config.yaml
  submit_training
  await_in "$job" reached "$run" 3
  scancel "$job"
  ended "$job"
  [ "$state" = CANCELLED ]
  [ "$(column state --status)" = CANCELLED ]
  # What is only found out is a column to show, sort by and filter by, without --status.
  [ "$(column slurm_job)" = "$job" ]
  [ "$(column state --filter "slurm_job=$job" --sort_by basis)" = CANCELLED ]
  await env -u SLURM_CONF PATH="$BUILD:/usr/bin:/bin" grep -qr cancelled "$run/record"
  [ "$(env SLURM_CONF=/nowhere zs-runs --status --show state | tail -n 1)" = CANCELLED ]
  [[ $(zs-runs rerun --failed --dry_run) == *"${run##*/}" ]]
}

@test "sbatch: a rank that hangs in a collective is named with its node, the job ends, no process stays" {
  a_training
  sed -i 's/max_steps: 400/max_steps: 1000000/' config.yaml
  # A minute, since ranks wait for each other at the start too, on a machine that does other things.
  bash "$ROOT/slurm/train.sbatch" --sbatch --output=out --sbatch --nodes=2 config.yaml -- --timeout 60 >said
  job=$(sed -n 's/^job: //p' said) run=$(sed -n 's/^run: //p' said)
  await_in "$job" reached "$run" 3
  victim=$(for pid in $(ranks_of "$job"); do grep -lzx 'SLURM_PROCID=1' "/proc/$pid/environ"; done | cut -d/ -f3)
  kill -STOP "$victim"
  ended "$job"
  grep -v '^run: ' out
  [ "$state" = FAILED ]
  grep -qE '^zs-train: rank 0 on n1: .*rank 1 on n2' out
  [ "$(column state --status)" = FAILED ]
  gone() { [ -z "$(ranks_of "$job")" ]; }
  await gone
}

@test "sbatch: a rank killed by kill -9 makes its run FAILED, not running for ever" {
  a_training
  sed -i 's/max_steps: 400/max_steps: 1000000/' config.yaml
  submit_training
  await_in "$job" reached "$run" 3
  kill -KILL "$(ranks_of "$job" | tail -n 1)"
  ended "$job"
  [ "$state" = FAILED ]
  grep -q '^srun: error: n[12]: task [01]: Killed' out
  [[ $(column state --status) == FAILED ]]
}

@test "sbatch: --gpus_per_node gives each rank another GPU" {
  fake_trainer
  sed -i 's/^{/echo "on $SLURMD_NODENAME: $CUDA_VISIBLE_DEVICES"; {/; s/^((.*//' bin/zs-train
  bash "$ROOT/slurm/batch.sbatch" --sbatch --nodes=2 --sbatch --ntasks=4 --gpus_per_node 2 minimal_test >out
  reported
  [ "$(grep -h '^on ' "$results/z1_baseline.log" | sort | paste -sd,)" = "on n1: 0,on n1: 1,on n2: 0,on n2: 1" ]
  run -2 --separate-stderr env -u SLURM_CONF bash "$ROOT/slurm/batch.sbatch" --gpus_per_node 2 minimal_test
  [[ $stderr == "batch.sbatch: --gpus_per_node is for jobs of Slurm"* ]]
}

@test "sbatch: the script says that srun has no pmix, and mpirun starts the ranks; it checks ZS_MPI" {
  fake_trainer
  printf '%s\n' '#!/bin/bash' '[[ $1 != --mpi=list ]] || { echo "MPI plugin types are... none pmi2" >&2; exit; }' "exec $(command -v srun)"' "$@"' >bin/srun
  chmod +x bin/srun
  echo a: 1 >config.yaml
  PATH=$PWD/bin:$PATH
  ended "$(sbatch --parsable --output=out "$ROOT/slurm/train.sbatch" config.yaml)"
  cat out
  [ "$state $code" = "COMPLETED 0" ]
  grep -qx 'train.sbatch: this Slurm has no pmix (srun --mpi=list offers MPI plugin types are... none pmi2)' out
  grep -qx 'train.sbatch: starting ranks with mpirun' out
  rm out
  ended "$(ZS_MPI=pmix sbatch --parsable --output=out "$ROOT/slurm/train.sbatch" config.yaml)"
  [ "$state $code" = "FAILED 2" ]
  grep -q "^train.sbatch: ZS_MPI: this Slurm has no 'pmix'; srun --mpi=list offers " out
}

@test "sbatch: a partition that does not exist is refused, and nothing stays planned" {
  fake_trainer
  run -2 --separate-stderr bash "$ROOT/slurm/batch.sbatch" --sbatch --partition=nowhere minimal_test
  [[ $stderr == *"invalid partition"*"batch.sbatch: sbatch refused the array (see above)" ]]
  [ -z "$(ls results)" ]
  [ -z "$(column run_id)" ]
}

@test "sbatch: the job names files that vanished or changed since submission, before the first step" {
  fake_trainer
  bash "$ROOT/slurm/batch.sbatch" --sbatch --begin=now+5 minimal_test >out
  results=$(told results)
  gone=$(jq -r .conditions.z1_baseline.run "$results/metadata.json")/config.yaml
  rm "$gone"
  reported
  grep -q "changed since this was submitted: $gone" "$results"/slurm-*_1.out
  # Conditions failed: the answer is no, and the report says which.
  [ "$state $code" = "FAILED 1" ]
  grep -qx 'z1_baseline: MISSING: job [0-9_]* FAILED' "$results"/slurm-report-*
  [ ! -e "$results/z1_baseline.log" ]
  [ "$(column state --status --filter condition=z1_baseline) $(column state --status --filter condition=z3_deepcompile)" = "MISSING FAILED" ]
}

@test "sbatch: zs-train refuses to start if srun started two tasks and MPI sees one" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  run -2 srun --mpi=none --ntasks=2 --kill-on-bad-exit=0 --quiet zs-train --model_name tiny --max_steps 1
  [[ $output == *"zs-train: srun started 2 tasks, but MPI sees one: each would be rank 0 of 1; "* ]]
  [ ! -e saved_models ]
}

@test "sbatch: two revisions are compared in one job, and their worktrees are gone when it is cancelled too" {
  export TMPDIR=$BATS_TEST_TMPDIR/tmp GIT_CONFIG_GLOBAL=/dev/null
  mkdir "$TMPDIR"
  git init -q repo
  printf '%s\n' '#!/bin/bash' '((SLURM_PROCID == 0)) || exit 0' 'echo "run: expected_steps=3"' 'for step in 1 2 3; do' \
    '  echo "Epoch 1, Step $step, Loss: 2.$step sync: True time: 0.1 alloc_mem: 1000000 peak_mem: 2000000"' 'done' \
    'echo "state_digest: 0123456789abcdef0123456789abcdef"' >repo/train
  chmod +x repo/train
  git -C repo add .
  git -C repo -c user.name=a -c user.email=a@b commit -qm one
  compare=("$ROOT/slurm/compare-revisions.sbatch" --repo repo --revision1 HEAD --revision2 HEAD --warmup 0)
  ended "$(sbatch --parsable --output=out --ntasks=2 "${compare[@]}" --run '$ZS_LAUNCH ./train' --runs_per_revision 2 --output_dir one)"
  cat out
  [ "$state $code" = "COMPLETED 0" ]
  grep -q '^Same or better: HEAD.2 against HEAD.1: identical bits' out
  [[ $(jq -r '[.conditions[] | .launch, .host] | unique | join(" ")' one/metadata.json) == *n[12]*"srun --mpi=pmix"* ]]
  job=$(sbatch --parsable --output=out2 --ntasks=2 "${compare[@]}" --run '$ZS_LAUNCH bash -c "echo begun; sleep 60"' --output_dir two)
  await grep -qs begun two/logs_HEAD.1_run1/run.log
  [ -n "$(ls -A "$TMPDIR")" ]
  scancel "$job"
  ended "$job"
  cat out2
  await rmdir "$TMPDIR"  # it is empty
  mkdir "$TMPDIR"
  [ "$(git -C repo worktree list | wc -l)" = 1 ]
}
