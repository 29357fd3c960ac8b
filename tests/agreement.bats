# SPDX-License-Identifier: Apache-2.0
# Ranks that were started with different settings: no rank trains a step. The error names the setting, both values, the rank
# and the host.
setup() {
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  command -v mpirun >/dev/null || no_package openmpi-bin
  SMALL=(--model_name tiny --num_layers 1 --seq_length 32 --log_interval 1 --max_steps 3 --output_dir out)
  mpi=(timeout "$HANG" mpirun --oversubscribe --bind-to none)
}

# differ NAME FIRST SECOND [OPTION...]: a rank with the words FIRST and one with SECOND end with status 2 and name NAME once.
differ() {
  local name=$1 first=$2 second=$3
  shift 3
  # shellcheck disable=SC2086
  run -2 --separate-stderr "${mpi[@]}" -n 1 env A=1 $first "${SMALL[@]}" "$@" : -n 1 env A=1 $second "${SMALL[@]}" "$@"
  [[ -z $output && ! -e out ]] || complain "$name: it trained"
  [[ $stderr == *"the ranks differ in $name: it is "*" for rank 0 on "*", "*" for rank 1 on "* ]] || complain "$name: $stderr"
  (($(grep -c '^zs-' <<<"$stderr") == 1)) || complain "$name: not said once"
}

@test "agreement: options, sections of the configuration and the environment that differ between ranks" {
  differ training.learning_rate "zs-train --learning_rate 0.1" "zs-train --learning_rate 0.2"
  differ training.seed "zs-train --seed 1" "zs-train --seed 2"
  differ training.batch_size "zs-train --batch_size 1" "zs-train --batch_size 2"
  differ training.weight_decay "zs-train" "zs-train --weight_decay 0.5"
  differ training.epsilon "zs-train --set training.epsilon=1e-6" "zs-train"
  differ model.dropout "zs-train --dropout 0.1" "zs-train"
  differ zero.compile "zs-train --compile" "zs-train"
  differ initialization.init_std "zs-train" "zs-train --set initialization.init_std=0.01"
  differ --debug_log "zs-train --debug_log" "zs-train"
  differ "the number of threads (OMP_NUM_THREADS)" "zs-train" "OMP_NUM_THREADS=2 zs-train"
  differ "the instruction set" "zs-train" "ATEN_CPU_CAPABILITY=default zs-train"
  verdict
}

@test "agreement: a key that no option stands for, and one that only one rank has" {
  differ notes.colour "zs-train --set notes.colour=red" "zs-train --set notes.colour=blue"
  differ notes.colour "zs-train" "zs-train --set notes.colour=blue"
  verdict
}

@test "agreement: another build of zs" {
  version=$(zs-train --version) version=${version#* } version=${version%% *}
  ((${#version} >= 4))
  mkdir other
  for program in zs-train engine; do # the former says the version, the latter records it
    LC_ALL=C sed "s/$version/${version/[0-9a-f]/%}/g" "$BUILD/$program" >"other/$program"
  done
  chmod +x other/*
  [[ $(other/zs-train --version) != "$(zs-train --version)" ]]
  differ "the version of zs" "zs-train" "other/zs-train"
  verdict
}

@test "agreement: the data set of a node that is another under the same name, and one that is not there" {
  mkdir a b c
  head -c 4000 /usr/share/common-licenses/Apache-2.0 >a/t.txt
  head -c 4000 /usr/share/common-licenses/GPL-3 >b/t.txt
  for other in b c; do
    run -2 --separate-stderr "${mpi[@]}" -n 1 --wdir "$PWD/a" zs-train "${SMALL[@]}" --dataset t.txt : \
      -n 1 --wdir "$PWD/$other" zs-train "${SMALL[@]}" --dataset t.txt
    [[ -z $output && ! -e a/out ]] || complain "$other: it trained"
    if [[ $other == b ]]; then words="the ranks differ in the checksum of the data set: it is "
    else words="t.txt: No such file or directory"; fi
    [[ $stderr == *"zs-train: "*"$words"* ]] || complain "$other: $stderr"
  done
  [[ $stderr == *"rank 1 on "* ]] || complain "$stderr"
  # The same data under two names is the same.
  cp a/t.txt a/other.txt
  "${mpi[@]}" -n 1 --wdir "$PWD/a" zs-train "${SMALL[@]}" --dataset t.txt : \
    -n 1 --wdir "$PWD/a" zs-train "${SMALL[@]}" --dataset other.txt >log || complain "two names: $?"
  grep -q ^state_digest: log || complain "two names: no digest"
  verdict
}

@test "agreement: a checkpoint, or weights, of other content under the same name" {
  mkdir -p a b
  for seed in 1 2; do
    folder=$( ((seed == 1)) && echo a || echo b)
    (cd $folder && zs-train "${SMALL[@]}" --gradient_accumulation_steps 2 --seed 5 --learning_rate 0.$seed --save_steps 1 --max_steps 1 >log &&
      mv out/*/final_checkpoint saved && rm -r out && mkdir weights && cp saved/{pytorch_model.bin,config.json} weights)
  done
  for what in saved weights; do
    run -2 --separate-stderr "${mpi[@]}" -n 1 --wdir "$PWD/a" zs-train "${SMALL[@]}" --seed 5 --checkpoint $what : \
      -n 1 --wdir "$PWD/b" zs-train "${SMALL[@]}" --seed 5 --checkpoint $what
    [[ -z $output && ! -e a/out ]] || complain "$what: it trained"
    [[ $stderr == *"$what: the ranks differ in "* ]] || complain "$what: $stderr"
  done
  verdict
}

@test "agreement: a run that only one rank was told to go on with" {
  run=$(echo '["c","--model_name","tiny","--num_layers","1","--seq_length","32","--log_interval","1","--max_steps","3","--output_dir","out"]' |
    zs-runs plan | cut -f2)
  run -2 --separate-stderr "${mpi[@]}" -n 1 env ZS_RUN="$run" zs-train "${SMALL[@]}" : -n 1 zs-train "${SMALL[@]}"
  [[ -z $output && $stderr == *"the ranks differ in the run to go on with: it is ${run##*/} for rank 0 on "*"none for rank 1"* ]]
}

@test "agreement: zs-verify asks for the same" {
  run -2 --separate-stderr "${mpi[@]}" -n 1 zs-verify --iterations 2 --seed 1 : -n 1 zs-verify --iterations 2 --seed 2
  [[ -z $output && $stderr == *"the ranks differ in training.seed: it is 1 for rank 0 on "* ]]
}

# torch RANKS COMMAND...: as torchrun starts so many ranks of it; the log of rank R is R.log. Its status is rank 0's.
torch() {
  local ranks=$1 rank first
  local -x WORLD_SIZE=$1 MASTER_ADDR=localhost MASTER_PORT=$((20000 + RANDOM % 12000))
  shift
  for ((rank = 0; rank < ranks; ++rank)); do
    RANK=$rank LOCAL_RANK=$rank timeout "$HANG" "$@" >$rank.log 2>&1 &
    ((rank)) || first=$!
  done
  wait "$first"
}

@test "agreement: ranks of torchrun meet at its store, and train what mpirun's ranks train" {
  options=(--zero_stage 3 --deepcompile)
  "${mpi[@]}" -n 2 zs-train "${SMALL[@]}" "${options[@]}" >log
  expected=$(grep ^state_digest: log)
  torch 2 zs-train "${SMALL[@]}" "${options[@]}"
  [[ -n $expected && $(grep ^state_digest: 0.log) == "$expected" ]] || complain "$(tail -n 3 0.log 1.log)"
  [ ! -s 1.log ] || complain "rank 1 speaks: $(cat 1.log)"
  torch 4 zs-verify --num_layers 1 --seq_length 16 --iterations 2 --zero_stage 2
  grep -qx 'verdict: exact' 0.log || complain "$(tail -n 3 0.log)"
  run -0 env RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=29500 zs-train "${SMALL[@]}"
  verdict
}

@test "agreement: ranks of torchrun that differ, do not come or have no address are told" {
  torch 2 sh -c 'exec zs-train --model_name tiny --num_layers 1 --max_steps 1 --output_dir out --seed $RANK' || true
  grep -q 'the ranks differ in training.seed: it is 0 for rank 0' 0.log || complain "$(cat 0.log)"
  [[ ! -e out ]] || complain "it trained"
  alone=(env RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost)
  run -2 "${alone[@]}" MASTER_PORT=1 zs-train "${SMALL[@]}" --timeout 1
  [[ $output == "zs-train: the ranks do not meet at localhost:1 "* ]] || complain "$output"
  run -2 "${alone[@]}" zs-train "${SMALL[@]}" --timeout 1
  [[ $output == "zs-train: MASTER_PORT is not set"* ]] || complain "$output"
  verdict
}
