# SPDX-License-Identifier: Apache-2.0
# zs-aggregate: from records to a summary, through pipes, in every form, and with damaged records.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
  log run.log 5 4 3 2.5 2.25 2 1.75
}

# log FILE LOSS...: a log in the reference format, a step of ten for each loss.
log() {
  local file=$1 step=0 loss
  shift
  for loss; do
    step=$((step + 10))
    echo "Epoch 1, Step $step, Loss: $loss sync: True time: 0.${step} alloc_mem: 1000 peak_mem: 200$step"
  done >"$file"
}

# cell COLUMN [ROW]: a cell of the tab-separated summary on stdin.
cell() { awk -F'\t' -v column="$1" -v row="${2:-1}" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == row + 1 { print $at[column] }'; }

@test "records through a pipe are a summary that h5py reads" {
  zs-parse run.log | zs-aggregate >summary.h5
  run -0 /usr/bin/python3 - <<'PY'
import h5py
f = h5py.File('summary.h5', 'r')
s = f['summary']
print(f.attrs['zs_metrics'], s['condition'][0].decode(), s['points'][0], s['final_loss'][0], s['time_mean'].attrs['unit'].decode())
print(list(f['runs']), list(f['runs/run/loss'][:2]), f['runs/run'].attrs['source'].decode(), list(f['curves/run/step'][:2]))
PY
  [ "${lines[0]}" = "1 run 7 1.75 s" ]
  [ "${lines[1]}" = "['run'] [5.0, 4.0] run.log [10, 20]" ]
}

@test "the records' form does not matter: the same bytes" {
  zs-parse run.log | zs-aggregate >text.h5
  zs-parse --format h5 run.log | zs-aggregate >image.h5
  cmp text.h5 image.h5
  zs-aggregate text.h5 >again.h5
  cmp text.h5 again.h5
}

@test "streams one after another are several runs, in any mixture of forms" {
  log b.log 3 2 1
  (zs-parse run.log; zs-parse b.log) | zs-aggregate >text.h5
  (zs-parse --format h5 run.log; zs-parse b.log) | zs-aggregate >mixed.h5
  zs-parse run.log b.log | zs-aggregate >one.h5
  cmp text.h5 mixed.h5
  cmp text.h5 one.h5
  zs-aggregate --format tsv text.h5 >table
  [ "$(cell condition <table) $(cell condition 2 <table) $(wc -l <table)" = "run b 3" ]
}

@test "two runs of one name are refused, with the remedy, and no file is left" {
  zs-parse run.log >records
  run -2 --separate-stderr zs-aggregate records records -o summary.h5
  [ "$stderr" = "zs-aggregate: records: a second run named 'run': give one another name with zs-parse --run NAME" ]
  [ ! -e summary.h5 ]
  (cat records; zs-parse --run other run.log) | zs-aggregate -o summary.h5
  [ -s summary.h5 ]
}

@test "a published batch: every figure of its report by its own biased settings, the honest ones by default" {
  batch=$ROOT/../shared/data/reference_batch
  [ -d "$batch" ] || skip "no reference batch here"
  zs-parse "$batch/z1_baseline.log" "$batch/z3_deepcompile.log" >records
  # The report drops 5 logged points and the times above the 99th percentile, divides by n, and counts GB by 1024^3.
  zs-aggregate --format tsv --warmup 5 --outliers p99 --deviation population records >table
  figures() {
    echo "$(cell condition "$1" <table) $(cell points "$1" <table) $(cell final_loss "$1" <table) $(cell best_loss "$1" <table)" \
      "$(printf '%.6f %.6f' "$(cell time_mean "$1" <table)" "$(cell time_std "$1" <table)")" \
      "$(awk -v bytes="$(cell peak_mem "$1" <table)" 'BEGIN { printf "%.4f", bytes / 1024 ^ 3 }')" \
      "$(cell time_points "$1" <table) of $(($(cell points "$1" <table) - $(cell warmup_points "$1" <table)))"
  }
  [ "$(figures 1)" = "z1_baseline 10 1.620094 0.363938 0.477070 0.001406 46.6266 4 of 5" ] || complain "$(figures 1)"
  [ "$(figures 2)" = "z3_deepcompile 10 1.628428 0.367286 0.468810 0.000044 35.9454 4 of 5" ] || complain "$(figures 2)"
  zs-aggregate --format tsv records >table
  row=1
  for log in z1_baseline z3_deepcompile; do # all of them, by n - 1
    # The run leaves out 15 steps of its optimizer: 60 of the micro-steps that it logs every 40 of.
    grep -aoP 'sync: True\K time: [0-9.]+' "$batch/$log.log" | awk 'NR > 1 { sum += $2; squares += $2 ^ 2; ++n }
      END { mean = sum / n; printf "%.6f %.6f %d\n", mean, sqrt((squares - n * mean ^ 2) / (n - 1)), n }' >expected
    printf '%.6f %.6f %d\n' "$(cell time_mean $row <table)" "$(cell time_std $row <table)" "$(cell time_points $row <table)" >found
    diff expected found || complain "$log"
    [ "$(cell time_removed $row <table)" = 0 ] || complain "$log: removed"
    [ "$(cell status $row <table)" = COMPLETE ] || complain "$log: $(cell status $row <table), with bench_step x 4 = 400"
    row=$((row + 1))
  done
  verdict
}

@test "a warm-up longer than a run is cut, with a warning" {
  log short.log 3 2 1
  zs-parse short.log >records
  run -0 --separate-stderr zs-aggregate --format tsv records
  [ "$stderr" = "zs-aggregate: warning: run 'short' has only 3 timed points: warm-up of 5 cut to 2" ]
  run -0 --separate-stderr zs-aggregate --format tsv --warmup 1 records
  [ -z "$stderr" ]
  [ "$(cell time_points <<<"$output") $(cell time_mean <<<"$output")" = "2 0.25" ]
}

@test "tables, tsv and json say the same" {
  zs-parse run.log >records
  zs-aggregate --format tsv records >table
  [ "$(zs-aggregate --format json records | jq -r '.conditions[0].final_loss')" = "$(cell final_loss <table)" ]
  run -0 zs-aggregate --format table records
  [[ ${lines[1]} == "run "*" 1.75"* ]]
  zs-parse run.log | sed 's/\t5\t/\tnan\t/' | zs-aggregate --format json | jq -e '.conditions[0] | .first_loss == "nan" and .status == "DIVERGED"'
}

@test "bad records are refused with their place, and the last good file stays" {
  zs-parse run.log | zs-aggregate -o summary.h5
  cp summary.h5 good.h5
  bad() {
    run -2 --separate-stderr zs-aggregate records -o summary.h5
    [[ $stderr == "zs-aggregate: records"*"$1"* ]] || complain "$stderr"
    [ -z "$output" ] || complain "something on stdout"
  }
  zs-parse run.log | head -c 300 >records
  bad "cut off"
  head -c 5000 good.h5 >records
  bad "truncated HDF5 data: 5000 of"
  { head -c 3000 good.h5; head -c 200 /dev/zero; tail -c +3201 good.h5; } >records
  bad "cannot"
  head -c 3000 good.h5 | tail -c 2000 >records
  bad "is not a file that zs knows; zs-aggregate takes logs, metric records, "
  printf '#zs-metrics 1\nrun\tstep\nx\tten\n' >records
  bad "3: column 'step' is int, found 'ten'"
  printf '#zs-metrics 1\n' >records
  run -2 --separate-stderr zs-aggregate records -o summary.h5
  [ "$stderr" = "zs-aggregate: no runs in the input: nothing to aggregate" ]
  cmp summary.h5 good.h5
  [ -z "$(find . -name ".*tmp*")" ] || complain "something was left: $(ls -A)"
  verdict
}

@test "bad options are refused" {
  zs-parse run.log >records
  for words in "--warmup -1" "--warmup five" "--by nothing" "--outliers some" "--format yaml" "-o no/such/folder/x"; do
    # shellcheck disable=SC2086
    run -2 --separate-stderr zs-aggregate $words records
    [ -z "$output" ] || complain "$words: something on stdout"
    [[ $stderr == "zs-aggregate: "* ]] || complain "$words: $stderr"
  done
  verdict
}

@test "HDF5 that another program wrote is read: old formats, variable-length texts, other widths" {
  /usr/bin/python3 - <<'PY'
import h5py, numpy as np
with h5py.File('other.h5', 'w') as f:
    f.attrs['zs_metrics'] = 1
    run = f.create_group('runs/a')
    run.attrs['model.name'] = 'gpt2'
    run.attrs['exit_code'] = 0
    run['step'] = np.arange(1, 7, dtype='>i2')
    run['loss'] = np.array([3, 2.5, 2, 1.5, 1, 0.5], dtype='f4')
    run['note'] = ['', 'x', 'längér', '', '', '']
PY
  zs-aggregate other.h5 --format tsv --by model.name >table
  [ "$(cell condition <table) $(cell points <table) $(cell final_loss <table)" = "gpt2 6 0.5" ]
}

@test "damage to such a file is an error, and never a crash" {
  /usr/bin/python3 - <<'PY'
import h5py, random
with h5py.File('other.h5', 'w') as f:
    f.attrs['zs_metrics'] = 1
    run = f.create_group('runs/a')
    for i in range(6):
        run.attrs['key%d' % i] = 'value %d' % i
    run['step'] = [1, 2, 3]
    run['note'] = ['x', 'yy', 'z']
sound = open('other.h5', 'rb').read()
random.seed(1)
for i in range(40):
    damaged = bytearray(sound)
    for _ in range(3):
        damaged[random.randrange(len(sound))] ^= 1 << random.randrange(8)
    damaged[random.randrange(sound.find(b'GCOL'), len(sound))] = 255  # where the library is weakest
    open('damaged%d.h5' % i, 'wb').write(damaged)
PY
  for file in damaged*.h5; do
    timeout "$HANG" zs-aggregate "$file" >out 2>>err && status=0 || status=$?
    ((status == 0 || status == 2)) || complain "$file: status $status: $(tail -n 1 err)"
  done
  grep -q "^zs-aggregate: damaged" err || complain "no message"
  verdict
}

@test "into a file goes HDF5, into a pipe text that holds the same to the last bit, onto a terminal a table" {
  printf '#@ run note=a\\tb\n' >extra
  (zs-parse run.log; cat extra) >records
  zs-aggregate --target 3 records >summary.h5
  zs-aggregate --target 3 records -o named.h5
  cmp summary.h5 named.h5
  zs-aggregate --target 3 records | cat >summary.txt
  [ "$(head -c 21 summary.txt)" = "#zs-metrics 1 summary" ]
  grep -q "^condition	runs	points	status" summary.txt
  mkfifo pipe
  zs-aggregate --target 3 records -o pipe &
  cmp - summary.txt <pipe
  wait $!
  # The same picture, the same report, and the same file again.
  for form in summary.h5 summary.txt; do
    zs-plot loss $form >$form.plot
    zs-report $form --format md >$form.full
    sed 's/summary\.[a-z0-9]*//g' $form.full >$form.md
  done
  cmp summary.h5.plot summary.txt.plot
  cmp summary.h5.md summary.txt.md
  zs-aggregate --target 3 summary.txt -o again.h5
  cmp summary.h5 again.h5
  script=$(printf '%q ' env PATH="$PATH" zs-aggregate records)
  COLUMNS=40 script -qec "stty cols 60; $script" /dev/null </dev/null >screen
  grep -q "^condition" screen
  if tr -d '\r' <screen | awk 'length > 60' | grep .; then false; fi
}

@test "a run that cannot be believed is named, and the status says so; the summary is written" {
  cp run.log short.log
  (echo "run: expected_steps=70"; sed 3d run.log) >gap.log
  (echo "run: expected_steps=70"; cat run.log) >whole.log
  zs-parse gap.log whole.log >records
  run -1 --separate-stderr zs-aggregate records -o summary.h5
  [ "$stderr" = "zs-aggregate: warning: condition 'gap' is TRUNCATED: step 30 is missing, after the one at step 20 (gap.log:3)" ]
  [ "$(zs-aggregate --format tsv summary.h5 2>/dev/null | cut -f4 | tr '\n' ' ')" = "status TRUNCATED COMPLETE " ]
  zs-parse whole.log short.log | run -0 zs-aggregate --format tsv
}

@test "input without an end, and bombs, cost little" {
  limited() { (ulimit -v 4000000; exec timeout "$HANG" "$@"); }
  for input in /dev/zero /dev/urandom; do
    run -2 --separate-stderr limited zs-aggregate $input
    [[ $stderr == "zs-aggregate: $input: no metric records"* ]] || complain "$stderr"
  done
  printf 'loss 1\n%.0s' {1..10} >wrong.txt
  truncate -s 3G wrong.txt
  run -2 --separate-stderr limited zs-aggregate wrong.txt
  [[ $stderr == "zs-aggregate: wrong.txt: is not a file that zs knows; zs-aggregate takes "* ]] || complain "$stderr"
  run -2 --separate-stderr limited zs-plot loss --theme /dev/zero wrong.txt
  [[ $stderr == *"too much to read" ]] || complain "$stderr"
  /usr/bin/python3 - <<'PY'
import h5py
for name, rows, columns in ('long', 10**8, 3), ('wide', 500000, 400):
    with h5py.File(name + '.h5', 'w') as f:
        f.attrs['zs_metrics'] = 1
        run = f.create_group('runs/a')
        for i in range(columns):
            run.create_dataset('c%d' % i, shape=(rows,), dtype='f8', chunks=(8192,), compression='gzip')
PY
  for bomb in long wide; do
    run -2 --separate-stderr limited zs-aggregate $bomb.h5
    [[ $stderr == *"is not believable"* || $stderr == *"too much memory"* || $stderr == *"out of memory"* ]] || complain "$bomb: $stderr"
  done
  verdict
}

@test "zs follows no link in an HDF5 file; a number that does not fit is an error" {
  zs-parse run.log | zs-aggregate >other.h5
  /usr/bin/python3 - <<'PY'
import h5py, numpy as np
for place in 'runs', 'summary', 'curves', 'tables':
    for kind in 'external', 'soft':
        with h5py.File('%s-%s.h5' % (place, kind), 'w') as f:
            f.attrs['zs_metrics'] = 1
            if place != 'runs':
                f.create_group('runs/a')['step'] = [1, 2]
            f[place] = h5py.ExternalLink('other.h5', '/' + place) if kind == 'external' else h5py.SoftLink('/hidden')
for name, step in ('large', np.array([2**63 + 5], dtype='u8')), ('half', np.array([1.0, 1.5])):
    with h5py.File(name + '.h5', 'w') as f:
        f.attrs['zs_metrics'] = 1
        f.create_group('runs/a')['step'] = step
with h5py.File('real.h5', 'w') as f:
    f.attrs['zs_metrics'] = 1
    f.create_group('runs/a')['step'] = np.array([1.0, 2.0])
    f['runs/a/loss'] = np.array([3.0, np.nan])
PY
  for file in runs summary curves tables; do
    for kind in external soft; do
      run -2 --separate-stderr zs-aggregate $file-$kind.h5
      [[ $stderr == *"'$file': it is a link to another place" ]] || complain "$file $kind: $stderr"
    done
  done
  run -2 --separate-stderr zs-aggregate large.h5
  [[ $stderr == *"9223372036854775813 is too large" ]] || complain "$stderr"
  run -2 --separate-stderr zs-aggregate half.h5
  [[ $stderr == *"column 'step' holds 1.5, which is not a whole number" ]] || complain "$stderr"
  run -1 zs-aggregate --format tsv real.h5
  [ "$(cell final_step <<<"$output")" = 2 ] || complain "$output"
  printf '\xEF\xBB\xBF' | cat - <(zs-parse run.log) >marked
  zs-aggregate --format tsv marked >table
  [ "$(cell points <table)" = 7 ] || complain "a byte order mark"
  verdict
}

@test "the warm-up of a run is its own, in steps, unless one is given" {
  for step in {1..9}; do
    echo "Epoch 1, Step $step, Loss: $((20 - step)) sync: True time: $((step <= 3 ? 9 : 1)) alloc_mem: 1 peak_mem: 2"
  done >plain.log
  (echo "run: timing_warmup=3"; cat plain.log) >own.log
  (echo "run: warmup_step=3"; cat plain.log) >old.log
  zs-parse own.log old.log plain.log >records
  zs-aggregate --format tsv records >table
  [ "$(for row in 1 2 3; do cell time_points $row <table; done | tr '\n' ' ')" = "6 6 4 " ] || complain "$(cut -f1,11 table)"
  [ "$(cell time_mean <table)" = 1 ] || complain "the mean is $(cell time_mean <table)"
  zs-aggregate --format tsv --warmup 1 records >table
  [ "$(for row in 1 2 3; do cell time_points $row <table; done | tr '\n' ' ')" = "8 8 8 " ] || complain "$(cut -f1,11 table)"
  verdict
}

# own RUN LOSS...: records of a run with a column of its own: ten times the step, and the loss.
own() {
  local run=$1 step=0
  shift
  printf '#zs-metrics 1\n#@ %s model.name=tiny\n#@ %s steps_per_epoch=2\nrun\tstep\tloss\tgate\n' "$run" "$run"
  for value in "$@"; do
    step=$((step + 1))
    printf '%s\t%s\t%s\t%s\n' "$run" "$step" "$value" "$((step * 10))"
  done
}

@test "columns of one's own: first, last, least, greatest, mean and its interval; drawn and reported" {
  { own a 3 2 1; own b 3 2 1 1; } >records
  zs-aggregate --columns gate --format tsv records >out
  value() { awk -F '\t' -v name="$1" -v row="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) k = i; next } NR == row + 1 { print $k }' out; }
  [ "$(value gate.first 1)/$(value gate.last 1)/$(value gate.min 1)/$(value gate.max 1)/$(value gate.mean 1)" = 10/30/10/30/20 ]
  [ "$(value gate.last 2)/$(value gate.mean 2)" = 40/25 ]
  # Student's interval of 10, 20, 30: 20 -+ 4.3027 * 10 / sqrt(3).
  [ "$(value gate.low 1 | cut -c 1-7)/$(value gate.high 1 | cut -c 1-7)" = -4.8413/44.8413 ]
  zs-aggregate --columns gate --by model.name --format tsv records >out
  [ "$(value gate.mean 1)/$(value gate.last 1)/$(value gate.max 1)" = 22.5/35/40 ]
  run -0 zs-aggregate --columns gate --format table records
  [[ $output == *"mean (95 %)"* && $output == *"20 ± 25"* ]] || complain "$output"
  run -2 zs-aggregate --columns gates records
  [[ $output == "zs-aggregate: no run has a column 'gates'"*"did you mean 'gate'?"* ]] || complain "$output"
  zs-aggregate --columns gate records -o s.h5
  zs-report s.h5 -o r.html
  grep -q 'Further columns' r.html
  zs-report records -o plain.html
  run ! grep -q 'Further columns' plain.html
  run -0 zs-plot curve --value gate records
  [[ $output == *gate* ]] || complain "$output"
  zs-plot curve --value gate --xaxis epoch --log --log_x records -o c.svg
  grep -q '>epoch<' c.svg || complain "no epochs"
  run -2 zs-plot curve records
  [[ $output == "zs-plot: --value NAME must name a column"* ]] || complain "$output"
  run -2 zs-plot curve --value gates records
  [[ $output == *"did you mean 'gate'?"* ]] || complain "$output"
  verdict
}

@test "conditions are sorted and filtered as runs of a registry are, and become runs of one" {
  for k in 1 2 3; do
    awk -v k=$k 'BEGIN { print "NUM_PROCESSES: " k; for (i = 1; i <= 8; i++) print "Epoch 1, Step " i ", Loss: " k + 1 / i " sync: True time: 0." 4 - k " alloc_mem: 1 peak_mem: 2" }' >run$k.log
  done
  zs-parse run?.log >records
  names() { tail -n +2 | cut -f1 | paste -sd,; }
  [ "$(zs-aggregate -f tsv --sort time_mean <records | names)" = run3,run2,run1 ]
  [ "$(zs-aggregate -f tsv --sort final_loss --descending <records | names)" = run3,run2,run1 ]
  [ "$(zs-aggregate -f tsv --filter 'loss<3' <records | names)" = run1,run2 ]
  [ "$(zs-aggregate -f tsv --filter 'world_size>=2 && condition~2' <records | names)" = run2 ]
  refuses_with "zs-aggregate: no condition is left: each of 3 fails a --filter" zs-aggregate --filter 'loss>9' records
  run -2 zs-aggregate --sort tine_mean records
  [[ $output == *"no run has a column 'tine_mean', did you mean 'time_mean'?"* ]]
  # What is left is a whole summary: records, curves and all.
  zs-aggregate --filter 'condition=run2' records -o one.h5
  [ "$(zs-aggregate -f tsv one.h5 | names)" = run2 ]
  # zs-runs takes the table, and the summary with its attributes.
  zs-aggregate -f tsv records >table.tsv
  run -0 zs-runs import -r a table.tsv
  [ "$output" = "3 runs imported" ]
  [ "$(zs-runs -r a --sort_by time_mean --show run_name time_mean | cut -f1 | paste -sd,)" = run_name,run3,run2,run1 ]
  zs-aggregate records -o all.h5
  run -0 zs-runs import -r b all.h5
  [ "$output" = "3 runs imported" ]
  [ "$(zs-runs -r b --filter world_size=2 --show run_name | tail -1)" = run2 ]
  run -2 zs-runs import -r b records
  [[ $output == *"records: holds records and no summary: zs-aggregate makes one of them"* ]]
}

@test "losses by other names count for nan and for points, and a failed log without a step is FAILED" {
  printf '%s\n' step,epoch,train_disc_loss,train_gen_loss 0,0,1.5,1.25 1,0,1.6e24,nan 2,1,nan,nan >gan.csv
  run -1 --separate-stderr zs-aggregate gan.csv -f json
  [ "$(jq -c '.conditions[0] | [.points, .status, .reason]' <<<"$output")" = \
    '[3,"DIVERGED","train_gen_loss is nan at step 1 (gan.csv:3)"]' ] || complain "$output"
  head -2 gan.csv >short.csv
  run -0 --separate-stderr zs-aggregate short.csv -f json
  [ "$(jq -c '.conditions[0] | [.points, .status]' <<<"$output")" = '[1,"UNKNOWN"]' ] || complain "$output"
  cat >hung.log <<'END'
[rank7]:[E419 10:42:28 ProcessGroupNCCL.cpp:616] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4486, OpType=ALLTOALL) ran for 600013 milliseconds before timing out.
[rank3]:[E419 10:42:28 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4486, OpType=ALLTOALL) ran for 600088 milliseconds before timing out.
END
  run -1 --separate-stderr zs-aggregate hung.log -f json
  [[ $(jq -r '.conditions[0] | .status + ": " + .reason' <<<"$output") == \
    "FAILED: rank 7: Watchdog caught "*"SeqNum=4486"*"(rank 3 waited too)" ]] || complain "$output"
  verdict
}
