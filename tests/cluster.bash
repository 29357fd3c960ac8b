# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# For tests on the sandbox, loaded after helper: its life, and waiting for jobs.

# cluster_up ARGUMENT...: starts a sandbox of the test file's own; skips where Slurm is not installed.
cluster_up() {
  export ZS_SANDBOX=$BATS_FILE_TMPDIR/sandbox SLURM_CONF=$BATS_FILE_TMPDIR/sandbox/slurm.conf
  PATH=$PATH:/usr/sbin
  if ! command -v slurmctld slurmd >/dev/null; then no_package slurm-wlm; fi
  "$ROOT/slurm/sandbox/up" "$@"
}

# state_of JOB: prints a job's state.
state_of() { scontrol -o show job "$1" | grep -oE 'JobState=[A-Z_]+' | cut -d= -f2; }

# ended JOB: waits for a job's end and sets `state` and `code`, its exit code.
ended() { state='' && await has_ended "$1"; }
has_ended() {
  local job
  job=$(scontrol -o show job "$1")
  [[ $job =~ JobState=([A-Z_]+) ]] && state=${BASH_REMATCH[1]}
  [[ $job =~ ExitCode=([0-9]+) ]] && code=${BASH_REMATCH[1]}
  [[ $state =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY)$ ]]
}

# await_in JOB COMMAND...: waits until the command succeeds, as `await` does; fails at once, with what the job said, where the
# job has ended before.
await_in() {
  over=''
  await over_or "$@"
  [[ -z $over ]] || { echo "job $1 ended before: ${*:2}"; circumstances; return 1; }
}
over_or() { "${@:2}" || { has_ended "$1" && over=1; }; }

# What the cluster and the job do, where `await` waits in vain.
circumstances() {
  squeue
  grep -v "^run: " out 2>/dev/null | tail -n 30
}

# steps_of FOLDER: the steps that a run's metrics hold.
steps_of() { zs-runs --registry "${1%/*}" --status --filter "run_id=${1##*/}" --show steps | tail -n 1 | cut -d/ -f1 | grep . || echo 0; }
trains() { [ "$(column status --registry "${1%/*}" --filter "run_id=${1##*/}")" = running ]; }
reached() { (($(steps_of "$1") >= $2)); }

# Processes that the sandbox in $1 has left: its daemons and jobs carry its path in their environment.
leftovers() { grep -lzsE "^(ZS_SANDBOX_DAEMON=$1$|SLURMD_NODENAME=)" /proc/[0-9]*/environ | xargs -r grep -lzsF "$1" || true; }

# ranks_of JOB: the processes of zs-train in a job.
ranks_of() {
  local file
  grep -lzsx "SLURM_JOB_ID=$1" /proc/[0-9]*/environ | while read -r file; do
    [[ $(cat "${file%environ}comm" 2>/dev/null) != zs-train ]] || echo "${file//[!0-9]/}"
  done
}

# column NAME ARGUMENT...: a column that zs-runs lists, on one line.
column() { zs-runs "${@:2}" --show "$1" | tail -n +2 | xargs; }

# told NAME: what the output of a script, in `out`, says: "results", "array", "report", "run", "job". Of jobs the number.
told() { sed -n "s/^$1: //p" out | tail -n 1 | sed -E 's/^(job )?([0-9]+)[ ,].*/\2/'; }
