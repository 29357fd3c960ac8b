# SPDX-License-Identifier: Apache-2.0
# lib/engine/comm between processes: the cases that also run on threads, and ranks that die, hang, throw or start wrongly.
setup() {
  load helper
  ranks=$BUILD/mpi/ranks
  command -v mpirun >/dev/null || no_package openmpi-bin
}

# launch COUNT ARGUMENT...: ranks on this host, more than it has cores if need be.
launch() { timeout -k 5 "$HANG" mpirun -np "$1" --oversubscribe "${@:2}"; }

# As between hosts: no shared memory, and MPI's messages through sockets.
between_hosts() { export OMPI_MCA_osc_sm_backing_directory=/nonexistent OMPI_MCA_btl=tcp,self; }

holds() {  # holds COUNT: every case holds on COUNT processes
  run -0 --separate-stderr launch "$1" "$ranks" cases
  [ "$output" = "$1 ranks: every case holds" ]
}

@test "comm: every case holds on 2, 3 and 8 processes of a host" {  # on 4 and 5 threads: lib/engine/comm/group_test.cpp
  for count in 2 3 8; do holds "$count"; done
}

@test "comm: every case holds on 2 and 3 processes that only have messages" {
  between_hosts
  for count in 2 3; do holds "$count"; done
}

@test "comm: every case holds where /dev/shm has too little room, with ordinary memory" {
  ((EUID == 0)) && unshare -m true || skip "needs to be root, to mount a small /dev/shm"
  export -f launch
  run -0 --separate-stderr unshare -m bash -c '
    mount -t tmpfs -o size=40m tmpfs /dev/shm
    launch 3 "$0" cases' "$ranks"
  [ "$output" = "3 ranks: every case holds" ]
}

@test "comm: without a launcher there is one rank" {
  run -0 "$ranks" cases
  [ "$output" = "1 ranks: every case holds" ]
}

@test "comm: the shell of a batch script with 4 tasks is one rank" {
  run -0 env SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_PROCID=0 "$ranks" cases
  [ "$output" = "1 ranks: every case holds" ]
}

@test "comm: N tasks that are each rank 0 of 1 are refused, and do not wait for each other" {
  local task
  for task in "OMPI_COMM_WORLD_SIZE=4" "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4"; do
    # shellcheck disable=SC2086
    run -2 env $task timeout "$HANG" "$ranks" cases
    [[ $output == *"started 4 tasks, but MPI sees one: each would be rank 0 of 1"* ]]
  done
}

named() {  # named RANK: the others stopped, with status 2 or as what the launcher makes of it, and named it
  echo "$output"
  [[ $output == *"reduce-scatter of h.2: nothing came for 3 s from rank $1 on "* ]]
  [[ $output != *"from rank $((3 - $1))"* ]]
}

@test "comm: a rank that is killed is named with the collective, where the launcher does not end the job" {
  run launch 3 --enable-recovery "$ranks" die 1
  named 1
}

@test "comm: a rank that hangs is named with the collective, and the job ends with status 2" {
  run -2 launch 3 "$ranks" stop 2
  named 2
}

@test "comm: a rank that hangs is named where there are only messages" {
  between_hosts
  run -2 launch 3 "$ranks" stop 1
  named 1
}

@test "comm: a rank that throws ends the job with its own words and status 2" {
  run -2 launch 3 "$ranks" throw 0
  [[ $output == *"ranks: this rank has had enough"* ]]
  [[ $output != *"nothing came"* ]]
}

@test "comm: nothing stays in /dev/shm, nor any process" {
  local folder how left
  folder=$(mktemp -d -p /dev/shm)
  export OMPI_MCA_osc_sm_backing_directory=$folder OMPI_MCA_btl_vader_backing_directory=$folder
  for how in stop throw; do run -2 launch 3 "$ranks" "$how" 1; done
  left=$(ls "$folder")
  rm -r "$folder"
  [ -z "$left" ]
  run -1 pgrep -f "^$ranks "
}
