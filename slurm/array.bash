# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by the *.sbatch files beside it, after experiment.bash: an experiment as a job array, a condition per element,
# and a job that reports when all have ended, whatever became of them. Array and report run the same script as the job
# that submitted them; ZS_EXPERIMENT, the results folder, tells them what they are.

# submitted: whether this is a job of its own, not a shell or a step within one.
submitted() { [[ ${BASH_SOURCE[-1]} == */slurm_script ]]; }

# same_settings: sets `settings`, sbatch's options for another job like this one. Those in the script's #SBATCH lines
# hold anyway; these are for what was given on sbatch's command line.
same_settings() {
  local job
  job=$(scontrol -o show job "$SLURM_JOB_ID")
  field() { sed -nE "s/^(.* )?$1=([^ ]*).*/\2/p" <<<"$job"; }
  settings=(--nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_NTASKS" --partition="$SLURM_JOB_PARTITION" --chdir="$PWD")
  [[ -z ${SLURM_CPUS_PER_TASK-} ]] || settings+=(--cpus-per-task="$SLURM_CPUS_PER_TASK")
  [[ -z ${SLURM_GPUS_PER_NODE-} ]] || settings+=(--gpus-per-node="$SLURM_GPUS_PER_NODE")
  local pair value
  for pair in time=TimeLimit account=Account qos=QOS; do
    value=$(field "${pair#*=}")
    [[ -z $value || $value == "(null)" || $value == N/A ]] || settings+=("--${pair%=*}=$value")
  done
}

# submit_experiment MAX-PARALLEL: submits the conditions of `todo` as arrays and the report after them, prints the jobs,
# and ends. MAX-PARALLEL, if not empty, is how many may run at a time.
submit_experiment() {
  local largest begin=0 length jobs=() job report
  same_settings
  largest=$(scontrol show config | sed -n 's/^MaxArraySize *= *//p')
  largest=$((${largest:-1001} - 1))
  printf '%s\n' "${todo[@]}" >"$results/.cells/todo"
  export ZS_EXPERIMENT=$results
  while ((begin < ${#todo[@]})); do
    length=$((${#todo[@]} - begin < largest ? ${#todo[@]} - begin : largest))
    job=$(ZS_CELL_OFFSET=$begin sbatch --parsable "${settings[@]}" --output="$results/slurm-%A_%a.out" \
      --array="1-$length${1:+%$1}" "$script") || die "sbatch refused the array (see above)"
    jobs+=("${job%%;*}")
    begin=$((begin + length))
  done
  report=$(IFS=:; sbatch --parsable "${settings[@]}" --nodes=1 --ntasks=1 --output="$results/slurm-report-%j.out" \
    --dependency="afterany:${jobs[*]}" "$script") || die "sbatch refused the report (see above)"
  printf '%s\n' "${jobs[@]}" "${report%%;*}" >"$results/.cells/jobs"
  echo "results: $results"
  echo "array: ${jobs[*]} (${#todo[@]} conditions)"
  echo "report: job ${report%%;*}, when they have ended"
  exit 0
}

# take_part: in a job that submit_experiment made, does its part and ends with the condition's exit code, or the report's.
take_part() {
  results=$ZS_EXPERIMENT
  [[ -d $results ]] || die "the results folder is gone: $results"
  mapfile -t names < <(jq -r '.condition_order[]' "$results/metadata.json")
  [[ -n ${SLURM_ARRAY_TASK_ID-} ]] || end_experiment
  mapfile -t todo <"$results/.cells/todo"
  number=$((ZS_CELL_OFFSET + SLURM_ARRAY_TASK_ID - 1))
  still_frozen
  plan_launch
  run_condition "${todo[number]}"
  exit "$(jq .exit_code "$results/.cells/${todo[number - 1]}.json")"
}
