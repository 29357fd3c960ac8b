# SPDX-License-Identifier: Apache-2.0
# The number of ranks of a job and the settings of each rank: on a throwaway cluster of four nodes with four simulated GPUs
# each.
setup_file() {
  load helper
  load cluster
  cluster_up --nodes 4 --cpus 8 --gpus 4
}

teardown_file() {
  load helper
  "$ROOT/slurm/sandbox/down"
}

setup() {
  load helper
  load cluster
  mkdir "$BATS_TEST_TMPDIR/a folder" && cd "$BATS_TEST_TMPDIR/a folder"
  export GIT_CONFIG_GLOBAL=/dev/null TMPDIR=$BATS_TEST_TMPDIR
}

# a_trainer: a zs-train whose ranks say where they are and which GPUs they see.
a_trainer() {
  mkdir bin
  ln -s "$BUILD"/zs-* bin/
  rm -f bin/zs-train
  printf '%s\n' '#!/bin/bash' '[[ $1 != --version ]] || { echo "zs-train 0"; exit; }' \
    'echo "$SLURMD_NODENAME:${CUDA_VISIBLE_DEVICES-none} of $SLURM_STEP_NUM_TASKS"' >bin/zs-train
  chmod +x bin/zs-train
  export BUILD=$PWD/bin
  echo 'model: {name: tiny}' >t.yaml
}

# ranks JOB: waits for its end; prints each rank's node and GPUs in order, and how many tasks its step had.
ranks() {
  ended "$1"
  grep -oE '^n[0-9]:[0-9a-z,]* of [0-9]+$' out | sort | awk '{ printf "%s ", $1; of[$3] } END { for (n in of) printf "of %s", n }'
}

eight_on_two="n1:0 n1:1 n1:2 n1:3 n2:0 n2:1 n2:2 n2:3 of 8"
eight_on_four="n1:0 n1:1 n2:0 n2:1 n3:0 n3:1 n4:0 n4:1 of 8"

@test "ranks: --gpus_per_node makes a rank for each GPU, on one, two and four nodes" {
  a_trainer
  train() { rm -f out; bash "$ROOT/slurm/train.sbatch" --sbatch --output=out "$@" t.yaml | sed -n 's/^job: //p'; }
  [ "$(ranks "$(train --gpus_per_node 4)")" = "n1:0 n1:1 n1:2 n1:3 of 4" ]
  [ "$(ranks "$(train --gpus_per_node 4 --sbatch --nodes=2)")" = "$eight_on_two" ]
  [ "$(ranks "$(train --gpus_per_node 4 --sbatch -N2)")" = "$eight_on_two" ]
  [ "$(ranks "$(train --gpus_per_node 2 --sbatch --nodes --sbatch 4)")" = "$eight_on_four" ]
  # The number of ranks says how many nodes.
  [ "$(ranks "$(train --gpus_per_node 4 --sbatch --ntasks=8)")" = "$eight_on_two" ]
  # What sbatch has a name for.
  [ "$(ranks "$(train --sbatch --nodes=2 --sbatch --gpus-per-node=4)")" = "$eight_on_two" ]
  [ "$(ranks "$(train --sbatch --gres=gpu:4 --sbatch --nodes=2)")" = "$eight_on_two" ]
  # Without GPUs: two, or what is asked for.
  [ "$(ranks "$(train)")" = "n1:none n1:none of 2" ]
  [ "$(ranks "$(train --sbatch --ntasks=3)")" = "n1:none n1:none n1:none of 3" ]
}

@test "ranks: sbatch's own words make as many ranks as they say" {
  a_trainer
  train() { rm -f out; sbatch --parsable --output=out "$@" "$ROOT/slurm/train.sbatch" t.yaml; }
  [ "$(ranks "$(train --nodes 2 --ntasks-per-node 4 --gpus-per-node 4)")" = "$eight_on_two" ]
  [ "$(ranks "$(train --nodes 4 --ntasks-per-node 2 --gpus-per-node 2)")" = "$eight_on_four" ]
  [ "$(ranks "$(train --gres=gpu:2 --ntasks=2)")" = "n1:0 n1:1 of 2" ]
  [ "$(ranks "$(train --ntasks=3)")" = "n1:none n1:none n1:none of 3" ]
  [ "$(ranks "$(train --nodes=2)")" = "n1:none n2:none of 2" ]
}

@test "ranks: a job with GPUs that would idle refuses, in the job and before it" {
  a_trainer
  job() { rm -f out; ended "$(sbatch --parsable --output=out "$@" "$ROOT/slurm/train.sbatch" t.yaml)"; cat out; [ "$state $code" = "FAILED 2" ]; }
  job --nodes 2 --gpus-per-node 4
  grep -q '^train.sbatch: this job has 8 GPUs and 2 ranks: each GPU needs a separate rank' out
  job --nodes 2 --ntasks 2 --gpus-per-node 4
  grep -q 'this job has 8 GPUs and 2 ranks' out
  job --gpus 6 --ntasks=6
  grep -q 'this job has 6 GPUs, unequally on its nodes' out
  ZS_RANKS=2 job --nodes 1 --ntasks-per-node=4 --gpus-per-node 4
  grep -q 'this job has 4 GPUs and 2 ranks.* without ZS_RANKS' out
  planned=$(zs-runs --show run_id --format tsv)
  refused() {
    run -2 --separate-stderr bash "$ROOT/slurm/train.sbatch" --submit "${@:2}" t.yaml
    [[ $stderr == *"$1"* ]] || complain "${*:2}: $stderr"
  }
  refused '8 GPUs on 2 nodes and 2 ranks' --gpus_per_node 4 --sbatch --nodes=2 --sbatch --ntasks=2
  refused '8 GPUs on 2 nodes and 4 ranks' --sbatch --gpus-per-node=4 --sbatch --nodes=2 --sbatch -n4
  refused '--ntasks-per-node=1: each GPU needs a separate rank' --gpus_per_node 4 --sbatch --ntasks-per-node=1
  refused 'disagree' --gpus_per_node 4 --sbatch --gpus-per-node=2
  refused 'say how many nodes' --gpus_per_node 4 --sbatch --nodes=2-4
  [ -z "$(squeue -h)" ]
  [ "$(zs-runs --show run_id --format tsv)" = "$planned" ]
  verdict
}

@test "ranks: the elements of an array have them too, and those of another size when it is run again" {
  fake_trainer
  bash "$ROOT/slurm/batch.sbatch" --gpus_per_node 2 --sbatch --nodes=4 minimal_test >out
  results=$(told results)
  ended "$(told report)"
  [ "$(jq -r '[.conditions[].launch] | unique[]' "$results/metadata.json")" = "srun --mpi=pmix --ntasks=8 --kill-on-bad-exit=1 --cpus-per-task=1 --ntasks-per-node=2 --gpus-per-task=1 --gpu-bind=single:1" ]
  [ "$(jq -r .ranks "$results/metadata.json")" = 8 ]
  bash "$ROOT/slurm/batch.sbatch" --rerun "$results" --submit --sbatch --nodes=2 >out
  ended "$(told report)"
  [[ $(jq -r .conditions.z3_deepcompile.launch "$results/metadata.json") == *" --ntasks=4 "*" --ntasks-per-node=2 "* ]]
}

# a_repository [WORD...]: one whose training is the script of tests/data, with these words; sets `compare`.
a_repository() {
  git init -q repo
  cp "$ROOT/tests/data/$1" repo/train.py
  git -C repo add .
  git -C repo -c user.name=a -c user.email=a@b commit -qm one
  compare=(--repo repo --revision1 HEAD --revision2 HEAD --warmup 0 --runs_per_revision 2 --run "\$ZS_LAUNCH ${PYTHON:-python3} train.py ${*:2}" --output_dir result)
}

@test "ranks: under srun a PyTorch training as it is finds its ranks, of uneven nodes too" {
  a_repository rendezvous.py
  ended "$(sbatch --parsable --output=out --nodes=2 --ntasks-per-node=2 "$ROOT/slurm/compare-revisions.sbatch" "${compare[@]}")"
  cat out
  [ "$state $code" = "COMPLETED 0" ]
  grep -qx 'ranks: 0/4 0/2, 1/4 1/2, 2/4 0/2, 3/4 1/2' result/logs_HEAD.1_run1/run.log
  rm -r result out
  ended "$(sbatch --parsable --output=out --nodes=2 --ntasks=9 "$ROOT/slurm/compare-revisions.sbatch" "${compare[@]}")"
  cat out
  [ "$state $code" = "COMPLETED 0" ]
  grep -qx 'ranks: 0/9 0/8, 1/9 1/8, 2/9 2/8, 3/9 3/8, 4/9 4/8, 5/9 5/8, 6/9 6/8, 7/9 7/8, 8/9 0/1' result/logs_HEAD.2_run1/run.log
}

@test "ranks: with GPUs each rank of a PyTorch training sees all of its node, and takes that of its LOCAL_RANK" {
  a_repository rendezvous.py
  sed -i '1a import os; print("sees", os.environ["LOCAL_RANK"], os.environ["CUDA_VISIBLE_DEVICES"])' repo/train.py
  git -C repo -c user.name=a -c user.email=a@b commit -qam two
  ended "$(sbatch --parsable --output=out --nodes=2 --ntasks-per-node=2 --gpus-per-node=2 "$ROOT/slurm/compare-revisions.sbatch" "${compare[@]}")"
  cat out
  [ "$state $code" = "COMPLETED 0" ]
  [ "$(grep -h ^sees result/logs_HEAD.1_run1/run.log | sort | xargs)" = "sees 0 0,1 sees 0 0,1 sees 1 0,1 sees 1 0,1" ]
}

@test "ranks: under srun the exception of the rank that failed is what is shown" {
  a_repository rendezvous.py fail 1
  ended "$(sbatch --parsable --output=out --nodes=2 --ntasks=4 "$ROOT/slurm/compare-revisions.sbatch" "${compare[@]}")"
  cat out
  [ "$state" = FAILED ]
  grep -qx '    ValueError: the data of rank 1 is not there (.*/train.py:18)' out
  [ "$(grep -cE '^    (srun|slurmstepd)' out)" = 0 ]
}

@test "ranks: torch.distributed with gloo trains as it is, under mpirun and under srun" {
  python_with torch.distributed python3-torch
  a_repository gloo.py
  ended "$(sbatch --parsable --output=out --nodes=2 --ntasks=4 "$ROOT/slurm/compare-revisions.sbatch" "${compare[@]}")"
  cat out
  [ "$state $code" = "COMPLETED 0" ]
  mv result by_srun
  env -u SLURM_CONF bash "$ROOT/slurm/compare-revisions.sbatch" "${compare[@]}"
  grep -q 'Step 3, Loss: ' result/logs_HEAD.1_run1/run.log
}

@test "ranks: the commands of zs-cluster(7) run as they stand there, on fewer nodes of fewer GPUs" {
  a_trainer
  echo "$(cat t.yaml)" >config.yaml
  printf '%s\n' '#!/bin/bash' '[[ "$1 $2 $3" == "exec --nv zs.sif" ]] || exit 9' 'echo "in the image"' "exec '$BUILD/zs-train' \"\${@:5}\"" >bin/apptainer
  chmod +x bin/apptainer
  PATH=$BUILD:$PATH
  mapfile -t commands < <(sed '/^.Sh EXAMPLES/,$d' "$ROOT/man/zs-cluster.7" | sed -n 's/^\$ //p' | sed 's/\\e/\\/g; s/\\-/-/g')
  [ "${#commands[@]}" = 8 ]
  ln -s "$ROOT/slurm" slurm
  for command in "${commands[@]}"; do
    command=$(sed 's/nodes=64/nodes=2/g; s/gpus_per_node 8/gpus_per_node 4/g; s/per-node=8/per-node=4/g; s/cpus-per-task=12/cpus-per-task=2/g' <<<"$command")
    echo "\$ $command"
    eval "$command" >said 2>&1 || { cat said; false; }
    cat said
    job=$(sed -nE 's/^(job|report): (job )?([0-9]+).*/\3/p; s/^Submitted batch job //p' said | tail -n 1)
    [ -z "$job" ] || ended "$job"
    if [[ $command == *train.sbatch* ]]; then [ "$state $code" = "COMPLETED 0" ]; [ "$(grep -c ' of 8$' "zs-train-$job.out")" = 8 ]; fi
  done
  [ "$(grep -c 'in the image' "zs-train-$job.out")" = 8 ]
}
