# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2317
# Sourced by the *.sbatch files beside it, after launch.bash: an experiment is a list of conditions in a results folder,
# each a training; when they have run, their logs become a summary, pictures and a report.
# (shellcheck does not see that launch.bash sets ranks, launch and folder, nor what `step` and traps call.)

# begin_experiment TITLE: makes the results folder and sets `results`; `add_condition` and `plan_made` follow.
begin_experiment() {
  local tool
  for tool in zs-train zs-parse zs-aggregate zs-plot zs-report; do
    command -v $tool >/dev/null || die "$tool is neither beside zs-sweep nor on PATH: run make first"
  done
  command -v jq >/dev/null || die "jq is missing: make deps installs it"
  plan_launch
  new_folder "$PWD/results" results
  results=$folder title=$1 names=() todo=() plan=()
  mkdir "$results/.cells" || die "cannot write $results"
}

# add_condition NAME WORD...: a condition that trains with `zs-train WORD...`.
add_condition() {
  [[ $1 =~ ^[A-Za-z0-9_+-][A-Za-z0-9_.+-]*$ ]] || die "condition '$1': a name is made of letters, digits and _.+-"
  names+=("$1") todo+=("$1")
  plan+=("$(jq -nc --arg command "$(as_words zs-train "${@:2}")" \
    '{key: $ARGS.positional[0], value: {command: $command, arguments: $ARGS.positional[1:], exit_code: null}}' --args -- "$@")")
}

# plan_made: writes metadata.json, and freezes the binary, the configurations and the state of the sources.
plan_made() {
  local source=$share/..
  whole "$results/metadata.json" jq -s --arg date "$(date -Is)" --arg title "$title" --argjson ranks "$ranks" \
    --arg host "$(hostname)" --arg version "$(zs-train --version)" --arg job "${SLURM_JOB_ID-}" \
    '{experiment_date: $date, experiment: $title, ranks: $ranks, host: $host, version: $version, slurm_job_id: $job,
      condition_order: [.[].key], conditions: from_entries}' <<<"$(printf '%s\n' "${plan[@]}")"
  if [[ -e $source/.git ]]; then git -C "$source" diff HEAD >"$results/revision.diff" 2>/dev/null || true; fi
  local frozen=("$(realpath "$(command -v zs-train)")") file
  for file in "$results"/configs/* "$results/revision.diff"; do [[ ! -e $file ]] || frozen+=("$file"); done
  whole "$results/frozen.sha256" sha256sum "${frozen[@]}"
  cat >"$results/experiment_log.txt" <<END
=== Starting batch experiments ===
Start time: $(date)
Experiment: $title
Ranks: $ranks

END
}

# reopen_experiment FOLDER: sets `results`, all conditions as `names`, and as `todo` those that failed or are missing,
# which are then as if they had never run.
reopen_experiment() {
  local name
  results=$(realpath "$1")
  [[ -s $results/metadata.json && -d $results/.cells ]] || die "$1 is not the results folder of an experiment"
  if [[ -s $results/.cells/jobs && -n $(squeue -h -j "$(paste -sd, "$results/.cells/jobs")" 2>/dev/null) ]]; then
    die "$1 is still running: see squeue"
  fi
  gather
  mapfile -t names < <(jq -r '.condition_order[]' "$results/metadata.json")
  mapfile -t todo < <(jq -r '.condition_order[] as $name | select(.conditions[$name].exit_code != 0) | $name' "$results/metadata.json")
  if ((${#todo[@]} == 0)); then
    say "nothing in $results has failed or is missing"
    exit 0
  fi
  for name in "${todo[@]}"; do rm -f "$results/.cells/$name.json"; done
  whole "$results/metadata.json" jq '(.conditions[] | select(.exit_code != 0)) |= {command, arguments, exit_code: null}' "$results/metadata.json"
  still_frozen
  plan_launch
}

# still_frozen: stops if the binary or a configuration is not what it was when the experiment was planned.
still_frozen() {
  local changed
  changed=$(LC_ALL=C sha256sum --check --quiet "$results/frozen.sha256" 2>/dev/null) && return
  die "changed since this experiment was submitted: ${changed//: FAILED*/}; submit again"
}

# stop SIGNAL STATUS: takes the running condition with us; what was done so far is in the files.
stop() {
  trap - INT TERM
  if [[ -n ${child-} ]]; then
    kill -TERM "$child" 2>/dev/null || true
    wait "$child" || true
  fi
  say "stopped by SIG$1; finished conditions are in $results"
  exit "$2"
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

# run_condition NAME: trains it on all ranks. What came of it is in .cells/NAME.json; a failure does not stop us.
run_condition() {
  local name=$1 command begin seconds code digest run_id
  local output=$results/$name.log detailed=$results/${name}_detailed.log label="[$((number += 1))/${#todo[@]}] $name"
  eval "command=(zs-train $(jq -r --arg name "$name" '.conditions[$name].arguments | @sh' "$results/metadata.json"))"
  trap 'stop INT 130' INT
  trap 'stop TERM 143' TERM
  header "${launch[@]}" "${command[@]}" >"$detailed" || die "cannot write $detailed"
  say "$label"
  begin=${EPOCHREALTIME/./}
  attended "$output" "$label" "${launch[@]}" "${command[@]}"
  seconds=$(((${EPOCHREALTIME/./} - begin) / 1000000))
  { cat "$output"; echo; echo "exit code: $code"; echo "seconds: $seconds"; } >>"$detailed" || die "cannot write $detailed"
  digest=$(sed -n 's/.*state_digest: \([0-9a-f]\{32\}\).*/\1/p' "$output" | tail -n 1)
  run_id=$(sed -n 's/^run: run_id=//p' "$output" | tail -n 1)
  whole "$results/.cells/$name.json" jq -n --arg name "$name" --arg launch "$(as_words "${launch[@]}")" --arg run_id "$run_id" \
    --arg digest "$digest" --argjson code "$code" --argjson seconds "$seconds" --arg job "${SLURM_JOB_ID-}" \
    --arg nodes "${SLURM_JOB_NODELIST-}" '{$name, exit_code: $code, $launch, $run_id, $digest, $seconds, slurm_job_id: $job,
      slurm_nodes: $nodes} | del(.[] | select(. == ""))'
  if ((code)); then
    say "$label: FAILED with exit code $code after $seconds s (see $output):"
    { grep -a '^zs-train: ' "$output" || tail -n 5 "$output"; } | tail -n 5 | sed 's/^/    /' >&2
  else
    say "$label: done in $seconds s, state digest ${digest:-unknown}"
  fi
}

# gather: brings what has come of the conditions so far into metadata.json.
gather() {
  local cells=("$results"/.cells/*.json)
  [[ -e ${cells[0]} ]] || return 0
  whole "$results/metadata.json" jq -s \
    '.[0] as $all | reduce .[1:][] as $cell ($all; .conditions[$cell.name] += ($cell | del(.name)))' \
    "$results/metadata.json" "${cells[@]}"
}

# end_experiment: the log, the summary, the pictures and the report. Exits: 1 if a condition failed or is missing or a
# log has faults, 2 if a part could not be made.
end_experiment() {
  local faults=0 bad
  gather
  {
    # The defaults stand for a condition that has no record: its job was killed, or never began.
    jq -r '.condition_order[] as $name | .conditions[$name] | "Running condition: \($name)
Command: \(.launch // "") \(.command)
Condition \($name) " + (if .exit_code == null then "has no exit code: it was killed or never began" else
    "completed with exit code \(.exit_code)" end) + "
Detailed log saved: \($name)_detailed.log
"' "$results/metadata.json"
    echo "=== Experiment Summary ==="
    echo "End time: $(date)"
    echo
    echo "| Condition | Status | Exit code | Seconds | State digest |"
    echo "|-----------|--------|-----------|---------|--------------|"
    jq -r '.condition_order[] as $name | .conditions[$name] | "| \($name) | \(if .exit_code == 0 then "SUCCESS" elif .exit_code == null
      then "MISSING" else "FAILED" end) | \(.exit_code // "none") | \(.seconds // "none") | \(.digest // "none") |"' "$results/metadata.json"
    echo
    echo "Results saved to: $results"
  } >>"$results/experiment_log.txt" || die "cannot write $results/experiment_log.txt"
  bad=$(jq -r '.condition_order[] as $name | .conditions[$name] | select(.exit_code != 0) |
    "\($name): \(if .exit_code == null then "MISSING" else "FAILED with exit code \(.exit_code)" end)"' "$results/metadata.json")

  summarize() { zs-parse "$results" | zs-aggregate -o "$results/summary.h5"; }
  # A fault in the data (status 1) does not stop the evidence.
  step() {
    "$@" || { (($? == 1)) && faults=1; } || die "$(as_words "$@") failed; the logs are in $results"
  }
  step summarize
  step zs-report "$results/summary.h5" -o "$results/report.md"
  step zs-report "$results/summary.h5" -o "$results/report.html"
  step zs-plot loss "$results/summary.h5" -o "$results/loss_comparison.png"
  step zs-plot time "$results/summary.h5" -o "$results/iteration_time_comparison.png"
  step zs-plot memory "$results/summary.h5" -o "$results/memory_usage_comparison.png"
  [[ -z $bad ]] || say "$bad"
  echo "report: $results/report.html"
  [[ -z $bad && $faults == 0 ]] || exit 1
  exit 0
}

# run_experiment: every condition, one after another, here; then the evidence.
run_experiment() {
  local name
  number=0
  still_frozen
  for name in "${todo[@]}"; do
    run_condition "$name"
    gather
  done
  end_experiment
}
