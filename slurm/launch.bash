# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Sourced by the *.sbatch files in this folder: finds the tools and starts programs on many ranks, under Slurm or
# without.

script=${script:-$0}
# If stderr is closed, messages are dropped and the script continues. (bash then reads the script by that descriptor.)
if [[ ! -e /dev/fd/2 || /dev/fd/2 -ef ${BASH_SOURCE[-1]} ]]; then exec 2>/dev/null; fi
die() {
  echo "${script##*/}: $*" >&2
  exit 2
}

# A line for the person at the terminal.
say() { printf '%s\n' "$*" >&2; }

# at_end COMMAND: this shell runs it when it ends, and `ended_with` is its status. bash would have a child that is killed
# right after its fork run it, too, which must not remove what is ours.
at_end() { trap 'ended_with=$?; [[ $BASHPID != "$$" ]] || '"$1" EXIT; }

# whole FILE COMMAND...: the file becomes what the command prints, or stays as it was.
whole() {
  if ! { "${@:2}" >"$1.$$" && mv "$1.$$" "$1"; }; then
    rm -f "$1.$$"
    die "cannot write $1"
  fi
}

# find_tools HERE: puts the tools that belong to the scripts in HERE on PATH and sets `share`, the folder of their data.
# They are in ../build of a checkout ($BUILD), in bin/ of an installation, or wherever PATH finds them.
find_tools() {
  local here=$1 built
  [[ $PWD != *[[:cntrl:]]* ]] || die "the name of this folder has a line end or a tab in it: call this elsewhere"
  built=$(cd "$here/.." && realpath -m "${BUILD:-build}")
  if [[ -x $built/zs-sweep && -d $here/../share ]]; then
    PATH=$built:$PATH share=$(realpath "$here/../share")
  elif [[ -x $here/../../../bin/zs-sweep ]]; then
    PATH=$(realpath "$here/../../../bin"):$PATH share=$(realpath "$here/..")
  else
    built=$(command -v zs-sweep) || die "the tools are neither in $built nor on PATH: run make first"
    share=$(realpath "${built%/*}/../share/zs")
  fi
  export PATH share
}

# Settings of a site's nodes (modules, NCCL_ or OMPI_ variables) are in one file of the user, outside the scripts.
site=${XDG_CONFIG_HOME:-${HOME-}/.config}/zs/site.sh
if [[ -r $site ]]; then
  # It runs as the caller: only the caller, or the administrator, may have written it.
  for place in "$site" "${site%/*}"; do
    [[ (-O $place || $(stat -Lc %u -- "$place") == 0) && $(stat -Lc %a -- "$place") != *[2367] ]] ||
      die "$place is another user's, or everybody may write it: $site is not read"
  done
  # shellcheck source=/dev/null
  source "$site"
fi

# mpi_plugin: prints how srun is to start ranks, $ZS_MPI or a pmix that it offers; status 1 if it has none.
mpi_plugin() {
  local offered
  offered=$(srun --mpi=list 2>&1) || true
  if [[ -n ${ZS_MPI-} ]]; then
    grep -qwF "$ZS_MPI" <<<"$offered" || die "ZS_MPI: this Slurm has no '$ZS_MPI'; srun --mpi=list offers $(xargs <<<"$offered")"
    echo "$ZS_MPI"
    return
  fi
  grep -owE 'pmix(_v[0-9]+)?' <<<"$offered" | head -n 1 | grep . && return
  say "${script##*/}: this Slurm has no pmix (srun --mpi=list offers $(xargs <<<"$offered"))"
  return 1
}

# given_gpus: sets `gpus`, how many GPUs this job has, and `gpus_here`, how many on this node.
given_gpus() {
  gpus_here=${SLURM_GPUS_ON_NODE:-0}
  gpus=${SLURM_GPUS-}
  [[ $gpus =~ ^[0-9]+$ ]] || gpus=$((gpus_here * ${SLURM_JOB_NUM_NODES:-1}))
}

# plan_launch: sets `ranks` ($ZS_RANKS, else Slurm's allocation, else 2) and `launch`, the words before a program that
# start it on all of them. One thread per rank unless OMP_NUM_THREADS or the allocation says otherwise. In a job with
# GPUs each rank has a separate GPU; only another program's training (`foreign`) sees all GPUs of its node and takes the
# one of its LOCAL_RANK.
plan_launch() {
  local mpi status=0 gpus gpus_here
  if declare -F submits >/dev/null && submits; then
    plan_jobs
    return
  fi
  # Without --ntasks, Slurm means a task on each node.
  ranks=${ZS_RANKS:-${SLURM_NTASKS:-${SLURM_JOB_NUM_NODES:-2}}}
  [[ $ranks =~ ^[1-9][0-9]*$ ]] || die "ZS_RANKS: '$ranks' is not a number of ranks"
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}}
  if [[ -n ${SLURM_JOB_ID-} ]]; then
    given_gpus
    [[ -z ${gpus_per_node-} || $gpus_here == "$gpus_per_node" ]] ||
      die "--gpus_per_node $gpus_per_node: this job has $gpus_here on a node; submit it with sbatch --gpus-per-node=$gpus_per_node --ntasks-per-node=$gpus_per_node"
    ((gpus == 0 || gpus == ranks)) ||
      die "this job has $gpus GPUs and $ranks ranks: each GPU needs a separate rank (sbatch --gpus-per-node=N --ntasks-per-node=N${ZS_RANKS:+, without ZS_RANKS})"
    ((gpus == gpus_here * SLURM_JOB_NUM_NODES)) ||
      die "this job has $gpus GPUs, unequally on its nodes: ask for them with sbatch --nodes=N --gpus-per-node=N --ntasks-per-node=N"
    mpi=$(mpi_plugin) || status=$?
    if ((status == 0)); then
      # Slurm sends a fence without data through a tree. If the job has fewer nodes than TreeWidth, the tree does not
      # wait: reverse_tree_info() gives each node neither parent nor children. A rank then leaves MPI_Init and writes to
      # one that cannot read yet. About one start in a hundred on a busy machine ended so, with a segmentation fault.
      export SLURM_PMIX_FENCE=${SLURM_PMIX_FENCE:-ring}
      launch=(srun "--mpi=$mpi" "--ntasks=$ranks" --kill-on-bad-exit=1)
      [[ -z ${SLURM_CPUS_PER_TASK-} ]] || launch+=("--cpus-per-task=$SLURM_CPUS_PER_TASK")
      if ((gpus)); then
        launch+=("--ntasks-per-node=$gpus_here")
        [[ -n ${foreign-} ]] || launch+=(--gpus-per-task=1 --gpu-bind=single:1)
      fi
      return
    fi
    ((status == 1)) || exit 2
    command -v mpirun >/dev/null || die "and no mpirun is on PATH: name what your MPI speaks in ZS_MPI"
    say "${script##*/}: starting ranks with mpirun"
  fi
  if [[ -n ${gpus_per_node-} && -z ${SLURM_JOB_ID-} ]]; then
    die "--gpus_per_node is for jobs of Slurm: without, CUDA_VISIBLE_DEVICES says which GPUs there are"
  fi
  command -v mpirun >/dev/null || die "no mpirun on PATH: install Open MPI, or submit with sbatch"
  launch=(mpirun -n "$ranks")
  if [[ $(mpirun --version 2>/dev/null) == *"Open MPI"* ]]; then
    launch+=(--oversubscribe --bind-to none)
    # To ranks on other nodes; what starts them sets it.
    [[ -z ${ZS_RUN+set} || -n ${foreign-} ]] || launch+=(-x ZS_RUN)
    if [[ -n ${foreign-} ]] && ((${SLURM_JOB_NUM_NODES:-1} > 1)); then
      launch+=(-x PATH -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT)
    fi
    if ((EUID == 0)); then launch+=(--allow-run-as-root); fi
  fi
}

# foreign_training COMMAND: if COMMAND is set, trainings belong to another program, and the programs that $ZS_LAUNCH
# starts get their rank from as-rank in this folder.
foreign_training() {
  [[ -z $1 ]] || foreign=1 PATH=$here:$PATH
}

# meeting_point: exports MASTER_ADDR and MASTER_PORT, where the ranks of torch.distributed find each other: on the first
# node of the job, by the address that Slurm has of it, at a port that nothing listens at now.
meeting_point() {
  local first='' port
  if [[ -n ${SLURM_JOB_NODELIST-} ]]; then
    first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
    MASTER_ADDR=$(scontrol -o show node "$first" | sed -nE 's/.* NodeAddr=([^ ]*).*/\1/p')
  fi
  MASTER_ADDR=${MASTER_ADDR:-$first}
  [[ -n $first ]] || MASTER_ADDR=127.0.0.1
  for _ in {1..100}; do
    # Below those that systems hand out by themselves.
    port=$((20000 + RANDOM % 12000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  MASTER_PORT=$port
  export MASTER_ADDR MASTER_PORT
}

# new_folder PARENT PREFIX: makes PARENT/PREFIX_YYYYMMDD_HHMMSS, which no other call gets, and sets `folder` to it.
new_folder() {
  mkdir -p "$1" || die "cannot make the folder $1"
  for _ in {1..100}; do
    folder=$1/$2_$(date +%Y%m%d_%H%M%S)
    mkdir "$folder" 2>/dev/null && return
    [[ -e $folder ]] || break
    sleep 0.2
  done
  die "cannot make a folder in $1"
}

# as_words WORD...: the words as one line that a shell reads back as the same.
as_words() { local line; printf -v line '%q ' "$@"; printf '%s' "${line% }"; }

# attended OUTPUT CELL WAITING WORD...: runs a command and waits for it. Its output goes to the file; if CELL is named,
# zs-runs watch shows it. Sets `code`, its exit code; `child` is its process meanwhile, which leads a separate session.
# With `patience`, ends a command that writes nothing for that number of seconds.
attended() {
  local follower=''
  setsid "${@:4}" </dev/null >"$1" 2>&1 &
  child=$!
  if [[ -t 2 && -n $2 ]]; then
    zs-runs watch "$child" "$1" "$2" "$3" &
    follower=$!
  fi
  if ((${patience:-0})); then
    end_silent "$child" "$1" &
    guard=$!
  fi
  wait "$child" && code=0 || code=$?
  child=
  end_guard
  [[ -z $follower ]] || wait "$follower" || true
  rank_code "$1"
}

# end_silent LEADER OUTPUT: waits until the output has not grown for `patience` seconds, then ends that session, and says so.
end_silent() {
  local never second pause=$(((patience + 9) / 10))
  exec {never}<> <(:)
  until (($(date +%s) - $(stat -c %Y "$2") >= patience)); do
    for ((second = 0; second < pause; ++second)); do
      read -r -t 1 -u "$never" || true
      [[ -e /proc/$1 ]] || return 0
    done
  done
  trap '' TERM # what we end is ended to its last process
  local why="no line for $patience s: ended (--patience)"
  say "$2: $why. Its last line: $(tail -n 1 "$2" | cut -c -200)"
  kill -TERM -- "-$1" 2>/dev/null || true
  read -r -t 10 -u "$never" || true
  kill -KILL -- "-$1" 2>/dev/null || true
  printf '\n%s\n' "$why" >>"$2" # the reason of the failure, for the report
}

# end_guard: ends the end_silent() that attended() started, which else sleeps on after us.
end_guard() {
  [[ -n ${guard-} ]] || return 0
  kill "$guard" 2>/dev/null || true
  wait "$guard" 2>/dev/null || true
  guard=
}

# rank_code OUTPUT: when srun has to kill the other ranks after one fails, it ends with 143. This puts the failed rank's
# code, which srun prints, into `code`.
rank_code() {
  local own
  own=$(sed -n 's/^srun: error: .* Exited with exit code \([0-9]*\)$/\1/p' "$1" | head -n 1)
  if ((code > 128 && ${own:-0} > 0)); then code=$own; fi
}

# end_attended: ends what attended() runs, if anything, with all that it started: asks, and after 10 s insists.
end_attended() {
  local leader=${child-} deadline
  end_guard
  [[ -n $leader ]] || return 0
  child=
  kill -TERM -- "-$leader" 2>/dev/null || kill -TERM "$leader" 2>/dev/null || true
  deadline=$((SECONDS + 10)) # by the clock: on a busy node Slurm's KillWait would end us before we clean up
  while ((SECONDS < deadline)) && [[ $(ps -o stat= -p "$leader") == [!Z]* ]]; do sleep 0.1; done
  kill -KILL -- "-$leader" 2>/dev/null || true
  wait "$leader" 2>/dev/null || true
}
