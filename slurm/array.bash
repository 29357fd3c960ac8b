# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by the *.sbatch files in this folder, after experiment.bash: an experiment as a job array with one element for
# each condition, and a job that reports when all have ended. Array and report run the same script as the job that
# submitted them; --part selects the part.

# submit_experiment: submits the conditions of `todo` as arrays and the report after them, prints the jobs, and ends.
submit_experiment() {
  local largest begin=0 length jobs=() job report cluster list status=0 i words
  needs_sbatch
  if submitted || [[ ! -e $results/.cells/settings ]]; then same_settings; else saved_settings "$results/.cells/settings"; fi
  if submitted; then remember "$results"; fi
  keep_settings "$results/.cells/settings"
  largest=$(scontrol show config | sed -n 's/^MaxArraySize *= *//p')
  cluster=$(scontrol show config | sed -n 's/^ClusterName *= *//p')
  largest=$((${largest:-1001} - 1))
  # A separate list for each submission: an element of an earlier one may start again.
  list=$(mktemp "$results/.cells/todo.XXXXXX") || die "cannot write $results"
  printf '%s\n' "${todo[@]}" >"$list" || die "cannot write $list"
  words=(--max_restarts "$max_restarts" ${gpus_per_node:+--gpus_per_node "$gpus_per_node"} ${any_owner:+--any_owner})
  while ((begin < ${#todo[@]})); do
    length=$((${#todo[@]} - begin < largest ? ${#todo[@]} - begin : largest))
    if ! job=$(sbatch --parsable "${settings[@]}" --chdir="$PWD" --output="$results/slurm-%A_%a.out" \
      --array="1-$length${parallel:+%$parallel}" "$script" "${words[@]}" --part "$list" "$begin"); then
      if ((begin == 0)); then
        [[ -n $rerun ]] || withdraw
        die "sbatch refused the array (see above)"
      fi
      say "sbatch refused the conditions from ${todo[begin]} on (see above): $go_on submits them later"
      status=2
      break
    fi
    jobs+=("${job%%;*}")
    for ((i = 0; i < length; ++i)); do
      printf '%s\thost=\tprocess=\tslurm_array_job_id=%s\tslurm_array_task_id=%s\tslurm_cluster_name=%s\n' \
        "${folders[begin + i]}" "${job%%;*}" $((i + 1)) "$cluster"
    done | zs-runs update - || die "cannot record the jobs of $results"
    begin=$((begin + length))
  done
  # The report needs one task, and no GPU.
  for i in "${!settings[@]}"; do ! is_size "${settings[i]}" || unset "settings[i]"; done
  report=$(IFS=:; sbatch --parsable "${settings[@]}" --chdir="$PWD" --nodes=1 --ntasks=1 \
    --output="$results/slurm-report-%j.out" --dependency="afterany:${jobs[*]}" "$script" --part "$results" report) ||
    die "sbatch refused the report (see above)"
  printf '%s\n' "${jobs[@]}" "${report%%;*}" >"$results/.cells/jobs"
  echo "results: $results"
  echo "array: ${jobs[*]} ($begin conditions)"
  echo "report: job ${report%%;*}, when they have ended"
  exit "$status"
}

# take_part: in a job that submit_experiment made, does its part and ends with the condition's exit code, or the report's.
take_part() {
  if [[ $offset == report ]]; then set_results "$part"; else set_results "${part%/.cells/*}"; fi
  [[ -d $results ]] || die "the results folder is gone: $results"
  [[ $offset != report ]] || end_experiment
  foreign_training "$(zs-runs show "$results" --format tsv | sed -n 's/^experiment\trun_command\t//p')"
  plan_launch
  mapfile -t todo <"$part"
  run_condition "${todo[offset + SLURM_ARRAY_TASK_ID - 1]}"
  exit "$code"
}
