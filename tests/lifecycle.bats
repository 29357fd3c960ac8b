# SPDX-License-Identifier: Apache-2.0
# The end of a training: by a signal, by a loss that is not finite, when the reader of its output ends, next to another one.
setup() {
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  SMALL=(--model_name tiny --num_layers 1 --seq_length 32)
}

# begin WORD...: a training in the background, in `trainer`, once it has logged step 2 to log.
begin() {
  : >log  # one of an earlier training would be taken for this one's
  env -u ZS_WARM_ENGINE --default-signal=INT,TERM "$@" >log 2>err 3>&- &
  trainer=$!
  await grep -q 'Step 2,' log || { cat log err; false; }
}

# ends STATUS: it ends with it.
ends() {
  local status=0
  wait "$trainer" || status=$?
  ((status == $1)) || { echo "status $status"; cat err; false; }
}

@test "lifecycle: SIGINT and SIGTERM save, and say how to go on; it goes on to the bits of the undisturbed run" {
  for signal in INT TERM USR1; do
    rm -rf reg
    begin zs-train "${SMALL[@]}" --max_steps 1000000 --log_interval 1 --output_dir reg
    kill -$signal $trainer
    ends 75
    id=$(basename reg/2*)
    [[ $(<err) =~ ^"zs-train: stopped after step "([0-9]+)", saved; resume: zs-train --resume $id --registry reg"$ ]] || complain "$signal: $(<err)"
    step=${BASH_REMATCH[1]}
    (cd "reg/$id/checkpoint_$step" && sha256sum --quiet -c SHA256SUMS) || complain "$signal: no checkpoint of step $step"
    words=$(sed 's/.*resume: //' err)
    # shellcheck disable=SC2086
    $words --max_steps $((step + 3)) >again
    zs-train "${SMALL[@]}" --max_steps $((step + 3)) --output_dir whole >whole.log
    [[ $(tail -n 1 again) == "$(tail -n 1 whole.log)" ]] || complain "$signal: other bits"
  done
  verdict
}

@test "lifecycle: a second SIGTERM or SIGINT ends it at once; a second SIGUSR1 does not" {
  # Steps of a second or so: the second signal comes before the first is heeded.
  big=(--model_name tiny --num_layers 8 --seq_length 256 --batch_size 16 --max_steps 1000000 --log_interval 1)
  for signals in "TERM TERM 143" "INT TERM 143" "TERM INT 130" "USR1 USR1 75"; do
    read -r one two status <<<"$signals"
    rm -rf reg
    begin zs-train "${big[@]}" --output_dir reg
    kill -"$one" $trainer
    await grep -q '^ShdPnd:[[:space:]]*0*$' /proc/$trainer/status  # it has the first
    kill -"$two" $trainer
    ends "$status" || complain "$signals"
  done
  verdict
}

@test "lifecycle: before the first step a signal ends it promptly, and nothing is left" {
  mkfifo never
  for signal in TERM INT USR1; do
    env -u ZS_WARM_ENGINE --default-signal=INT,TERM,USR1 zs-train "${SMALL[@]}" --dataset never --output_dir reg 2>err &
    trainer=$!
    sleep 1.5
    kill -$signal $trainer
    await none_runs $trainer || { kill -9 $trainer; complain "$signal: it is still there"; }
    wait $trainer || true
  done
  [ ! -e reg ] || complain "it left a registry"
  verdict
}

@test "lifecycle: a loss that is not finite ends the training with status 1, its step and its last good checkpoint" {
  run -1 --separate-stderr zs-train "${SMALL[@]}" --learning_rate 1e9 --max_steps 50 --save_steps 1 --keep_last 1 --output_dir reg
  [[ $stderr =~ ^"zs-train: reg/"[^:]+": the loss is "(-?nan|inf)" at step "([0-9]+)": the training has diverged and ends here"$ ]] || complain "$stderr"
  step=${BASH_REMATCH[2]}
  ((step < 50)) || complain "it went on to step $step"
  [[ $(ls -d reg/2*/checkpoint_*) == reg/2*/checkpoint_$((step - 1)) ]] || complain "$(ls reg/2*)"
  run zs-runs -r reg --status --show state basis
  [[ $output == *DIVERGED*"the loss is "*" at step $step"* ]] || complain "$output"
  run -1 bash -c 'zs-parse reg/*/run.log | zs-aggregate --format tsv'
  [[ $output == *DIVERGED* ]] || complain "$output"
  verdict
}

@test "lifecycle: parameters that the last step made infinite are no result either" {
  run -1 --separate-stderr zs-train "${SMALL[@]}" --learning_rate 3e38 --set training.weight_decay=2 --max_steps 1 --save_steps 1 --output_dir reg
  [[ $stderr == *": a parameter is not finite after step 1: the training has diverged and ends here" ]]
  run ! compgen -G 'reg/2*/final_checkpoint'
}

@test "lifecycle: float16's skipped steps are no divergence" {
  run -0 zs-train "${SMALL[@]}" --dtype float16 --max_steps 20 --output_dir reg
  [[ $output == *skipped:* ]]
}

@test "lifecycle: a training goes on when nobody reads its log; a full disk under the log ends it" {
  zs-train "${SMALL[@]}" --max_steps 40 --log_interval 1 --output_dir reg 2>err | head -n 1 >first
  [[ $(<err) == "zs-train: warning: stdout was closed: the training continues, its log is reg/2"*"/run.log" ]] || complain "$(<err)"
  [[ $(zs-runs -r reg --show status | tail -n 1) == complete* ]] || complain "not complete"
  grep -q 'Step 40,' reg/2*/run.log || complain "no log"
  run -2 bash -c 'zs-train "$@" --output_dir full >/dev/full' - "${SMALL[@]}" --max_steps 40
  [[ $output == "zs-train: stdout: write: No space left on device" ]] || complain "$output"
  verdict
}

@test "lifecycle: a file that may not grow is a failed write, and the record says so" {
  run -2 --separate-stderr bash -c 'ulimit -f 300; zs-train "$@"' - "${SMALL[@]}" --max_steps 20 --save_steps 2 --output_dir reg
  [[ $stderr == "zs-train: reg/"*": write: File too large" ]]
  run zs-runs -r reg --show status error
  [[ $output == *failed*"File too large"* ]]
  [[ -z $(find reg -name '*tmp*') ]]
}

@test "lifecycle: one training at a time holds a run; rm of a run that trains is refused" {
  run=$(jq -nc '$ARGS.positional' --args -- c "${SMALL[@]}" --log_interval 1 --max_steps 1000000 --output_dir reg | zs-runs plan | cut -f2)
  export ZS_RUN=$run
  begin zs-train "${SMALL[@]}" --log_interval 1 --max_steps 1000000 --output_dir reg
  before=$(head -c 2000 log)
  run -2 --separate-stderr zs-train "${SMALL[@]}" --log_interval 1 --max_steps 1000000 --output_dir reg
  [[ $stderr == "zs-train: $run: is being trained by process $trainer on "*" (its process on this host is alive): end that first" ]] || complain "$stderr"
  run -2 --separate-stderr env -u ZS_RUN zs-train --resume "${run##*/}" --registry reg
  [[ $stderr == *"is being trained by process $trainer on "* ]] || complain "$stderr"
  run -2 zs-train "${SMALL[@]}" --log_interval 1 --max_steps 1000000 --output_dir reg --take_over
  [[ $output == *"end that first" ]] || complain "$output"
  run -2 zs-runs -r reg rm --yes "${run##*/}"
  [[ $output == *"is being trained"* || $output == *RUNNING* ]] || complain "$output"
  kill -TERM $trainer
  ends 75
  [[ $(head -c 2000 "$run/run.log") == "$before"* ]] || complain "its log was touched"
  verdict
}

@test "lifecycle: a run that was taken over, or taken away, ends and writes no more" {
  for how in over away; do
    rm -rf reg
    begin zs-train "${SMALL[@]}" --max_steps 1000000 --log_interval 1 --save_steps 50 --output_dir reg
    run=$(echo reg/2*)
    if [[ $how == over ]]; then
      printf '#zs-record 1\nhost\tother-node\nprocess\t7:7\n' >"$run/.owner/9"
      words="was taken over by process 7 on other-node: this training ends here"
    else
      mv "$run" reg/.removed
      words=" "
    fi
    ends 2
    [[ $(<err) == *"$words"* ]] || complain "$how: $(<err)"
    [[ $how == over || ! -e $run ]] || complain "$how: the folder is back"
    [[ $how == away || $(zs-runs -r reg --show status | tail -n 1) == running ]] || complain "$how: it wrote its end into the other's record"
  done
  verdict
}

@test "lifecycle: a run of another host is refused unless told to take it over" {
  zs-train "${SMALL[@]}" --max_steps 2 --save_steps 1 --run_name x --output_dir reg >/dev/null
  run=$(echo reg/2*)
  printf '#zs-record 1\nhost\tother-node\nprocess\t7:7\nsince\t2026-01-01T00:00:00Z\n' >"$run/.owner/9"
  run -2 zs-train --resume x --registry reg --max_steps 3
  [[ $output == "zs-train: $run: is being trained by process 7 on other-node, since 2026-01-01T00:00:00Z (this host cannot check whether it is alive): if it is over, continue with --take_over" ]]
  run -0 zs-train --resume x --registry reg --max_steps 3 --take_over
  run -0 zs-train --resume x --registry reg --max_steps 4
}

@test "lifecycle: a run that is complete is not trained again by ZS_RUN left in the environment" {
  ZS_RUN=$(jq -nc '$ARGS.positional' --args -- c "${SMALL[@]}" --max_steps 3 --output_dir reg | zs-runs plan | cut -f2)
  export ZS_RUN
  zs-train "${SMALL[@]}" --max_steps 3 --output_dir reg >log
  cp "$ZS_RUN/run.log" before
  run -2 zs-train "${SMALL[@]}" --max_steps 3 --output_dir reg
  [[ $output == "zs-train: ZS_RUN: the run in $ZS_RUN has ended (complete): unset ZS_RUN to train another" ]]
  cmp before "$ZS_RUN/run.log"
}

@test "lifecycle: a run that was killed between its final checkpoint and its result has only that to say" {
  words=("${SMALL[@]}" --max_steps 3 --output_dir reg)
  ZS_RUN=$(zs-runs plan -- c "${words[@]}" | cut -f2)
  export ZS_RUN
  zs-train "${words[@]}" >log
  digest=$(zs-runs -r reg --show state_digest | tail -n 1)
  # As the kill leaves it.
  zs-runs -r reg update "${ZS_RUN##*/}" status=running state_digest= final_train_loss=
  sed -i '/^Summary: /d; /^state_digest: /d' "$ZS_RUN/run.log"
  run -0 --separate-stderr zs-train "${words[@]}"
  [[ $stderr != *"none is left"* ]]
  [ "$(zs-runs -r reg --status --show state steps state_digest | tail -n 1)" = $'COMPLETE\t3/3\t'"$digest" ]
  [ "$(grep -c '^state_digest: ' "$ZS_RUN/run.log")" = 1 ]
  [ "$(grep -c ', Step 3, ' "$ZS_RUN/run.log")" = 1 ]
  # One that has said it is done.
  run -2 --separate-stderr env -u ZS_RUN zs-train --resume c --registry reg
  [[ $stderr == *"of 3 none is left"* ]]
}

@test "lifecycle: --resume looks in --registry" {
  for registry in saved_models other; do
    zs-train "${SMALL[@]}" --max_steps 2 --save_steps 1 --run_name same --output_dir $registry >/dev/null
  done
  zs-train --resume same --registry other --max_steps 4 >log
  [[ $(zs-runs -r other --show steps --status | tail -n 1) == 4/4 ]]
  [[ $(zs-runs -r saved_models --show steps --status | tail -n 1) == 2/2 ]]
}
