# SPDX-License-Identifier: Apache-2.0
# The throwaway cluster, with real daemons, and the workflows on it.
setup_file() {
  load helper
  export ZS_SANDBOX=$BATS_FILE_TMPDIR/sandbox SLURM_CONF=$BATS_FILE_TMPDIR/sandbox/slurm.conf
  PATH=$PATH:/usr/sbin
  command -v slurmctld >/dev/null && command -v slurmd >/dev/null || skip "slurm-wlm is not installed"
  "$ROOT/slurm/sandbox/up" --nodes 2
}

teardown_file() {
  load helper
  "$ROOT/slurm/sandbox/down"
}

setup() {
  load helper
  mkdir "$BATS_TEST_TMPDIR/a folder" && cd "$BATS_TEST_TMPDIR/a folder"
}

# ended JOB: waits for a job's end and sets `state` and `code`, its exit code.
ended() {
  local job end=$((SECONDS + 300))
  state=
  until [[ $state =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY)$ ]]; do
    ((SECONDS < end)) || { squeue; return 1; }
    sleep 0.2
    job=$(scontrol -o show job "$1")
    [[ $job =~ JobState=([A-Z_]+) ]] && state=${BASH_REMATCH[1]}
    [[ $job =~ ExitCode=([0-9]+) ]] && code=${BASH_REMATCH[1]}
  done
}

# Processes that the sandbox in $1 has left: its daemons and jobs carry its path in their environment.
leftovers() { grep -lzsE "^(ZS_SANDBOX_DAEMON=$1$|SLURMD_NODENAME=)" /proc/[0-9]*/environ | xargs -r grep -lzsF "$1" || true; }

@test "sandbox: env points Slurm's commands at it, and status shows its nodes" {
  unset SLURM_CONF
  eval "$("$ROOT/slurm/sandbox/env")"
  [ "$(sinfo -h -N -o %N | xargs)" = "n1 n2" ]
  run -0 "$ROOT/slurm/sandbox/status"
  [[ $output == *"4 daemons"* || $output == *"3 daemons"* ]]
  [[ $output == *n1*idle*n2*idle* ]]
}

@test "sandbox: it listens on the loopback device only" {
  command -v ss >/dev/null || skip "ss is not installed"
  run ss -ltnp
  [[ $output == *slurmctld* ]]
  ! grep -E 'slurm' <<<"$output" | grep -vF '127.0.0.1:'
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

@test "sandbox: after kill -9 of its daemons, down leaves no process and no file" {
  export ZS_SANDBOX=$BATS_TEST_TMPDIR/other SLURM_CONF=$BATS_TEST_TMPDIR/other/slurm.conf
  "$ROOT/slurm/sandbox/up" --nodes 1
  job=$(sbatch --parsable --output=out --wrap 'trap "" TERM; echo here; while :; do sleep 1; done')
  for _ in {1..100}; do grep -qs here out && break || sleep 0.1; done
  kill -KILL $(grep -lzsxF "ZS_SANDBOX_DAEMON=$ZS_SANDBOX" /proc/[0-9]*/environ | cut -d/ -f3)
  "$ROOT/slurm/sandbox/down"
  [ ! -e "$ZS_SANDBOX" ]
  [ -z "$(leftovers "$ZS_SANDBOX")" ]
}

@test "sandbox: a job's exit code is the job's own" {
  ended "$(sbatch --parsable --output=out --wrap 'srun bash -c "exit 42"')"
  [ "$state $code" = "FAILED 42" ]
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
  results=$(sed -n 's/^results: //p' out)
  ended "$(sed -n 's/^report: job \([0-9]*\),.*/\1/p' out)"
  cat "$results"/slurm-*
}

@test "sbatch: an array of conditions and a report; what fails is named, and --rerun submits only that" {
  fake_trainer
  submitted batch.sbatch --max_parallel 3
  [ "$state $code" = "FAILED 1" ]
  grep -qx 'array: [0-9]* (6 conditions)' out
  [ "$(jq -c '[.conditions[].exit_code]' "$results/metadata.json")" = "[0,0,42,0,0,42]" ]
  [ "$(jq -r '.conditions.z1_baseline.launch' "$results/metadata.json")" = "srun --mpi=pmix --ntasks=4 --kill-on-bad-exit=1 --cpus-per-task=1" ]
  grep -q 'z3_baseline: FAILED with exit code 42' "$results"/slurm-report-*
  sed -i 's/--zero_stage 3/--never/' bin/zs-train
  sha256sum bin/zs-train | sed "s|bin/|$PWD/bin/|" >"$results/frozen.sha256"
  submitted batch.sbatch --rerun "$results"
  [ "$state $code" = "COMPLETED 0" ]
  grep -qx 'array: [0-9]* (2 conditions)' out
  rm -f out
  ended "$(sbatch --parsable --output=out "$ROOT/slurm/batch.sbatch" --rerun "$results")"
  [ "$state $code" = "COMPLETED 0" ]
  [[ $(cat out) == "nothing in "*" has failed or is missing" ]]
}

@test "sbatch: an element that is cancelled is MISSING in the report" {
  fake_trainer
  sed -i 's/^{/if [[ "$*" == *"--zero_stage 2"* ]]; then sleep 60; fi; {/' bin/zs-train
  ended "$(sbatch --parsable --output=out "$ROOT/slurm/batch.sbatch" zero_comparison)"
  results=$(sed -n 's/^results: //p' out)
  array=$(sed -n 's/^array: \([0-9]*\) .*/\1/p' out)
  for _ in {1..100}; do [ -e "$results/z2_baseline.log" ] && break || sleep 0.1; done
  scancel "${array}_2"
  ended "$(sed -n 's/^report: job \([0-9]*\),.*/\1/p' out)"
  cat "$results"/slurm-report-*
  [ "$state $code" = "FAILED 1" ]
  grep -qx 'z2_baseline: MISSING: job [0-9_]* CANCELLED' "$results"/slurm-report-*
  grep -q '| z2_baseline | MISSING |' "$results/experiment_log.txt"
}

@test "sbatch: on two nodes the conditions have the state digest of mpirun" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built"
  small=(--num_layers 2 --seq_length 32 --max_steps 8 --log_interval 2)
  submitted batch.sbatch minimal_test -- "${small[@]}"
  [ "$state $code" = "COMPLETED 0" ]
  [ -s "$results/report.html" ]
  ZS_RANKS=4 env -u SLURM_CONF bash "$ROOT/slurm/batch.sbatch" minimal_test -- "${small[@]}"
  [ "$(cat results/*/*.log | grep -oE 'state_digest: [0-9a-f]{32}' | sort -u | wc -l)" = 1 ]
}
