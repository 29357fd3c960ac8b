# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2317
# Sourced by the *.sbatch files beside it, after job.bash: an experiment is a list of conditions in a results folder,
# each a training; when they have run, their logs become a summary, pictures and a report.
# (shellcheck does not see that launch.bash and job.bash set ranks, launch and folder, nor what `step` and traps call.)

# begin_experiment TITLE REPORT: makes the results folder and sets `results`; `add_condition` and `plan_made` follow. Its
# report is of the kind REPORT (zs-report --kind).
begin_experiment() {
  local tool
  for tool in zs-train zs-parse zs-aggregate zs-plot zs-report zs-runs; do
    command -v $tool >/dev/null || die "$tool is neither beside zs-sweep nor on PATH: run make first"
  done
  command -v jq >/dev/null || die "jq is missing: make deps installs it"
  if [[ -n $submit ]]; then needs_sbatch; fi
  plan_launch
  new_folder "$PWD/results" results
  results=$folder title=$1 report=$2 names=() todo=() plan=() folders=()
  # What cannot be planned whole leaves nothing behind.
  trap withdraw EXIT
  mkdir "$results/.cells" || die "cannot write $results"
}

# add_condition NAME WORD...: a condition that trains with `zs-train WORD...`.
add_condition() {
  [[ $1 =~ ^[A-Za-z0-9_+-][A-Za-z0-9_.+-]*$ ]] || die "condition '$1': a name is made of letters, digits and _.+-"
  [[ $1 != *_detailed ]] || die "condition '$1': NAME_detailed.log is the log of condition NAME: call it something else"
  names+=("$1") todo+=("$1")
  plan+=("$(jq -nc '$ARGS.positional' --args -- "$@")")
}

# plan_made: writes metadata.json, registers a run for each condition, and freezes the binary, the configurations and
# the state of the sources.
plan_made() {
  local source=$share/.. planned
  planned=$(printf '%s\n' "${plan[@]}" | zs-runs plan "experiment=$results" "script=$script" "directory=$PWD") || exit 2
  mapfile -t folders < <(cut -f2 <<<"$planned")
  # What the plan says, not what was typed: secrets are withheld there.
  whole "$results/metadata.json" jq -Rn --arg date "$(date -Is)" --arg title "$title" --argjson ranks "$ranks" \
    --arg host "$(hostname)" --arg version "$(zs-train --version)" --arg job "${SLURM_JOB_ID-}" \
    --argjson restarts "$max_restarts" --arg gpus "$gpus_per_node" --arg report "$report" \
    '[inputs | split("\t") | {key: .[0], value: ((.[2] | fromjson) + {run: .[1], exit_code: null})}] as $plan |
    {experiment_date: $date, experiment: $title, $report, ranks: $ranks, host: $host, version: $version, slurm_job_id: $job,
      max_restarts: $restarts, gpus_per_node: $gpus, condition_order: [$plan[].key],
      conditions: ($plan | from_entries)}' <<<"$planned"
  read_plan
  if [[ -e $source/.git ]]; then git -C "$source" diff HEAD >"$results/revision.diff" 2>/dev/null || true; fi
  local frozen=("$(realpath "$(command -v zs-train)")") file
  for file in "${folders[@]/%//config.yaml}" "$results"/configs/* "$results/revision.diff"; do [[ ! -e $file ]] || frozen+=("$file"); done
  whole "$results/frozen.sha256" sha256sum "${frozen[@]}"
  cat >"$results/experiment_log.txt" <<END || die "cannot write $results"
=== Starting batch experiments ===
Start time: $(date)
Experiment: $title
Ranks: $ranks

END
  trap - EXIT
}

# read_plan: sets what metadata.json says: `names`, `folders` of their runs, `folder_of` a name, and options.
read_plan() {
  local file=$results/metadata.json i
  [[ -s $file && -d $results/.cells ]] || die "$results is not the results folder of an experiment"
  must_own "$results" "$file" "$results/frozen.sha256" "$results/.cells"
  mapfile -t names < <(jq -r '.condition_order[]' "$file")
  mapfile -t folders < <(jq -r '.condition_order[] as $name | .conditions[$name].run' "$file")
  declare -gA folder_of=()
  for i in "${!names[@]}"; do folder_of[${names[i]}]=${folders[i]}; done
  max_restarts=$(jq .max_restarts "$file") gpus_per_node=$(jq -r .gpus_per_node "$file")
}

# withdraw: as if nothing had been planned.
withdraw() {
  local run
  for run in "${folders[@]}"; do zs-runs --registry "${run%/*}" rm --yes "${run##*/}" || true; done
  rm -rf "$results"
}

# reopen_experiment FOLDER [all]: sets `results` and `todo`: the conditions that failed or are missing, or with --cells
# those of them that stdin names; with `all` everything that is not complete, for a job that goes on with them.
reopen_experiment() {
  local chosen known
  results=$(realpath "$1") || die "there is no $1"
  read_plan
  ZS_RANKS=${ZS_RANKS:-$(jq .ranks "$results/metadata.json")}
  # Another call may just be at it.
  exec 9>"$results/.cells/lock" || die "cannot write $results"
  flock 9 || die "cannot lock $results"
  gather
  states
  chosen='.found.state | IN("FAILED", "MISSING", "PREEMPTED")'
  [[ ${2-} != all ]] || chosen='.found.state | IN("COMPLETE", "DIVERGED") | not'
  mapfile -t todo < <(jq -r ".condition_order[] as \$name | select(.conditions[\$name] | $chosen) | \$name" "$results/metadata.json")
  if [[ -n $cells ]]; then
    known=$(cat)
    mapfile -t todo < <(printf '%s\n' "${todo[@]}" | grep -xF -- "$known")
  fi
  if ((${#todo[@]} == 0)) && [[ ${2-} != all ]]; then
    say "nothing in $results has failed or is missing"
    exit 0
  fi
  still_frozen "$results/frozen.sha256"
  plan_launch
  forget
}

# forget: the conditions of `todo` are planned again: what came of them is taken back.
forget() {
  local name
  ((${#todo[@]})) || return 0
  for name in "${todo[@]}"; do
    rm -f "$results/.cells/$name.json"
    printf '%s\tstatus=planned\texit_code=\terror=\tslurm_job_id=\tslurm_array_job_id=\tslurm_array_task_id=\n' \
      "${folder_of[$name]}"
  done | zs-runs update - || die "cannot write the records of $results"
  printf '%s\n' "${todo[@]}" | jq -Rn '[inputs | {key: ., value: true}] | from_entries' >"$results/.cells/again"
  whole "$results/metadata.json" jq --slurpfile again "$results/.cells/again" '.conditions |= with_entries(
    if $again[0][.key] then .value |= {command, arguments, run, exit_code: null} else . end)' "$results/metadata.json"
}

# settings_of_environment: variables that say how a training is run, NAME=VALUE each. Only names that are known to be
# harmless: others may be secrets (SLURM_JWT is one), and the log is for everybody.
settings_of_environment() {
  local name harmless secret='JWT|TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH'
  harmless='SLURM_(CLUSTER_NAME|JOB_(ID|NAME|PARTITION|QOS|NODELIST|NUM_NODES|CPUS_PER_NODE|GPUS)|ARRAY_(JOB_ID|TASK_ID)'
  harmless+='|NTASKS.*|NPROCS|NNODES|TASKS_.*|CPUS_.*|GPUS_.*|MEM_PER_.*|(CPU|MEM|GPU)_BIND|NODELIST|RESTART_COUNT'
  harmless+='|MPI_TYPE|DISTRIBUTION|SUBMIT_(DIR|HOST))|(OMP|KMP|MKL|OPENBLAS|NCCL)_.*|OMPI_MCA_(btl|pml|mtl|osc|coll|rmaps).*'
  harmless+='|CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|LAUNCH_BLOCKING|MODULE_LOADING|HOME)|CUBLAS_WORKSPACE_CONFIG'
  harmless+='|ZS_(RANKS|MPI|RUN|REGISTRY|CONDITIONS|SHARE|SANDBOX)'
  while IFS= read -r name; do
    # Not even these where they name a secret.
    [[ ${name^^} =~ $secret || ! $name =~ ^($harmless)$ ]] || printf '%s=%q\n' "$name" "${!name}"
  done < <(compgen -e | sort)
}

# What a reader needs to repeat a condition: the first lines of its _detailed.log.
header() {
  echo "date: $(date -Is)"
  echo "host: $(hostname)"
  echo "folder: $PWD"
  echo "launch: $(as_words "$@")"
  echo "ranks: $ranks"
  zs-train --version
  settings_of_environment
  echo
}

# run_condition NAME: trains it on all ranks, or goes on with it. What came of it is in .cells/NAME.json; a failure does
# not stop us. A training that was stopped with everything saved goes on in this job, requeued, if it may.
run_condition() {
  local name=$1 command begin seconds digest run_id run
  local output=$results/$name.log detailed=$results/${name}_detailed.log label="[$((number += 1))/${#todo[@]}] $name"
  run=${folder_of[$name]}
  still_frozen "$results/frozen.sha256" "$run/config.yaml" "$results/configs/$name.yaml"
  if ((${SLURM_RESTART_COUNT:-0} > max_restarts)) && submitted; then
    note_run "$run" exit_code=75
    die "$name: restarted more than $max_restarts times (--max_restarts)"
  fi
  export ZS_RUN=$run
  plan_launch
  mapfile -d '' -t command < <(jq -j --arg name "$name" '.conditions[$name].arguments[] + "\u0000"' "$results/metadata.json")
  command=(zs-train "${command[@]}")
  trap 'stop INT 130' INT
  trap 'stop TERM 143' TERM
  trim "$output" "$run"
  header "${launch[@]}" "${command[@]}" >>"$detailed" || die "cannot write $detailed"
  say "$label${SLURM_RESTART_COUNT:+, restart $SLURM_RESTART_COUNT}"
  begin=${EPOCHREALTIME/./}
  on_every_rank "$output" "${command[@]}"
  seconds=$(((${EPOCHREALTIME/./} - begin) / 1000000))
  { cat "$output"; echo; echo "exit code: $code"; echo "seconds: $seconds"; } >>"$detailed" || die "cannot write $detailed"
  if ((code == 75)) && again; then exit 75; fi

  note_run "$run" "exit_code=$code"
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
  if ((code == 75)); then
    say "stopped; the rest has not begun: zs-runs rerun --failed goes on with $results"
    exit 75
  fi
}

# gather: brings what has come of the conditions so far into metadata.json.
gather() {
  local cells=("$results"/.cells/*.json)
  [[ -e ${cells[0]} ]] || return 0
  must_own "${cells[@]}"
  whole "$results/metadata.json" jq -s \
    '.[0] as $all | reduce .[1:][] as $cell ($all; .conditions[$cell.name] += ($cell | del(.name)))' \
    "$results/metadata.json" "${cells[@]}"
}

# states: brings what zs-runs finds out about the conditions into metadata.json, as `found` of each.
states() {
  local registry
  printf '%s\n' "${folders[@]%/*}" | sort -u | while IFS= read -r registry; do
    zs-runs --registry "$registry" --status --filter "experiment=$results" --format json \
      --show condition state basis steps slurm_job nodes || (($? == 1)) || echo failed
  done | jq -s 'add | map({key: .condition, value: (del(.condition) | with_entries(.value |= tostring))}) | from_entries' >"$results/.cells/states" ||
    die "cannot find out what has become of the runs of $results"
  whole "$results/metadata.json" jq --slurpfile found "$results/.cells/states" \
    '.conditions |= with_entries(.value.found = ($found[0][.key] // {state: "MISSING", basis: "its run is gone"}))' "$results/metadata.json"
}

# end_experiment: the log, the summary, the pictures and the report. Exits: 1 if a condition failed or is missing or a
# log has faults, 2 if a part could not be made.
end_experiment() {
  local faults=0 bad kind
  exec 9>"$results/.cells/lock" || die "cannot write $results"
  flock 9 || die "cannot lock $results"
  gather
  states
  {
    jq -r '.condition_order[] as $name | .conditions[$name] | "Running condition: \($name)
Command: \(.launch // "") \(.command)
Condition \($name) " + (if .exit_code == null then "has no exit code: \(.found.basis)" else
    "completed with exit code \(.exit_code)" end) + "
Detailed log saved: \($name)_detailed.log
"' "$results/metadata.json"
    echo "=== Experiment Summary ==="
    echo "End time: $(date)"
    echo
    echo "| Condition | Status | Exit code | Seconds | State digest |"
    echo "|-----------|--------|-----------|---------|--------------|"
    jq -r '.condition_order[] as $name | .conditions[$name] | "| \($name) | \(if .found.state == "COMPLETE" then "SUCCESS" else .found.state end
      ) | \(.exit_code // "none") | \(.seconds // "none") | \(.digest // "none") |"' "$results/metadata.json"
    echo
    echo "Results saved to: $results"
  } >>"$results/experiment_log.txt" || die "cannot write $results/experiment_log.txt"
  bad=$(jq -r '.condition_order[] as $name | .conditions[$name] | select(.found.state != "COMPLETE") |
    "\($name): \(.found.state)\(if (.exit_code // 0) != 0 then " with exit code \(.exit_code)" else ": \(.found.basis)" end)"' "$results/metadata.json")

  [[ -z $bad ]] || say "$bad"
  local all_failed=''
  [[ $(grep -c . <<<"$bad") != "${#names[@]}" ]] || all_failed=1

  summarize() { zs-parse "$results" | zs-aggregate -o "$results/summary.h5"; }
  # A fault in the data (status 1) does not stop the evidence.
  step() {
    "$@" || { (($? == 1)) && faults=1; } || die "$(as_words "$@") failed; the logs are in $results"
  }
  # Where everything failed, there may be nothing to draw.
  picture() {
    if [[ -n $all_failed ]]; then
      zs-plot "$1" "$results/summary.h5" -o "$results/$2.png" || say "no $2.png"
    else
      step zs-plot "$1" "$results/summary.h5" -o "$results/$2.png"
    fi
  }
  step summarize
  kind=$(jq -r '.report // "batch"' "$results/metadata.json")
  step zs-report --kind "$kind" "$results/summary.h5" -o "$results/report.md"
  step zs-report --kind "$kind" "$results/summary.h5" -o "$results/report.html"
  picture loss loss_comparison
  picture time iteration_time_comparison
  picture memory memory_usage_comparison
  echo "report: $results/report.html"
  [[ -z $bad && $faults == 0 ]] || exit 1
  exit 0
}

# run_experiment: every condition of `todo`, one after another, here; then the evidence.
run_experiment() {
  local name mark
  number=0
  # Until a training begins, its run waits for this script.
  whereabouts
  for name in "${todo[@]}"; do
    (IFS=$'\t'; echo "${folder_of[$name]}"$'\t'"${mark[*]}")
  done | zs-runs update - || die "cannot write the records of $results"
  exec 9>&-
  for name in "${todo[@]}"; do
    run_condition "$name"
    gather
  done
  end_experiment
}

# begun_before: whether this job had planned an experiment before it was requeued; sets `earlier`, its folder.
begun_before() {
  restarted && earlier=$(recall) && [[ -d $earlier/.cells ]]
}

# run_or_submit: the end of a script that has planned an experiment or reopened one. It runs here, or as an array: from
# a job, or as it was before, or where --submit says so.
run_or_submit() {
  if [[ -n $as_before && -e $results/.cells/settings ]]; then submit=1; fi
  if [[ -n $submit ]] || { submitted && [[ -z $local ]]; }; then submit_experiment; fi
  if submitted; then remember "$results"; fi
  run_experiment
}
