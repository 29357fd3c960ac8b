# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by the *.sbatch files in this folder, after launch.bash: their common options, and a job's life: submission,
# signals, restarts.
#
# A stopped job continues as the same run:
#   Slurm (or sbatch --signal)   SIGUSR1 to this script, 120 s before the time limit; SIGTERM at a preemption
#     -> the trap or stop()      hands SIGUSR1 to the training, which saves after its step and ends with 75
#     -> again()                 scontrol requeue, unless the job was cancelled or has restarted --max_restarts times
#   Slurm starts the job again   restarted() is true; recall() reads from the job's comment which run or results folder
#                                it had (remember() wrote it), and zs-runs start continues at the newest checkpoint
# A script ends with 75 if everything is saved and nothing continues the run by itself.

# The values of the options; see common_option.
local='' submit='' as_before='' any_owner='' parallel='' max_restarts=50 gpus_per_node='' sbatch_words=() rerun='' cells=''
part='' offset='' cancelled='' foreign='' run_template='' resume_template=''

# zs-runs start sets it: mpirun must know that it is to hand it on.
export ZS_RUN=''

# common_option WORD...: takes the option at the front that all scripts have, and sets `used` to the words that it is.
# Status 1 if it is none of them.
common_option() {
  used=2
  case ${1//-/_} in
    __local) local=1 used=1 ;;
    __submit) submit=1 used=1 ;;
    __as_before) as_before=1 used=1 ;;
    __any_owner) any_owner=1 used=1 ;;
    __sbatch) [[ -n ${2-} ]] || die "--sbatch needs an option of sbatch"; submit=1; sbatch_words+=("$2") ;;
    __max_parallel) [[ ${2-} =~ ^[1-9][0-9]*$ ]] || die "$1 needs a number"; parallel=$2 ;;
    __max_restarts) [[ ${2-} =~ ^[0-9]+$ ]] || die "$1 needs a number"; max_restarts=$((10#$2)) ;;
    __gpus_per_node) [[ ${2-} =~ ^[1-9][0-9]*$ ]] || die "$1 needs a number"; gpus_per_node=$2 ;;
    __run) [[ -n ${2-} ]] || die "--run needs the command of a training"; run_template=$2 ;;
    __resume_with) [[ -n ${2-} ]] || die "--resume_with needs the words that resume a training"; resume_template=$2 ;;
    __rerun) [[ -n ${2-} ]] || die "--rerun needs a results folder"; rerun=$2 ;;
    __cells) [[ ${2-} == - ]] || die "--cells takes the names of conditions from stdin: -"; cells=$2 ;;
    __part) part=${2-} offset=${3-} used=3 ;;
    *) return 1 ;;
  esac
}

# submits: whether this call starts no training itself, but submits jobs that do.
submits() { [[ -n $submit ]] || { declare -F submit_experiment >/dev/null && submitted && [[ -z $local && -z $part ]]; }; }

# asked NAME [LETTER]: prints what sbatch is asked for by --NAME=VALUE or -LVALUE: with --sbatch, else in a #SBATCH line.
asked() {
  local words=() value='' i
  mapfile -t words < <(sed -nE 's/^#SBATCH +//p' "$script" | tr ' ' '\n')
  words+=("${sbatch_words[@]}")
  for ((i = 0; i < ${#words[@]}; ++i)); do
    case ${words[i]} in
      --"$1"=*) value=${words[i]#*=} ;;
      --"$1" | -"${2:- }") value=${words[i + 1]-} ;;
      -"${2:- }"*) value=${words[i]#-?} ;;
    esac
  done
  echo "${value// /}"
}

# gpus_asked WORD: prints the number in "4", "a100:4" or "gpu:a100:4,license:1"; 0 where it has none.
gpus_asked() { [[ $1 =~ ^(gpu:)?([^,:]+:)?([0-9]+)(,|$) ]] && echo "${BASH_REMATCH[3]}" || echo 0; }

# plan_jobs: sets `ranks`, of each job that is to be submitted, and `size`, sbatch's options for them. A job with GPUs has
# a rank for each.
plan_jobs() {
  local nodes tasks per gpus=0 gpus_here each total=''
  if submitted; then
    nodes=$SLURM_JOB_NUM_NODES tasks=${ZS_RANKS:-${SLURM_NTASKS-}} per=''
    given_gpus
    each=$gpus_here
    ((gpus == each * nodes)) || each=0
  else
    nodes=$(asked nodes N) tasks=${ZS_RANKS:-$(asked ntasks n)} per=$(asked ntasks-per-node) gpus=$(gpus_asked "$(asked gpus G)")
    each=$(gpus_asked "$(asked gpus-per-node)")
    ((each)) || each=$(gpus_asked "$(asked gres | grep -o 'gpu[:,].*' || true)")
  fi
  [[ -z $tasks || $tasks =~ ^[1-9][0-9]*$ ]] || die "'$tasks' is not a number of ranks"
  [[ -z $per || $per =~ ^[1-9][0-9]*$ ]] || die "--ntasks-per-node: '$per' is not a number of ranks"
  if [[ -n $gpus_per_node ]]; then
    ((each == 0 || each == gpus_per_node)) || die "--gpus_per_node $gpus_per_node and --gpus-per-node=$each disagree: leave one out"
    each=$gpus_per_node
  fi
  [[ $nodes =~ ^[0-9]*$ ]] || ((each == 0)) || die "--nodes=$nodes: with GPUs on each node, say how many nodes"
  [[ $nodes =~ ^[1-9][0-9]*$ ]] || nodes=''
  if ((each)); then
    if [[ -z $nodes ]]; then nodes=$((${tasks:-$each} % each ? 1 : ${tasks:-$each} / each)); fi
    total=$((nodes * each))
  elif ((gpus)); then
    total=$gpus
  fi
  if [[ -n $total ]]; then
    [[ -z $per ]] || ((each == 0 || per == each)) || die "$each GPUs on a node, and --ntasks-per-node=$per: each GPU needs a separate rank"
    ((${tasks:-$total} == total)) ||
      die "$total GPUs${nodes:+ on $nodes node$( ((nodes == 1)) || echo s)} and $tasks ranks: each GPU needs a separate rank (leave --ntasks and ZS_RANKS out)"
    ranks=$total
  elif [[ -n $tasks ]]; then
    ranks=$tasks
  elif [[ -n $per ]]; then
    ranks=$((per * ${nodes:-1}))
  else
    ranks=${nodes:-2}
    ! submitted || ((ranks > 1)) || ranks=2
  fi
  size=("--ntasks=$ranks")
  [[ -z $nodes ]] || size+=("--nodes=$nodes")
  if ((each)); then size+=("--ntasks-per-node=$each" "--gpus-per-node=$each"); fi
  if ((each == 0 && gpus)); then size+=("--gpus=$gpus"); fi
}

# An option of sbatch that sets the size of a job.
is_size() { [[ $1 =~ ^(--(nodes|ntasks|ntasks-per-node|gpus|gpus-per-node|gres)(=|$)|-[NnG]) ]]; }

# resized: whether --sbatch asks for jobs of another size than before.
resized() {
  local word
  for word in "${sbatch_words[@]}"; do ! is_size "$word" || return 0; done
  return 1
}

# submitted: whether this is a submitted job; a shell or a step within one is not.
submitted() { [[ ${BASH_SOURCE[-1]} == */slurm_script ]]; }

# restarted: whether this job has begun before.
restarted() { submitted && ((${SLURM_RESTART_COUNT:-0} > 0)); }

# needs_sbatch: stops where nothing can be submitted.
needs_sbatch() { command -v sbatch >/dev/null || die "no Slurm here (sbatch is not on PATH): --local runs it without"; }

# remember PATH: keeps it with this job for its restarts, behind the comment that it has. recall: prints it.
remember() {
  local comment
  comment=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Comment=\(.*[^ ]\) *$/\1/p')
  scontrol update JobId="$SLURM_JOB_ID" "Comment=${comment:+$comment }zs=$1" || die "cannot set the comment of job $SLURM_JOB_ID"
}
recall() { scontrol show job "$SLURM_JOB_ID" | sed -nE 's/^ *Comment=(.* )?zs=(.*[^ ]) *$/\2/p'; }

# same_settings: sets `settings`, sbatch's options for another job like this one. The script's #SBATCH lines apply
# anyway; these are the options of sbatch's command line. Outside of a job: the options of --sbatch.
same_settings() {
  settings=("${sbatch_words[@]}")
  ((max_restarts)) || settings+=(--no-requeue)
  if submits; then
    plan_jobs
  else
    size=("--nodes=$SLURM_JOB_NUM_NODES" "--ntasks=${SLURM_NTASKS:-$SLURM_JOB_NUM_NODES}")
    ((${SLURM_GPUS_ON_NODE:-0} == 0)) || size+=("--gpus-per-node=$SLURM_GPUS_ON_NODE")
  fi
  settings+=("${size[@]}")
  submitted || return 0
  local job pair value
  job=$(scontrol -o show job "$SLURM_JOB_ID")
  field() { sed -nE "s/^(.* )?$1=([^ ]*).*/\2/p" <<<"$job"; }
  settings+=(--partition="$SLURM_JOB_PARTITION")
  for pair in cpus-per-task=CPUS_PER_TASK mem=MEM_PER_NODE mem-per-cpu=MEM_PER_CPU; do
    value=SLURM_${pair#*=}
    [[ -z ${!value-} ]] || settings+=("--${pair%=*}=${!value}")
  done
  for pair in time=TimeLimit account=Account qos=QOS constraint=Features reservation=Reservation exclude=ExcNodeList; do
    value=$(field "${pair#*=}")
    [[ -z $value || $value == "(null)" || $value == N/A ]] || settings+=("--${pair%=*}=$value")
  done
}

# keep_settings FILE, saved_settings FILE: for --rerun, which does not run in a job.
keep_settings() { : >"$1"; ((${#settings[@]} == 0)) || printf '%s\n' "${settings[@]}" >"$1"; }
saved_settings() {
  local kept_words word
  settings=()
  mapfile -t kept_words <"$1"
  if resized; then
    # The GPUs of a node stay, unless they are what changes.
    for word in "${kept_words[@]}"; do [[ $word == --nodes=* || $word == --ntasks* ]] || settings+=("$word"); done
    sbatch_words=("${settings[@]}" "${sbatch_words[@]}")
    plan_jobs
    settings=("${sbatch_words[@]}" "${size[@]}")
  else
    settings=("${kept_words[@]}" "${sbatch_words[@]}")
  fi
}

# whereabouts: sets `mark`, by which zs-runs sees whether this script is at work: NAME=VALUE words for a run's record.
whereabouts() {
  mark=("host=$(hostname)" "process=$$:$(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)")
  ! submitted || mark+=("slurm_job_id=$SLURM_JOB_ID" "slurm_cluster_name=${SLURM_CLUSTER_NAME-}")
}

# note_run RUN NAME=VALUE...: adds to the record of the run whose folder is RUN.
note_run() { [[ -z $1 ]] || zs-runs update "$@" || die "cannot write the record of $1"; }

# Slurm's warning before the time limit (--signal in the #SBATCH lines): the training saves and stops.
stopping=''
trap 'stopping=1; if [[ -n ${child-} ]]; then kill -USR1 "$child" 2>/dev/null || true; fi' USR1

# on_every_rank LOG COMMAND...: runs it, which starts a training and writes to LOG, or where that is empty to stdout and
# stderr; sets `code`, 75 if it was stopped with everything saved, and then `saved`, after which step.
on_every_rank() {
  local errors=$1 command=("${@:2}")
  code=75 saved=''
  [[ -z $stopping ]] || return 0
  if [[ -n $1 ]]; then
    "${command[@]}" </dev/null &
  else
    errors=$(mktemp) || die "cannot make a file in ${TMPDIR:-/tmp}"
    "${command[@]}" </dev/null 2> >(tee "$errors" >&2) &
  fi
  child=$!
  [[ -z $stopping ]] || kill -USR1 "$child" 2>/dev/null || true
  [[ ! -t 2 || -z $1 ]] || zs-runs watch "$child" "$1" "$name" "$waiting" &
  # A trap ends `wait`, not the child.
  while :; do
    wait "$child" && code=0 || code=$?
    kill -0 "$child" 2>/dev/null || break
  done
  child=
  wait
  if [[ -e $errors ]]; then
    rank_code "$errors"
    see_cancel
    saved=$(sed -n 's/^zs-train: .*stopped after step \([0-9]*\), saved.*/\1/p' "$errors" | tail -n 1)
  fi
  [[ -n $1 ]] || rm -f "$errors"
  # Ranks that the warning met before they could heed it.
  if [[ -n $stopping ]] && ((code > 128)); then code=75; fi
}

# own_state: of this job in Slurm's queue; of an array only this element, whose job may have the number of the whole array.
own_state() { squeue -h -j "${SLURM_ARRAY_TASK_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}" -o %T; }

# see_cancel: sets `cancelled` if a user has cancelled this job: Slurm writes the reason of every other end. It writes
# the reason of the step to srun, which may be gone by then, and the reason of the job to this script's stderr.
see_cancel() {
  local state
  cancelled=''
  submitted && ((code)) || return 0
  state=$(own_state) || true
  [[ $state != RUNNING ]] || return 0
  if cancelled_in JOB "$(readlink "/proc/$$/fd/2")"; then cancelled=1; fi
  # srun ends a step in the same words where a rank has failed.
  if [[ -n $state ]] && cancelled_in STEP "$errors"; then cancelled=1; fi
}

# cancelled_in WHAT FILE: whether the last that Slurm wrote of the end of a JOB or STEP there is that it was cancelled, due to nothing.
cancelled_in() {
  local last
  last=$(grep -hE "error: \\*\\*\\* $1 .* CANCELLED AT " "$2" 2>/dev/null | tail -n 1) || true
  [[ -n $last && $last != *" DUE "* ]]
}

# again: has Slurm run this job again, which continues from the saved state; status 1 if it may not.
again() {
  submitted || return 1
  # A job that was cancelled, or that somebody has requeued already, is not RUNNING.
  [[ $(own_state) == RUNNING ]] || return 1
  if ((${SLURM_RESTART_COUNT:-0} >= max_restarts)); then
    say "stopped before the end, and not requeued again: --max_restarts $max_restarts"
    return 1
  fi
  say "stopped${saved:+ after step $saved}; requeued to continue"
  scontrol requeue "$SLURM_JOB_ID"
}

# stop SIGNAL STATUS: takes the running training with us; what was done so far is in the files.
stop() {
  local signal=TERM
  trap - INT TERM
  if [[ -n ${child-} ]]; then
    # Slurm has already sent the ranks a SIGTERM, on which they save; a second one would end them before they have
    # saved.
    ! submitted || signal=USR1
    kill -s "$signal" "$child" 2>/dev/null || true
    wait "$child" || code=$?
    see_cancel
    [[ -z $cancelled ]] || note_cancel
  fi
  say "stopped by SIG$1${results:+; finished conditions are in $results; $go_on trains the rest}"
  exit "$2"
}
