# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2317
# Sourced by the *.sbatch files beside it, after launch.bash: an experiment is a list of conditions in a results folder,
# each a training; when they have run, their logs become a summary, pictures and a report.
# (shellcheck does not see that launch.bash sets ranks, launch and folder, nor what `step` calls.)

# Lines for the person at the terminal, and lines of the experiment's log.
say() { printf '%s\n' "$*" >&2; }
note() { printf '%s\n' "$*" >>"$results/experiment_log.txt"; }

# record JQ-ARGUMENT...: changes metadata.json, whole or not at all.
record() {
  if ! { jq "$@" "$results/metadata.json" >"$results/.metadata.json" && mv "$results/.metadata.json" "$results/metadata.json"; }; then
    die "cannot write $results/metadata.json"
  fi
}

# begin_experiment TITLE NAME...: makes the results folder of the conditions NAME... and sets `results`.
begin_experiment() {
  local tool title=$1
  shift
  for tool in zs-train zs-parse zs-aggregate zs-plot zs-report; do
    command -v $tool >/dev/null || die "$tool is neither beside zs-sweep nor on PATH: run make first"
  done
  command -v jq >/dev/null || die "jq is missing: make deps installs it"
  for name; do
    [[ $name =~ ^[A-Za-z0-9_.+-]+$ ]] || die "condition '$name': a name is made of letters, digits and _.+-"
  done
  plan_launch
  new_folder results results
  results=$folder
  note "=== Starting batch experiments ===
Start time: $(date)
Experiment: $title
Ranks: $ranks
"
  jq -n --arg date "$(date -Is)" --arg title "$title" --argjson ranks "$ranks" --arg host "$(hostname)" \
    --arg version "$(zs-train --version)" --arg job "${SLURM_JOB_ID-}" \
    '{experiment_date: $date, experiment: $title, ranks: $ranks, host: $host, version: $version, slurm_job_id: $job,
      condition_order: $ARGS.positional, conditions: {}}' \
    --args "$@" >"$results/metadata.json" || die "cannot write $results/metadata.json"
  failed=0 number=0 count=$# rows=()
  trap 'stop INT 130' INT
  trap 'stop TERM 143' TERM
}

# stop SIGNAL STATUS: takes the running condition with us; what was done so far is in the files.
stop() {
  trap - INT TERM
  if [[ -n ${child-} ]]; then
    kill -TERM "$child" 2>/dev/null || true
    wait "$child" || true
  fi
  note "Stopped by SIG$1"
  say "stopped by SIG$1; finished conditions are in $results"
  exit "$2"
}

# The last logged step of a training on the terminal's last line, until process $1 ends.
follow() {
  tail -n +1 -s 0.2 -f --pid="$1" "$2" | grep --line-buffered -oE 'Step [0-9]+, Loss: [^ ]+' |
    while read -r step; do printf '\r%s: %s\033[K' "$3" "$step" >&2; done || true
  printf '\r\033[K' >&2
}

# What a reader needs to repeat a condition: the first lines of its _detailed.log.
header() {
  echo "date: $(date -Is)"
  echo "host: $(hostname)"
  echo "folder: $PWD"
  echo "launch: $(as_words "$@")"
  echo "ranks: $ranks"
  zs-train --version
  env | sort | grep -E '^(SLURM_|OMP_|OMPI_|NCCL_|CUDA_|ZS_)' || true
  echo
}

# run_condition NAME WORD...: trains with `zs-train WORD...` on all ranks. A failure is recorded and does not stop us.
run_condition() {
  local name=$1 command=(zs-train "${@:2}") begin seconds code own_code digest run_id status=SUCCESS
  local output=$results/$name.log detailed=$results/${name}_detailed.log
  number=$((number + 1))
  local title="[$number/$count] $name"

  note "Running condition: $name"
  note "Command: $(as_words "${launch[@]}" "${command[@]}")"
  record --arg name "$name" --arg command "$(as_words "${command[@]}")" --arg date "$(date -Is)" \
    '.conditions[$name] = {command: $command, start: $date, exit_code: null}'
  header "${launch[@]}" "${command[@]}" >"$detailed"

  say "$title"
  begin=${EPOCHREALTIME/./}
  "${launch[@]}" "${command[@]}" </dev/null >"$output" 2>&1 &
  child=$!
  [[ ! -t 2 ]] || follow "$child" "$output" "$title" &
  wait "$child" && code=0 || code=$?
  child=
  wait
  seconds=$(((${EPOCHREALTIME/./} - begin) / 1000000))
  # When srun kills the other ranks it ends with 143; its message has the code of the one that failed.
  own_code=$(sed -n 's/^srun: error: .* Exited with exit code \([0-9]*\)$/\1/p' "$output" | head -n 1)
  if ((code > 128 && ${own_code:-0} > 0)); then code=$own_code; fi

  { cat "$output"; echo; echo "exit code: $code"; echo "seconds: $seconds"; } >>"$detailed"
  digest=$(sed -n 's/.*state_digest: \([0-9a-f]\{32\}\).*/\1/p' "$output" | tail -n 1)
  run_id=$(sed -n 's/^run: run_id=//p' "$output" | tail -n 1)
  record --arg name "$name" --arg run_id "$run_id" --argjson code "$code" --argjson seconds "$seconds" \
    '.conditions[$name] += {exit_code: $code, run_id: $run_id, seconds: $seconds}'
  if ((code)); then
    status=FAILED failed=$((failed + 1))
    say "$title: FAILED with exit code $code after $seconds s (see $output):"
    { grep -a '^zs-train: ' "$output" || tail -n 5 "$output"; } | tail -n 5 | sed 's/^/    /' >&2
  else
    say "$title: done in $seconds s, state digest ${digest:-unknown}"
  fi
  note "Condition $name completed with exit code $code"
  note "Detailed log saved: ${name}_detailed.log
"
  rows+=("| $name | $status | $code | $seconds | ${digest:-none} |")
}

# end_experiment: the table, the summary, the pictures and the report. Exits: 1 if a condition failed or a log has
# faults, 2 if a part could not be made.
end_experiment() {
  local faults=0
  note "=== Experiment Summary ===
End time: $(date)

| Condition | Status | Exit code | Seconds | State digest |
|-----------|--------|-----------|---------|--------------|
$(printf '%s\n' "${rows[@]}")"
  summarize() { zs-parse "$results" | zs-aggregate -o "$results/summary.h5"; }
  # A fault in the data (status 1) does not stop the evidence.
  step() {
    "$@" || { (($? == 1)) && faults=1; } || die "$(as_words "$@") failed; the logs are in $results"
  }
  step summarize
  step zs-plot loss "$results/summary.h5" -o "$results/loss_comparison.png"
  step zs-plot time "$results/summary.h5" -o "$results/iteration_time_comparison.png"
  step zs-plot memory "$results/summary.h5" -o "$results/memory_usage_comparison.png"
  step zs-report "$results/summary.h5" -o "$results/report.md"
  step zs-report "$results/summary.h5" -o "$results/report.html"
  note "
Results saved to: $results"
  ((failed == 0)) || say "$failed of $count conditions FAILED"
  echo "report: $results/report.html"
  ((failed == 0 && faults == 0)) || exit 1
  exit 0
}
