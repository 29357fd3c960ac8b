# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154,SC2317
# Sourced by the *.sbatch files in this folder, after job.bash: an experiment is a list of conditions in a results
# folder, each a training; after they have run, they become a summary, pictures and a report. zs-runs knows all about
# them: it plans them, starts each, and judges the result.
# (shellcheck does not see that launch.bash and job.bash set ranks, launch and folder, nor what `step` and traps call.)

# experiment_usage: what --help says of all experiments.
experiment_usage() {
  cat <<'END'
      --run COMMAND      the command of each training, if not zs-train: {options} are
                         the condition's options as --key value (appended if the
                         command uses none of these), {KEY} is one value,
                         {file:ds.json zero_optimization.stage=KEY} a copy of a file
                         with values set, {run} the run's folder. $ZS_LAUNCH before a
                         program starts it on all ranks, with RANK, LOCAL_RANK,
                         WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them;
                         or the command includes a launcher. zs-record(1)
                         records it ["run:" of the file; else zs-train]
      --resume_with ARGS further arguments of that command when it resumes after a
                         preemption, a time limit or a failure, at its end or in
                         place of {resume}; {checkpoint} is the newest complete
                         checkpoint in the run's folder ["resume:" of the file]
      --local            run all here or in this job, one after another
      --submit           submit from here, without a job for it
      --sbatch OPTION    as --submit, with an option of sbatch: --sbatch --nodes=2
      --max_parallel N   at most N elements of the array at a time
      --max_restarts N   number of times that an element may restart after a
                         preemption or its time limit [50]
      --repeats N        train each N times: the report gives means over the
                         repetitions, and their spread [1]
      --gpus_per_node N  N GPUs on each node, and a rank for each of them
      --rerun RESULTS    run again what failed or is missing in that folder
                         (zs-runs rerun RESULTS calls this)
      --any_owner        with --rerun: also a folder of another user; its commands
                         then run under your account
  -h, --help             print this help

Environment:
  ZS_RANKS         ranks of each training [a rank for each GPU; without GPUs the
                   tasks that Slurm is asked for, else 2]
  OMP_NUM_THREADS  threads of each rank [those of the allocation, else 1]
  ZS_MPI           value of srun --mpi [the cluster's pmix]
  ZS_PROBE         with --run: any word but "off": zs_probe records each
                   training in its run's folder, and the report compares them
  ZS_TIMEOUT       with --run: seconds without output after which ranks are asked
                   where they are, and the training is ended [never]

Exit status:
  0  every training succeeded
  1  one failed; the report says which
  2  could not: usage, input or output
  75 stopped with everything saved, and not requeued
END
}

# The number of runs of each condition; see --repeats.
repeats=''

# experiment_option WORD...: as common_option, with the options of experiments alone.
experiment_option() {
  [[ ${1//-/_} == __repeats ]] || { common_option "$@"; return; }
  [[ ${2-} =~ ^[1-9][0-9]{0,2}$ ]] || die "$1 needs a number of runs, 1 to 999"
  repeats=$2 used=2
}

# set_results FOLDER: sets `results`, and `go_on`, the command that continues it.
set_results() { results=$1 go_on="zs-runs rerun $(as_words "$1")"; }

# begin_experiment: makes the results folder; plan_cells follows. If planning fails, the folder is removed.
begin_experiment() {
  local tool
  for tool in "$([[ -n ${foreign-} ]] && echo zs-record || echo zs-train)" zs-parse zs-aggregate zs-plot zs-report zs-runs; do
    command -v "$tool" >/dev/null || die "$tool is not next to zs-sweep and not on PATH: run make first"
  done
  if [[ -n $submit ]]; then needs_sbatch; fi
  plan_launch
  new_folder "$PWD/results" results
  set_results "$folder"
  folders=()
  at_end withdraw
  mkdir "$results/.cells" || die "cannot write $results"
  if [[ -e $share/../.git ]]; then git -C "$share/.." diff HEAD >"$results/revision.diff" 2>/dev/null || true; fi
}

# plan_cells TITLE <CELLS: registers a run for each, and sets `todo`, their names, and `folders`, of their runs.
plan_cells() {
  local mark planned
  whereabouts
  planned=$(zs-runs plan "experiment=$results" "title=$1" "report=$report" "script=$script" "directory=$PWD" "ranks=$ranks" \
    "max_restarts=$max_restarts" "gpus_per_node=$gpus_per_node" ${run_template:+"run_command=$run_template"} \
    ${resume_template:+"resume_with=$resume_template"} "${mark[@]}") ||
    exit 2
  set_todo "$planned"
  printf '%s\n' "=== Starting batch experiments ===" "Start time: $(date)" "Experiment: $1" "Ranks: $ranks" "" \
    >"$results/experiment_log.txt" || die "cannot write $results"
  trap - EXIT
}
set_todo() {
  todo=() folders=()
  [[ -n $1 ]] || return 0
  mapfile -t todo < <(cut -f1 <<<"$1")
  mapfile -t folders < <(cut -f2 <<<"$1")
}

# withdraw: as if nothing had been planned.
withdraw() {
  local run
  for run in "${folders[@]}"; do zs-runs --registry "${run%/*}" rm --yes "${run##*/}" || true; done
  rm -rf "$results"
}

# reopen_experiment FOLDER [WHICH]: sets `results` and `todo`: the failed and missing conditions, or with --cells those
# that stdin names; if WHICH is "unfinished", all that are not complete, for a job that continues them.
reopen_experiment() {
  local mark planned key value
  set_results "$(realpath "$1")" || die "there is no $1"
  whereabouts
  planned=$(zs-runs plan --again "${2:-failed}" ${any_owner:+--any_owner} "$results" "${mark[@]}" ${cells:+-}) || exit 2
  set_todo "$planned"
  if ((${#todo[@]} == 0)) && [[ ${2-} != unfinished ]]; then
    say "nothing in $results has failed or is missing"
    exit 0
  fi
  while IFS=$'\t' read -r _ key value; do
    case $key in
      ranks) resized || ZS_RANKS=${ZS_RANKS:-$value} ;;
      max_restarts | gpus_per_node) printf -v "$key" %s "$value" ;;
      run_command) foreign_training "$value" ;;
    esac
  done < <(zs-runs show "$results" --format tsv | grep '^experiment')
  if [[ -n $as_before && -e $results/.cells/settings ]]; then submit=1; fi
  plan_launch
}

# run_condition NAME: trains it on all ranks, or continues it. A failure does not stop us. A training that was stopped
# with everything saved continues in this job, requeued, if it may.
run_condition() {
  local name=$1 begin=${EPOCHREALTIME/./} load
  load=$(cut -d ' ' -f 1 /proc/loadavg) number=$((${number:-0} + 1))
  trap 'stop INT 130' INT
  trap 'stop TERM 143' TERM
  [[ -z ${foreign-} ]] || meeting_point
  on_every_rank "$results/$name.log" zs-runs start ${any_owner:+--any_owner} "$results" "$name" -- "${launch[@]}" ${foreign:+as-rank}
  if ((code == 125)); then exit 2; fi
  if [[ -n $cancelled ]]; then
    note_cancel
    exit "$code"
  fi
  if ((code == 75)) && again; then exit 75; fi
  zs-runs finish "$results" "$name" exit_code="$code" seconds=$(((${EPOCHREALTIME/./} - begin) / 1000000)) \
    "load_before=$load" "order=$number" "slurm_job_id=${SLURM_JOB_ID-}" "slurm_nodes=${SLURM_JOB_NODELIST-}" >&2 ||
    die "cannot write $results; once it can be written: $go_on"
  if ((code == 75)); then
    say "stopped; the rest has not begun: $go_on continues"
    exit 75
  fi
}

# note_cancel: the condition that runs was cancelled by a user.
note_cancel() {
  zs-runs finish "$results" "$name" exit_code="$code" status=cancelled seconds=$(((${EPOCHREALTIME/./} - begin) / 1000000)) \
    "slurm_job_id=${SLURM_JOB_ID-}" "slurm_nodes=${SLURM_JOB_NODELIST-}" >&2 || die "cannot write $results"
}

# end_experiment: the log, the summary, the report and the pictures. Exits: 1 if a condition failed or is missing or a
# log has faults, 2 if a part could not be made. The last line names the report, whatever pictures there are.
end_experiment() {
  local faults=0 bad='' unmade='' file
  zs-runs state "$results" >&2 || { (($? == 1)) && bad=1; } || die "cannot find out what has become of $results"
  # A fault in the data (status 1) does not stop the evidence.
  step() { "$@" || { (($? == 1)) && faults=1; } || die "$(as_words "$@") failed; the logs are in $results"; }
  summarize() { zs-parse "$results" | zs-aggregate -o "$results/summary.h5"; }
  # For logs without a time or a loss there is no such picture (status 3). This is not a failure.
  picture() {
    zs-plot "$1" "$results/summary.h5" -o "$results/$2.png" || { (($? == 3)) || [[ -n $bad ]] || unmade=1; say "no $2.png"; }
  }
  step summarize
  for file in report.md report.html; do step zs-report --kind "$report" "$results/summary.h5" -o "$results/$file" >/dev/null; done
  picture loss loss_comparison
  picture time iteration_time_comparison
  picture memory memory_usage_comparison
  echo "report: $results/report.html"
  [[ -z $unmade ]] || exit 2
  [[ -z $bad && $faults == 0 ]] || exit 1
  exit 0
}

# begun_before: whether this job had planned an experiment before it was requeued; sets `earlier`, its folder.
begun_before() {
  restarted && earlier=$(recall) && [[ -d $earlier/.cells ]]
}

# run_or_submit: the end of a script that has planned an experiment or reopened one. It runs here, one condition after
# another, or as an array: from a job, or as it was before, or where --submit says so.
run_or_submit() {
  local name waiting=${#todo[@]}
  if [[ -n $submit ]] || { submitted && [[ -z $local ]]; }; then submit_experiment; fi
  if submitted; then remember "$results"; fi
  for name in "${todo[@]}"; do
    run_condition "$name"
    waiting=$((waiting - 1))
  done
  end_experiment
}
