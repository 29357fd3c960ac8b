# SPDX-License-Identifier: Apache-2.0
# zs-parse beyond tests/cases/zs-parse: real logs, logs that grow, long lines, memory, forms.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
  DATA=$ROOT/../shared/data/reference_batch
}

# A metric line of the reference format.
line() { echo "Epoch 1, Step $1, Loss: $2 sync: True time: 0.5 alloc_mem: 28307113472 peak_mem: 50064946688"; }

# lines COUNT: that many of them, of steps 1, 2, ...
lines() { awk -v count="$1" 'BEGIN { for (i = 1; i <= count; i++) print "Epoch 1, Step " i ", Loss: 2." i " sync: True time: 0.5 alloc_mem: 28307113472 peak_mem: 50064946688" }'; }

# Rows of records, without comments and header.
rows() { grep -av -e '^#' -e $'^run\tstep\t'; }

# column NAME: that column of records on stdin.
column() { awk -F'\t' -v name="$1" '/^#/ { next } $2 == "step" { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } { print $at }'; }

@test "zs-parse: the real logs of eight ranks give every metric line, to the last digit" {
  [ -d "$DATA" ] || skip "no ../shared/data"
  for log in z1_baseline z3_deepcompile; do
    zs-parse --stats "$DATA/$log.log" >out.tsv 2>stats
    [ "$(rows <out.tsv | wc -l)" = 10 ]
    for pair in step:Step,\  loss:Loss:\  iteration_time:\ time:\  alloc_mem:alloc_mem:\  peak_mem:peak_mem:\ ; do
      key=${pair#*:}
      diff <(grep -a '^Epoch ' "$DATA/$log.log" | sed -E "s/.*${key%, }[ ]?([0-9.]+).*/\1/") <(column "${pair%%:*}" <out.tsv)
    done
    read=$(awk '/lines read/ { print $NF }' stats)
    [ "$read" = "$(wc -l <"$DATA/$log.log")" ]
    [ "$read" = "$(awk '/lines (matched|faulty|other)/ { sum += $NF } END { print sum }' stats)" ]
    grep -q "^#@ $log source_sha256=$(sha256sum <"$DATA/$log.log" | cut -d' ' -f1)$" out.tsv
    while IFS=$'\t' read -r loss number; do
      [[ "$(sed -n "${number}p" "$DATA/$log.log")" == *"Loss: $loss sync"* ]]
    done < <(paste <(column loss <out.tsv) <(column line <out.tsv))
  done
  grep -q '^#@ z3_deepcompile deepcompile=true$' out.tsv
  grep -q '^#@ z3_deepcompile zero_stage=3$' out.tsv
  grep -q '^#@ z3_deepcompile world_size=8$' out.tsv
  grep -q '^#@ z3_deepcompile wandb_run=rbjz5u9t$' out.tsv
}

@test "zs-parse: a results directory gives a run per condition, in order, a missing log being a fault" {
  [ -d "$DATA" ] || skip "no ../shared/data"
  run -1 --separate-stderr zs-parse "$DATA"
  [ "$(grep -c 'exit_code=0$' <<<"$output")" = 6 ]
  [ "$(sed -nE 's/^#@ (\S+) exit_code=.*/\1/p' <<<"$output" | xargs)" = "z1_baseline z2_baseline z3_baseline z1_deepcompile z2_deepcompile z3_deepcompile" ]
  [ "$(grep -c 'is missing$' <<<"$stderr")" = 4 ]
}

@test "zs-parse: a metadata.json that says args and status: options, and how each ended" {
  mkdir results
  for name in a b c d; do line 10 2.5 >results/$name.log; done
  cat >results/metadata.json <<'END'
{"conditions": {"a": {"args": "--zero_stage 1", "status": "0"}, "b": {"args": ["--zero_stage", 2, "--note", "two words"], "status": "3"},
  "c": {"status": "FAILED"}, "d": {"status": "unknown"}}}
END
  run -0 zs-parse results
  [ "$(sed -nE 's/^#@ (. (exit_code|zero_stage|note)=.*)/\1/p' <<<"$output" | sort | xargs -d '\n' printf '%s;')" = \
    "a exit_code=0;a zero_stage=1;b exit_code=3;b note=two words;b zero_stage=2;c exit_code=1;" ] || complain "$(grep '#@' <<<"$output")"
  run -1 --separate-stderr zs-aggregate <(zs-parse results)
  [[ $stderr == *"'b' is FAILED: exit code 3"*"'c' is FAILED: exit code 1"* ]] || complain "$stderr"
  verdict
}

@test "zs-parse: the three forms hold the same" {
  { line 10 2.5; line 20 nan; line 30 1e-05; line 40 -inf; } >run.log
  zs-parse run.log >a.tsv
  zs-parse --format h5 -o a.h5 run.log
  zs-parse --format jsonl run.log >a.jsonl
  for form in tsv h5; do run -1 zs-aggregate a.$form -o from-$form.h5; done # a nan: DIVERGED
  cmp from-tsv.h5 from-h5.h5
  [ "$(jq -c .loss a.jsonl | xargs)" = "2.5 nan 1e-05 -inf" ]
}

@test "zs-parse: gzip, stdin and rotated logs" {
  line 10 3.5 >run.log.2
  gzip run.log.2
  line 20 2.5 >run.log.1
  line 30 1.5 >run.log
  run -0 zs-parse run.log run.log.2.gz run.log.1
  zstd -q run.log.1
  [ "$(zs-parse run.log run.log.2.gz run.log.1.zst | rows)" = "$(rows <<<"$output")" ]
  [ "$(column step <<<"$output" | xargs)" = "10 20 30" ]
  [ "$(column part <<<"$output" | xargs)" = "2 3" ]
  run -0 zs-parse - <run.log.2.gz
  [ "$(column loss <<<"$output")" = 3.5 ]
  cat run.log.2.gz <(gzip -c run.log) >both.log.gz
  run -0 zs-parse both.log.gz
  [ "$(column loss <<<"$output" | xargs)" = "3.5 1.5" ]
  head -c 40 run.log.2.gz >cut.gz
  run -2 --separate-stderr zs-parse cut.gz
  [ "$stderr" = "zs-parse: cut.gz: truncated gzip data" ]
  [ -z "$output" ]
}

@test "zs-parse: a growing log is followed, through a rotation, until interrupted" {
  line 10 3.5 >run.log
  zs-parse --follow run.log >out.tsv 3>&- &
  parser=$!
  touch out.tsv
  steps_are() { [ "$(column step <out.tsv | xargs)" = "$1" ]; }
  await steps_are "10"
  line 20 2.5 | head -c 30 >>run.log
  sleep 0.3
  line 20 2.5 | tail -c +31 >>run.log
  await steps_are "10 20"
  mv run.log run.log.1
  line 30 1.5 >run.log
  await steps_are "10 20 30"
  kill -INT $parser
  wait $parser
  grep -q '^#@ run source_sha256=' out.tsv
  [ "$(column part <out.tsv | tail -n 1)" = 2 ]
}

@test "zs-parse: a line of 10 MB and one of 40 MB do no harm" {
  { line 10 2.5; head -c 10000000 /dev/zero | tr '\0' 'x'; line 20 2.25; line 30 2.0; } >run.log
  run -0 zs-parse run.log
  [ "$(column step <<<"$output" | xargs)" = "10 20 30" ]
  [ "$(column line <<<"$output" | xargs)" = "1 2 3" ]
  { line 10 2.5; head -c 40000000 /dev/zero | tr '\0' 'x'; echo; line 20 2.25; } >long.log
  run -1 --separate-stderr zs-parse long.log
  [ "$(column step <<<"$output" | xargs)" = "10 20" ]
  [ "$(sort -u <<<"$stderr")" = "zs-parse: long.log:2: a line of more than 16 MB: read in pieces" ]
}

@test "zs-parse: it skips binary garbage and reads on" {
  { line 10 2.5; head -c 300000 /dev/urandom; echo; line 20 2.25; } >run.log
  run zs-parse run.log
  ((status < 2))
  [ "$(column step <<<"$output" | head -n 1)" = 10 ]
  [ "$(column step <<<"$output" | tail -n 1)" = 20 ]
}

@test "zs-parse: memory does not grow with the log" {
  lines 400000 >many.log
  peak() { command time -f %M "$@" 2>&1 >/dev/null | tail -n 1; }
  [ -x "$(type -P time)" ] || no_package time
  (($(peak zs-parse many.log) < 64000))
  [ "$(zs-parse many.log | rows | wc -l)" = 400000 ]
}

@test "zs-parse: a log of all metric lines gives each of them its own line number" {
  lines 3000 | sed '0~7a something else' >run.log
  zs-parse run.log >out.tsv
  diff <(grep -n '^Epoch' run.log | sed -E 's/^([0-9]+):.*Step ([0-9]+), Loss: ([0-9.]+) .*/\1 \2 \3/') \
    <(paste -d' ' <(column line <out.tsv) <(column step <out.tsv) <(column loss <out.tsv))
}

@test "zs-parse: what is left on stdin is read, and is not taken for a file that shrank" {
  { line 10 2.5; line 20 2.25; } >run.log
  run -0 bash -c '{ dd bs=1 count='"$(line 10 2.5 | wc -c)"' of=/dev/null status=none; zs-parse; } <run.log'
  [ "$(column step <<<"$output" | xargs)" = 20 ]
}

@test "zs-parse: a file that shrinks while it is read is a fault" {
  mkfifo gate
  lines 300000 >run.log # more than is read ahead and held back
  zs-parse run.log 2>err >gate &
  parser=$!
  exec 4<gate
  head -c 1000 <&4 >/dev/null # the parser now waits for room in the pipe
  truncate -s 100 run.log
  cat <&4 >rest
  status=0
  wait $parser || status=$?
  exec 4<&-
  [ "$status" = 1 ]
  grep -q 'run.log: the file lost [0-9]* bytes while it was read' err
  [ "$(grep -c . rest)" -gt 10000 ]
}

@test "zs-parse: what cannot be is refused" {
  line 10 2.5 >run.log
  run -2 --separate-stderr zs-parse --follow run.log run.log
  [ "$stderr" = "zs-parse: --follow takes one log (see zs-parse --help)" ]
  run -2 --separate-stderr zs-parse --follow --format h5 run.log
  [ "$stderr" = "zs-parse: --follow writes the text form only (see zs-parse --help)" ]
  run -2 --separate-stderr zs-parse -o no/such/folder/out run.log
  [[ "$stderr" == "zs-parse: no/such/folder/out: "* ]]
  run -2 --separate-stderr zs-parse run.log missing.log
  [ "$stderr" = "zs-parse: missing.log: No such file or directory" ]
  [ -z "$output" ]
}

@test "zs-parse: the man page has an example of each dialect, and each is read" {
  awk '/^\.It Cm / { name = $3 } /^\.Ed/ { take = 0 } take { print > name ".example" } /^\.Bd -literal$/ { take = name != "" } /^\.El/ { name = "" }' \
    "$ROOT/man/zs-parse.prose"
  for dialect in $(zs-parse --completion | sed -nE "s/.*--dialect\).*compgen -W '([^']*)'.*/\1/p"); do
    [ -s "$dialect.example" ] || { complain "man/zs-parse.prose has no example of $dialect"; continue; }
    for force in "" "--dialect=$dialect"; do
      zs-parse --stats $force "$dialect.example" >/dev/null 2>stats || true
      lines=$(wc -l <"$dialect.example")
      [ "$dialect" != csv ] || lines=1 # the header is no record
      grep -qE "lines matched by $dialect +$lines$" stats || complain "$dialect: $(cat stats)"
      ! grep -q malformed stats || complain "$dialect: $(cat stats)"
    done
  done
  [ "$(ls ./*.example | wc -l)" = 18 ] || complain "$(ls ./*.example)"
  verdict
}

@test "a log that says itself that it is complete is COMPLETE, one that ends early is not" {
  status() { zs-parse "$@" | zs-aggregate --format tsv 2>/dev/null | awk -F'\t' 'NR == 2 { print $4 }'; }
  llmc() { for ((step = 1; step <= $1; step++)); do
    echo "step $step/6 | loss 10.5$step (+nanz)| norm 43.5 (+nanz)| lr 1.71e-06 | 2747.1 ms | 4% bf16 MFU | 38 tok/s"; done; }
  trainer() {
    local total=$1 step
    shift
    for step; do
      printf '\r%d/%d [00:05<04:20,  1.88it/s]' "$step" "$total"
      ((step % 10)) || printf "{'loss': 2.%02d, 'grad_norm': 1.5, 'learning_rate': 0.0002, 'epoch': 0.%02d}\n" "$step" "$step"
    done
    echo
  }
  llmc 6 >llmc.log
  llmc 4 >llmc-short.log
  trainer 30 10 20 30 >trainer.log
  trainer 35 10 20 30 35 >trainer-35.log
  trainer 30 10 20 >trainer-short.log
  deepspeed() {
    echo "Namespace(model_name='m', gradient_accumulation_steps=4, bench_step=10, log_interval=2)"
    for step; do echo "Epoch 1, Step $step, Loss: 3.$step sync: True time: 0.4 alloc_mem: 1 peak_mem: 2"; done
  }
  deepspeed 8 16 24 32 40 >deepspeed.log
  deepspeed 8 16 24 32 >deepspeed-short.log
  deepspeed 8 16 32 40 >deepspeed-gap.log
  for log in llmc trainer trainer-35 deepspeed; do [ "$(status $log.log)" = COMPLETE ] || complain "$log: $(status $log.log)"; done
  for log in llmc-short trainer-short deepspeed-short deepspeed-gap; do
    [ "$(status $log.log)" = TRUNCATED ] || complain "$log: $(status $log.log)"
  done
  mkdir batch
  echo '{"conditions": {"a": {"exit_code": 0}}}' >batch/metadata.json
  (echo "Epoch 1, Step 3, Loss: 2.5"; echo "m ds=True np=8 iteration time: 0.5 alloc_mem: 1 peak_mem: 2") >batch/a.log
  [ "$(status batch)" = COMPLETE ] || complain "finished with exit code 0: $(status batch)"
  verdict
}

# results: a results folder batch/ of one condition, whose log has each second step and ends badly, and its run's folder.
results() {
  mkdir -p batch saved/r1
  for step in 1 2 3 4; do echo "Epoch 1, Step $step, Loss: 2.00000000$step sync: True time: 0.5 alloc_mem: 1 peak_mem: 2"; done >all.log
  (echo "run: seed=7"; cat all.log) >r1.log
  zs-parse r1.log --format h5 -o saved/r1/metrics.h5
  (sed -n '2~2s/00000000//p' all.log; echo "Epoch 1, Step torn"; echo "srun: error: node07: task 3: Exited with exit code 9") >batch/a.log
  echo "{\"conditions\": {\"a\": {\"run\": \"$PWD/saved/r1\", \"command\": \"zs-train --zero_stage 3\"}}}" >batch/metadata.json
}

@test "zs-parse: of a results folder, the runs' own metrics count: every step, exact; a log says how its run ended" {
  results
  run -0 --separate-stderr zs-parse batch
  [ "$(grep -c '^a' <<<"$output")" = 4 ]
  [ "$(awk -F'\t' '$1 == "a" { print $4 }' <<<"$output" | xargs)" = "2.000000001 2.000000002 2.000000003 2.000000004" ]
  for fact in seed=7 zero_stage=3 exit_code=9 exit_state=failed "source=$PWD/saved/r1/metrics.h5"; do
    grep -qx "#@ a $fact" <<<"$output" || complain "no $fact"
  done
  [ "$(sed -n 's/^#@ a source_sha256=//p' <<<"$output")" = "$(sha256sum <saved/r1/metrics.h5 | cut -d' ' -f1)" ]
  # The same in one step; and a run's folder alone.
  run -1 --separate-stderr zs-aggregate --format json batch
  [[ $output == *'"points":4'* || $output == *'"points": 4'* ]] || complain "$output"
  [ "$(zs-parse saved/r1 | grep -c '^r1')" = 4 ]
  [ "$(zs-aggregate --format tsv saved/r1 | cut -f1 | xargs)" = "condition r1" ]
  # Without metrics the log is all there is.
  rm saved/r1/metrics.h5
  run -1 --separate-stderr zs-parse batch
  [ "$(grep -c '^a' <<<"$output")" = 2 ]
  [[ $stderr == *"a.log:3: malformed step line"* ]] || complain "$stderr"
  verdict
}

@test "zs-parse: ranks of a results folder are those that its command starts with \$ZS_LAUNCH" {
  mkdir results
  echo 'step 1/1 loss 3.5' >results/a.log
  metadata() { jq -n --arg run "$1" '{ranks: 2, run_command: $run, conditions: {a: {exit_code: 0, launch: "mpirun -n 2"}}}'; }
  metadata 'python3 train.py {options}' >results/metadata.json
  run -0 zs-parse results
  [[ $output != *ranks=* && $output != *launch=* ]] || complain "$output"
  metadata '$ZS_LAUNCH python3 train.py {options}' >results/metadata.json
  run -0 zs-parse results
  [[ $output == *"#@ a launch=mpirun -n 2"*"#@ a ranks=2"* ]] || complain "$output"
  verdict
}

@test "zs-parse: what another user's metadata.json names outside of its folder is not read" {
  ((EUID == 0)) || skip "only root can give a file away"
  results
  chown nobody batch batch/metadata.json
  run -1 --separate-stderr zs-parse batch
  [[ $stderr == *"saved/r1/metrics.h5: is outside of batch, whose metadata.json another user wrote"* ]] || complain "$stderr"
  [ "$(grep -c '^a' <<<"$output")" = 2 ] || complain "$output"
  mv batch/a.log secret.log
  for log in ../secret.log "$PWD/secret.log" link.log; do
    ln -sf "$PWD/secret.log" batch/link.log
    echo "{\"conditions\": {\"a\": {\"log\": \"$log\"}}}" >batch/metadata.json
    run -1 --separate-stderr zs-parse batch
    [[ $stderr == *"secret.log: is outside of batch"* || $stderr == *"link.log: is outside of batch"* ]] || complain "$log: $stderr"
    [ "$(grep -c '^a' <<<"$output")" = 0 ] || complain "$log: $output"
  done
  chown nobody secret.log # its own
  run zs-parse batch
  [ "$(grep -c '^a' <<<"$output")" = 2 ] || complain "$output"
  chown root secret.log batch/metadata.json # the caller's own words
  run zs-parse batch
  [ "$(grep -c '^a' <<<"$output")" = 2 ] || complain "$output"
  verdict
}

@test "zs-parse: a number nearer to 0 than any double is a fault, and no 0" {
  for loss in 2.5 2.25 1e-99999999999 2.125 4e-400 "0.$(printf '0%.0s' {1..400})1" 1e-300 0e-99999; do
    echo "Epoch 1, Step $((++step)), Loss: $loss sync: True time: 0.5 alloc_mem: 1 peak_mem: 2"
  done >run.log
  run -1 --separate-stderr zs-parse run.log
  [ "$(awk -F'\t' '$1 == "run" && NR > 4 { print $4 }' <<<"$output" | xargs)" = "2.5 2.25 2.125 1e-300 0e-99999" ]
  [ "$(grep -c "' of 'loss' is not 0, but nearer to it than any double" <<<"$stderr")" = 3 ]
  [[ $stderr == "zs-parse: run.log:3: malformed value: '1e-99999999999' of 'loss' is not 0"* ]]
  zs-parse run.log | zs-aggregate --format json >/dev/null || (($? == 1))
}

@test "zs-parse: it ignores a value without a name and reads the log" {
  printf '%s\n' 'gpt2 ds=True np=8 batch_size=1 seq=512 zero_stage=1 acc=4 =lost compile=True backend=inductor deepcompile=True passes=None compile_time=1 iteration time: 0.1 alloc_mem: 1 peak_mem: 2' \
    'Epoch 1, Step 1, Loss: 2.5 sync: True time: 0.1 alloc_mem: 1 peak_mem: 2' >log
  run -0 zs-parse log
  [[ $output == *"zero_stage=1"* && $output != *"=lost"* ]]
}

@test "zs-parse: run.log of each training in a registry is the run of its folder" {
  for run in 20261122_101500_aaaaaa 20261122_101501_bbbbbb; do
    mkdir -p "saved/$run/record"
    echo 'Epoch 1, Step 1, Loss: 2.5 sync: True time: 0.1 alloc_mem: 10 peak_mem: 20' >"saved/$run/run.log"
  done
  zs-parse saved/*/run.log >records
  of() { grep -v '^#' "$1" | cut -f1 | grep -v '^run$' | xargs; }
  [ "$(of records)" = "20261122_101500_aaaaaa 20261122_101501_bbbbbb" ]
  cd saved/20261122_101500_aaaaaa
  zs-parse run.log >records
  [ "$(of records)" = 20261122_101500_aaaaaa ]
  mkdir ../../elsewhere
  cp run.log ../../elsewhere
  zs-parse ../../elsewhere/run.log | tail -n 1 | grep -q '^run[[:blank:]]1[[:blank:]]'
}

@test "zs-parse: it reads usual names of step and loss, and says which it took" {
  printf '%s\n' 'step 1/2 loss 6.26 lr 0.001 time 0.130s' 'step 2/2 loss 6.1 lr 0.001 time 131ms' >s.log
  run -0 --separate-stderr zs-parse s.log
  [ "$stderr" = "zs-parse: warning: s.log: no dialect is known for its lines; read as step, loss, learning_rate from 'lr', iteration_time from 'time'; if that is wrong, give zs-parse a --pattern or --map, or write a pattern file" ]
  [ "$(rows <<<"$output")" = $'s\t1\t6.26\t0.001\t0.130\t1\ns\t2\t6.1\t0.001\t0.131\t2' ]
  # Told once for logs alike.
  cp s.log t.log
  run -0 --separate-stderr zs-parse s.log t.log
  [ "$(wc -l <<<"$stderr")" = 1 ]
  # The ImageNet example of pytorch/examples; steps that begin again with each epoch.
  printf 'Epoch: [%s][ 5/100]\tTime  0.12 ( 0.45)\tLoss 4.2%s (4.5)\tAcc@1   5.00 (  4.10)\n' 0 0 1 1 >p.log
  [ "$(zs-parse p.log 2>/dev/null | column step | xargs)" = "5 105" ]
  printf 'Epoch %s/2, step %s/2, loss: %s\n' 1 1 4.5 1 2 4.25 2 1 4.125 2 2 4 >e.log
  [ "$(zs-parse e.log 2>/dev/null | column step | xargs)" = "1 2 3 4" ]
  # MMEngine counts epochs and batches from 1; of a log that begins in the middle the first epoch is unknown at first.
  printf 'mmengine - INFO - Epoch(train)   [%s][%s/3]  lr: 4.0e-08  time: 9.97  loss: 0.4%s\n' 1 1 1 1 2 2 1 3 3 2 1 4 >m.log
  [ "$(zs-parse m.log 2>/dev/null | column step | xargs)" = "1 2 3 4" ]
  printf 'Epoch: [%s][%s/3] Loss 4.%s\n' 7 2 1 7 3 2 8 1 3 >middle.log
  [ "$(zs-parse middle.log 2>/dev/null | grep -a '^middle' | cut -f 2,3,5)" = $'7\t4.1\t\n7\t4.2\t21\n8\t4.3\t22' ]
  # Prose is left alone.
  printf '%s\n' 'Saving checkpoint at step 500 (loss 2.5)' 'resumed from step 12 with loss 2.5' 'best loss: 2.5 after step 7' \
    'the loss of step 3 was 2.5' >prose.log
  run -1 zs-parse prose.log
  [[ $output == *"no metric line among 4 lines"* ]]
}

@test "zs-parse: DeepSpeed's times without a step join the program's own record, or are numbered" {
  # DeepSpeed 0.19.8 (deepspeed/utils/timer.py, print_dist).
  for step in 1 2; do
    echo "[Rank 0] time (ms) | fwd_microstep: 10.50 | bwd_microstep: 20.50 | bwd_inner_microstep: 1.00 | step_microstep: 5.00"
    echo "[Rank 0] time (ms) | fwd: 1$step.50 | bwd: 20.50 | bwd_inner: 1.00 | bwd_allreduce: 2.00 | step: 5.00"
    echo "step $step/2 loss 6.2$step time 0.13s"
  done >z3.log
  run -0 --separate-stderr zs-parse z3.log
  [ "$(column step <<<"$output" | xargs)" = "1 2" ]
  [ "$(column time.fwd <<<"$output" | xargs)" = "0.01150 0.01250" ]
  [ "$(column loss <<<"$output" | xargs)" = "6.21 6.22" ]
  grep -v '^step' z3.log >alone.log
  run -0 --separate-stderr zs-parse alone.log
  [ "$(column step <<<"$output" | xargs)" = "1 2" ]
  [ "$(column time.bwd <<<"$output" | xargs)" = "0.02050 0.02050" ]
}

@test "zs-parse: the progress bar of Lightning gives a record a batch, its last drawing" {
  # Lightning 2.5 (pytorch/callbacks/progress/tqdm_progress.py): each batch is drawn twice.
  {
    for epoch in 0 1; do
      printf 'Epoch %s:   0%%|          | 0/2 [00:00<?, ?it/s]\r' $epoch
      for batch in 1 2; do
        printf 'Epoch %s:  50%%|█████     | %s/2 [00:01<00:01,  1.00s/it, v_num=0, train_loss=9.900]\r' $epoch $batch
        printf 'Epoch %s:  50%%|█████     | %s/2 [00:01<00:01,  1.00s/it, v_num=0, train_loss=%s.%s00]\r' $epoch $batch $epoch $batch
      done
    done
    printf '\n`Trainer.fit` stopped: `max_epochs=2` reached.\n'
  } >l.log
  run -0 --separate-stderr zs-parse l.log
  [ "$(column step <<<"$output" | xargs)" = "1 2 3 4" ]
  [ "$(column loss <<<"$output" | xargs)" = "0.100 0.200 1.100 1.200" ]
  [ "$(zs-aggregate -f tsv <<<"$output" | awk -F'\t' 'NR == 2 { print $4 }')" = COMPLETE ]
}

@test "zs-parse: of a log that nothing reads the likeliest line comes with a pattern that reads it" {
  printf '%s\n' 'loading data 1 of 3' 'it 5 | l 3.2 | t 0.1' 'it 6 | l nan | t 0.2' >own.log
  run -1 --separate-stderr zs-parse own.log
  [[ $stderr == *"no metric line among 3 lines; the likeliest is line 2, 'it 5 | l 3.2 | t 0.1': try --pattern '"* ]]
  pattern=${stderr##*--pattern \'} pattern=${pattern%\'}
  run -0 --separate-stderr zs-parse --pattern "$pattern" own.log
  [ "$(rows <<<"$output")" = $'own\t5\t3.2\t0.1\t2\nown\t6\tnan\t0.2\t3' ]
}

@test "zs-parse: a pattern is suggested if it reads each likely line, and --learn writes it into the file of patterns" {
  printf '%s\n' 'it 5 | l 3.2 | t 0.1' 'it 6 | l -1e-3 | t 0.2 | warm' 'it 7 | l 2.5' >own.log
  run -0 --separate-stderr zs-parse --learn --patterns mine own.log
  [[ $stderr == "zs-parse: mine has a new pattern: "* ]] || complain "$stderr"
  [ "$(rows <<<"$output" | cut -f 1-3)" = $'own\t5\t3.2\nown\t6\t-1e-3\nown\t7\t2.5' ] || complain "$output"
  [ "$(zs-aggregate --patterns mine own.log -f json | jq '.conditions[0].points')" = 3 ] || complain "zs-aggregate"
  run -2 --separate-stderr zs-parse --learn --patterns mine <(printf 'step 1 loss 2.5\n')
  [[ $stderr == *"is read already"* ]] || complain "$stderr"
  # No pattern reads both lines, so that none is suggested.
  printf '%s\n' 'it 7 | l 2.5' 'l 2.4 | it 8' >odd.log
  run -1 --separate-stderr zs-parse odd.log
  [[ $stderr != *--pattern* ]] || complain "$stderr"
  run -2 --separate-stderr zs-parse --learn --patterns other odd.log
  [ ! -e other ] || complain "a file of patterns without one"
  verdict
}

@test "a pattern file is read by every tool that reads logs; its faults have a line" {
  for k in 1 2; do
    for i in 1 2 3 4 5 6 7 8; do echo "i#$i l#$((9 - i)).$k t#0.$k"; done >$k.log
  done
  cat >own.patterns <<'END'
# our trainer
i#(?P<i>\d+) l#(?P<loss>\S+) t#(?P<t>\S+)

map step=i,step_time=t
END
  export XDG_CONFIG_HOME=$PWD/config
  for way in option file; do
    option=(--patterns own.patterns)
    if [ $way = file ]; then
      mkdir -p config/zs
      cp own.patterns config/zs/patterns
      option=()
    fi
    [ "$(zs-parse "${option[@]}" 1.log | column iteration_time | sort -u)" = 0.1 ] || complain "$way: zs-parse"
    mkdir -p logs
    cp 1.log 2.log logs/
    [ "$(zs-aggregate "${option[@]}" logs -f tsv | cut -f1,5 | paste -sd' ')" = $'condition\tfirst_loss 1\t8.1 2\t8.2' ] || complain "$way: zs-aggregate"
    [[ $(zs-report "${option[@]}" 1.log 2.log -f md) == *"2 conditions"* ]] || complain "$way: zs-report"
    zs-plot loss "${option[@]}" 1.log 2.log -o $way.svg || complain "$way: zs-plot"
    run -1 zs-verify "${option[@]}" 1.log 2.log
    [[ $output == *"what: loss"* ]] || complain "$way: zs-verify: $output"
  done
  echo 'l#(?P<loss>' >>own.patterns
  for tool in zs-parse zs-aggregate zs-report 'zs-plot loss' 'zs-verify 2.log'; do
    # shellcheck disable=SC2086
    run -2 $tool --patterns own.patterns 1.log
    [[ $output == *"own.patterns:5: pattern: "* ]] || complain "$tool: $output"
  done
  verdict
}

@test "a foreign run is complete by what its own trainer says" {
  printf 'step %s/3 loss %s\n' 1 3.5 2 3.25 3 3 >a.log
  { echo "Namespace(model='x', steps=3, lr=0.1)"; printf 'step %s loss %s\n' 1 3.5 2 3.25 3 3; } >b.log
  { echo "Namespace(model='x', steps=3, lr=0.1)"; printf 'step %s loss %s\n' 0 3.5 1 3.25 2 3; } >c.log
  printf '%s\n' "{'loss': 2.5, 'epoch': 0.5}" "{'loss': 2.25, 'epoch': 1.0}" "{'train_runtime': 9.5, 'train_loss': 2.375, 'epoch': 1.0}" >d.log
  printf 'step %s loss %s\n' 1 3.5 2 3.25 3 3 >e.log
  { echo "Namespace(model='x', steps=4, lr=0.1)"; printf 'step %s loss %s\n' 1 3.5 2 3.25 3 3; } >f.log
  zs-parse ?.log 2>/dev/null >records
  [ "$(zs-aggregate -f tsv 2>/dev/null <records | cut -f1,4 | tail -n +2 | paste -sd, | tr '\t' ' ')" = \
    "a COMPLETE,b COMPLETE,c COMPLETE,d COMPLETE,e UNKNOWN,f TRUNCATED" ]
  mkdir results
  cp e.log results/
  echo '{"conditions": {"e": {"exit_code": 0}}}' >results/metadata.json
  [ "$(zs-aggregate results -f tsv 2>/dev/null | cut -f4 | tail -1)" = COMPLETE ]
}
