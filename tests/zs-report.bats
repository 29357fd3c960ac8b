# SPDX-License-Identifier: Apache-2.0
# Reports from logs: the verdict, missing data, and that every number names its line.
setup() {
  load helper && load drawing && no_pictures
  cd "$BATS_TEST_TMPDIR"
  for name in z1 z2 z3; do log $name 4 3.5 3.25 3 2.75 2.5 2.25 2 >$name.log; done
}

# log NAME LOSS...: a log of zs-train's form; time and memory follow from the name's digit.
log() {
  local stage=${1#z} step=0 loss
  shift
  printf 'run: %s\n' zero_stage="$stage" expected_steps=8 model.name=tiny seed=1 world_size=2 dtype=float32
  for loss; do
    step=$((step + 1))
    echo "Epoch 1, Step $step, Loss: $loss sync: True time: 0.${stage}0$((step % 3)) alloc_mem: $((1000000 / stage)) peak_mem: $((3000000 / stage)) tokens: 512"
  done
  echo "state_digest: 0123456789abcdef0123456789abcdef"
}

summary() { zs-parse "$@" | zs-aggregate -o summary.h5 || (($? == 1)); } # 1: a run is not to be believed
first_paragraph() { sed -n 3p "$1"; }

@test "the same digest everywhere is the first paragraph, and status 0" {
  summary z1.log z2.log z3.log
  run -0 zs-report summary.h5 -o report.md
  [ "$output" = "Same bits: report.md" ]
  [ "$(first_paragraph report.md)" = "**Same bits.** **All 3 conditions end with the same state digest**, \`0123456789abcdef0123456789abcdef\`: their parameters are the same to the last bit." ]
}

@test "the pictures that a Markdown report refers to stand where it says" {
  summary z1.log z2.log
  mkdir out
  zs-report summary.h5 -o out/report.md
  count=0
  for picture in $(grep -oE '!\[[^]]*\]\([^)]+\)' out/report.md | sed 's/.*(//; s/)$//'); do
    [ -s "out/$picture" ] || complain "$picture"
    count=$((count + 1))
  done
  [ $count = 4 ]
  zs-report summary.h5 -o out/other.md --figures pictures
  grep -qF '](../pictures/loss_comparison.png)' out/other.md || complain "not relative to the report"
  [ -s pictures/loss_comparison.png ] || complain "not drawn into --figures"
  verdict
}

@test "another digest is a no, with status 1" {
  sed -i 's/^state_digest: 0/state_digest: f/' z2.log
  sed -i 's/Loss: 2.25 /Loss: 2.2500000000000004 /' z2.log
  summary z1.log z2.log z3.log
  run -1 zs-report summary.h5 -o report.md
  [[ $(first_paragraph report.md) == *"Runs that train the same thing do not end with the same bits:** \`z1\` and \`z3\` end with \`0123456789abcdef0123456789abcdef\`; \`z2\` ends with \`f123456789abcdef0123456789abcdef\`. Losses first differ at step 7;"* ]]
}

@test "digests of different seeds are not compared" {
  sed -i 's/^state_digest: 0/state_digest: f/; s/seed=1/seed=2/' z2.log
  summary z1.log z2.log
  run -0 zs-report summary.h5 -o report.md
  [[ $(first_paragraph report.md) == "**Not the same training.** \`z1\` and \`z2\` train different things: they differ in seed (1 and 2). Their state digests are not compared."* ]]
}

@test "runs that differ in a setting of the model or data are different trainings: no verdict on bits, status 0" {
  for change in model.num_layers=4 weight_decay=0.1 scheduler=cosine lr_warmup_steps=3 beta2=0.95 init_std=0.1 dropout=0.1 \
    dataset_sha256=ff an_unknown_attribute=x; do
    name=${change%%=*}
    for log in z1 z2; do sed "s/^run: seed=1/&\nrun: $name=2/" $log.log >$log.$name.log; done
    sed -i "s/^state_digest: 0/state_digest: f/; s/^run: $name=2/run: $change/; s/Loss: 2.25 /Loss: 2.26 /" z2.$name.log
    summary z1.$name.log z2.$name.log
    zs-report summary.h5 -o report.md || complain "$name: status $?"
    [[ $(first_paragraph report.md) == "**Not the same training.** \`z1.$name\` and \`z2.$name\` train different things: they differ in "* ]] ||
      complain "$name: $(first_paragraph report.md)"
  done
  verdict
}

@test "runs that differ in their arithmetic are not expected to be the same bits, and status 0" {
  sed -i 's/^state_digest: 0/state_digest: f/; s/dtype=float32/dtype=bfloat16/' z2.log
  summary z1.log z2.log
  run -0 zs-report summary.h5 -o report.md
  [[ $(first_paragraph report.md) == "**Not the same arithmetic.** \`z1\` and \`z2\` are not expected to be the same bits, because they differ in number format (float32 and bfloat16)."* ]]
  # LibTorch's own AdamW takes its square root from MKL, which rounds otherwise.
  cp z2.log torch_adam.log
  sed -i 's/dtype=bfloat16/dtype=float32/; 1i run: use_torch_adam=true' torch_adam.log
  summary z1.log torch_adam.log
  run -0 zs-report summary.h5 -o report.md
  [[ $(first_paragraph report.md) == "**Not the same arithmetic.** \`z1\` and \`torch_adam\` are not expected to be the same bits, because they differ in LibTorch's own AdamW "* ]]
  # An excuse for other bits is none against the same.
  sed -i 's/^state_digest: f/state_digest: 0/' z2.log
  summary z1.log z2.log
  run -0 zs-report summary.h5 -o report.md
  [[ $(first_paragraph report.md) == "**Same bits.** **Both conditions end with the same state digest**"* ]]
  # Two that train different things and end with the same bits are worth a word.
  sed -i 's/seed=1/seed=2/' z2.log
  summary z1.log z2.log
  run -0 zs-report summary.h5 -o report.md
  [[ $(first_paragraph report.md) == *"Yet \`z1\` and \`z2\` end with the same state digest, "*": what they differ in changed no bit."* ]]
}

@test "the layout must not change a bit: stage, ranks, passes and checkpointing are no excuse" {
  for change in zero_stage=3 world_size=4 deepcompile=true passes=prefetch activation_checkpointing=true; do
    name=${change%%=*}
    for log in z1 z2; do sed "s/^run: world_size=2/&\nrun: batch_size=2\nrun: gradient_accumulation_steps=2/; s/zero_stage=2/zero_stage=1/" $log.log >$log.$name.log; done
    sed -i "s/^state_digest: 0/state_digest: f/; /^run: $name=/d; 1i run: $change" z2.$name.log
    [ $name != world_size ] || sed -i 's/steps=2/steps=1/' z2.$name.log
    summary z1.$name.log z2.$name.log
    run zs-report summary.h5 -o report.md
    [ $status = 1 ] || complain "$name: status $status"
    [[ $(first_paragraph report.md) == "**Different bits.** "* ]] || complain "$name: $(first_paragraph report.md)"
  done
  # Another global batch is another training.
  sed -i 's/steps=1/steps=2/' z2.world_size.log
  summary z1.world_size.log z2.world_size.log
  run -0 zs-report summary.h5 -o report.md
  verdict
}

@test "digests that differ are no fault where nobody says what was trained" {
  sed -i '/^run: /d' z1.log z2.log
  sed -i 's/^state_digest: 0/state_digest: f/' z2.log
  summary z1.log z2.log
  run -0 zs-report summary.h5 -o report.md
  [[ $(first_paragraph report.md) == "**Bits not known.** State digests differ, but the records do not say which model was trained,"* ]]
}

@test "runs that did not complete are named in verdict, table and data quality, with status 1" {
  (log z1 4 3.5 3.25) | grep -v digest >z1.log
  (log z2 4 nan 3 3 3 3 3 3) | grep -v digest >z2.log
  summary z1.log z2.log z3.log
  run -1 zs-report summary.h5 -o report.md
  [[ $(first_paragraph report.md) == "**Not complete.** **2 of 3 conditions did not complete:** \`z1\` TRUNCATED (ends at step 3 of 8) and \`z2\` DIVERGED (the loss is nan at step 2 (z2.log:8))."* ]]
  grep -q '^| `z2` | \*\*DIVERGED\*\* |' report.md || complain "not in the table"
  sed -n '/^## Data quality/,/^## /p' report.md | grep -q '^- `z2`: \*\*DIVERGED' || complain "not in data quality"
  verdict
}

@test "what the records do not say is said to be missing" {
  sed -i '/^run: /d; /^state_digest/d' z1.log z2.log
  summary z1.log z2.log
  run -0 zs-report summary.h5 -o report.md
  grep -q '^The records do not say: the model, the data, the number format, the number of ranks,' report.md
  [[ $(first_paragraph report.md) == "**Equal losses.** Their losses are equal, as logged, at every one of 8 steps. \`z1\` (101.0 ms) has the smallest mean iteration time, 50 % less than the next, \`z2\`; one run of each cannot tell, so the data do not show which is fastest."* ]]
  [[ $(first_paragraph report.md) == *" No condition logged a state digest, so the report cannot say whether the parameters are the same bits. Whether they are complete is not known:"* ]]
}

@test "every number leads to a line of the log that holds it" {
  summary z1.log z2.log z3.log; zs-report summary.h5 -o report.md
  checked=0
  while IFS='|' read -r _ what value _ _ place _; do
    case $what in *first*loss* | *final*loss* | *best*loss*) ;; *) continue ;; esac
    file=$(sed -E 's/.*`([^:`]+):[0-9]+`.*/\1/' <<<"$place")
    line=$(sed -E 's/.*:([0-9]+)`.*/\1/' <<<"$place")
    sed -n "${line}p" "$file" | grep -qF "Loss: ${value// /} " || complain "$what: $value is not at $file:$line"
    checked=$((checked + 1))
  done < <(zs-report summary.h5 | sed -n '/Where the numbers come from/,$p')
  [ $checked = 9 ] || complain "$checked numbers checked"
  # Beside a file they are in one of their own: number, value, run, step, place.
  grep -qE $'^final_loss of z2\t2\tz2\t8\tz2.log:[0-9]+$' report_numbers.tsv || complain "$(grep final_loss report_numbers.tsv)"
  grep -qF '(report_numbers.tsv)' report.md || complain "the report does not name the file of its numbers"
  grep -qE '^\[[0-9]+\]: z1.log#L[0-9]+$' report.md || complain "no link to a line"
  verdict
}

@test "the HTML is one file that loads nothing, for any text of a log" {
  sed -i 's|model.name=tiny|model.name=<script src=http://example.com/x.js></script>|' z1.log
  summary z1.log z2.log
  zs-report summary.h5 -o report.html
  grep -q "default-src 'none'" report.html || complain "no policy"
  for pattern in '<script src' '<link' '<img' '<iframe' 'url(' '@import' 'href="http' 'fetch(' 'XMLHttp'; do
    grep -qF -- "$pattern" report.html && complain "holds $pattern"
  done
  for part in 'class="figure wide"' 'class="figure narrow"' 'prefers-color-scheme:dark' '@media print' 'class="sortable"' 'id="from-0"'; do
    grep -qF -- "$part" report.html || complain "lacks $part"
  done
  [ "$(ls)" = "$(printf '%s\n' report.html summary.h5 z1.log z2.log z3.log)" ] || complain "other files: $(ls)"
  verdict
}

@test "without gnuplot the report is written, says what it lacks, and warns" {
  summary z1.log z2.log
  mkdir bin
  ln -s "$BUILD/zs-report" /bin/sh bin/
  run -0 --separate-stderr env PATH="$PWD/bin" zs-report summary.h5 -o report.md
  [ "$(head -n 1 <<<"$stderr")" = "zs-report: warning: loss_comparison.png: not drawn: gnuplot is not installed: install the package gnuplot-nox, or draw with --terminal" ]
  grep -q '^(Figure not drawn: ' report.md
  run -0 --separate-stderr env PATH="$PWD/bin" zs-report summary.h5 -o report.html
  [ -z "$stderr" ]
}

@test "stdin to stdout, in either format, from records too" {
  run -0 bash -c 'zs-parse z1.log z2.log | zs-aggregate | zs-report'
  [ "${lines[0]}" = "# Comparison of 2 conditions: tiny" ]
  run -0 bash -c 'zs-parse z1.log z2.log | zs-report -f html'
  [ "${lines[0]}" = "<!DOCTYPE html>" ]
  [ -z "$(ls ./*.png 2>/dev/null)" ]
}

@test "the fastest is named only where each ran twice and the intervals part" {
  summary z1.log z2.log z3.log; zs-report summary.h5 -o report.md
  grep -q '^- \*\*For time:\*\* none; a difference between single runs is not a reason' report.md || complain "named after single runs"
  for name in z1 z2 z3; do sed -E '1i run: repetition_of='$name'
    s/time: 0.([0-9]+)/time: 0.\10001/' $name.log >${name}_again.log; done
  summary z?.log z?_again.log; zs-report summary.h5 -o report.md
  grep -q '^- \*\*For time:\*\* `z1`. The intervals support it' report.md || complain "not named"
  sed -i -E 's/time: 0.[0-9]+/time: 0.1/' z?.log z?_again.log
  summary z?.log z?_again.log; zs-report summary.h5 -o report.md
  grep -q '^- \*\*For time:\*\* none; the intervals do not support a choice between' report.md || complain "named without support"
  verdict
}

@test "times and memory that cannot be are remarked, and no winner comes of them" {
  sed -i -E 's/time: 0.[0-9]+/time: 0/; s/peak_mem: [0-9]+/peak_mem: -5/' z1.log
  sed -i -E 's/time: 0.[0-9]+/time: -1/' z2.log
  summary z1.log z2.log
  run -0 zs-report summary.h5 -o report.md
  grep -qF -- '- `z1` and `z2`: 8 iteration times of 8 not a time: not above 0, or not finite.' report.md || complain "time 0 and -1"
  grep -qF -- '- `z1`: the peak memory is -5 bytes.' report.md || complain "memory"
  if grep -qE 'For (time|memory):\*\* `|nan' report.md; then complain "$(grep -E 'For (time|memory)|nan' report.md)"; fi
  verdict
}

@test "a sweep: the best first, every condition in one table, status 1 where one failed" {
  log z2 4 3 2 1.5 1.25 1.125 1 0.5 >z2.log
  summary z1.log z2.log z3.log
  run -0 zs-report --kind sweep summary.h5
  [[ $output == *"**Best:** ZeRO stage **2**, with a final loss (nats/token) of **0.50000**. The next is ZeRO stage **1**, with 2.0000. Each ran once,"* ]]
  sed -i 's/Loss: 0.5 /Loss: nan /' z2.log
  summary z1.log z2.log z3.log
  run -1 zs-report --kind sweep summary.h5
  [[ ${lines[1]} == "**Not all complete.** **1 of 3 conditions did not complete:** \`z2\`. **Best:** ZeRO stage **1**"* ]]
  run -2 --separate-stderr zs-report --kind sweep --value final_los summary.h5
  [ "$stderr" = "zs-report: a sweep cannot show 'final_los', did you mean 'final_loss'? (see zs-report --help)" ]
}

@test "zs-report recognizes a sweep by the settings that vary, not by digests or job numbers, and finds a fault of the layout" {
  cells() { # [DIGEST of the last]
    rm -f ./*.log
    for decay in 0.1 0.01; do
      for stage in 1 3; do
        log z$stage 4 3.5 3.25 3 2.75 2.5 2.25 $decay |
          sed "1i run: weight_decay=$decay\nrun: slurm_job_id=$stage$RANDOM" >d${decay}_z$stage.log
      done
    done
    sed -i "s/^state_digest: .*/state_digest: 0123456789abcdef0123456789abcdef/" d0.1_z?.log
    sed -i "s/^state_digest: .*/state_digest: f123456789abcdef0123456789abcdef/" d0.01_z?.log
    [ -z "${1-}" ] || sed -i "s/^state_digest: .*/state_digest: $1/" d0.01_z3.log
    summary ./*.log
  }
  cells
  run -0 zs-report summary.h5
  [[ ${lines[1]} == "**Same bits.** **Runs that train the same thing end with the same state digest**, and so with the same bits: 2 groups that differ in weight decay (0.01 and 0.1)."* ]]
  run -0 zs-report --kind sweep summary.h5
  [[ ${lines[1]} == "**Complete.** **Best:** weight decay **0.01**, ZeRO stage **1**, with a final loss"* ]]
  if grep -iE 'slurm|\| digest' <<<"$output"; then complain "machine facts as parameters"; fi
  zs-plot sweep summary.h5 -o sweep.svg
  grep -q '>weight decay<' sweep.svg || complain "no axis of the weight decay"
  grep -q '>ZeRO stage<' sweep.svg || complain "no axis of the stage"
  cells aaaa456789abcdef0123456789abcdef
  run -1 zs-report --kind sweep summary.h5
  [[ ${lines[1]} == "**Different bits.** **Runs that train the same thing do not end with the same bits:** with weight decay 0.01, \`d0.01_z1\` ends with"* ]]
  verdict
}

@test "statistics are those of the summary: what zs-aggregate left out, no report computes again" {
  runs() { # NAME: 4 runs of 60 steps of 0.1 s with 20 of 1 s in those of `new`
    for k in 1 2 3 4; do
      { printf 'run: %s\n' revision=$1 expected_steps=60 model.name=tiny
        for i in $(seq 60); do
          slow=0.1$((i % 7))$k
          if [ $1 = new ] && ((i % 6 == 0)); then slow=1.$((i % 7)); fi
          echo "Epoch 1, Step $i, Loss: $((100 - i)).5 sync: True time: $slow alloc_mem: 1 peak_mem: 2 tokens: 512"
        done; } >$1$k.log
    done
  }
  runs old; runs new
  zs-parse old?.log new?.log | zs-aggregate --by revision --outliers mad -o t.h5
  run -0 zs-report --kind revision --baseline old t.h5 -f json -o t.json
  [ "$(jq '.comparisons[0].time.ratio | . < 1.05 and . > 0.95' t.json)" = true ] || complain "$(jq .comparisons[0].time t.json)"
  [ "$(jq '[.revisions[].runs[].time_mean] | max < 0.2' t.json)" = true ] || complain "means with outliers"
  zs-parse old?.log new?.log | zs-aggregate --by revision -o t.h5
  run -1 zs-report --kind revision --baseline old t.h5
  [[ $output == *"slower**, beyond the 3 % allowed"* ]]
  verdict
}

@test "mixed logs: pairs that share steps are compared, and no winner is named among different models" {
  foreign() { # NAME LOSS...: a log of steps 10, 20, ... without times
    local step=0 loss
    for loss in "${@:2}"; do echo "{\"step\": $((step += 10)), \"loss\": $loss}"; done >$1.jsonl
  }
  foreign hf 4 3.5 3.25
  foreign other 4 3.5 3.5
  summary z1.log z2.log hf.jsonl other.jsonl
  run -0 zs-report summary.h5 -o report.md
  [[ $(first_paragraph report.md) == *" 4 pairs of conditions share no step with a loss. At the same step the losses differ by up to **0.25 nats/token** (step 30: \`hf.jsonl\` 3.25, \`other.jsonl\` 3.5)"* ]] ||
    complain "$(first_paragraph report.md)"
  if grep -q 'No two conditions have a loss' report.md; then complain "says that nothing is shared"; fi
  if grep -q '0 steps' report.md; then complain "0 steps"; fi
  grep -q '^- \*\*For time and memory:\*\* none; the conditions are not known to do the same work:' report.md || complain "recommends"
  sed -i 's/^run: model.name=tiny/run: model.name=gpt2/' z2.log
  summary z1.log z2.log
  run -0 zs-report summary.h5 -o report.md
  grep -q '^- \*\*For time and memory:\*\* none; the conditions are not known to do the same work: they differ in model (tiny and gpt2).' report.md || complain "recommends"
  if grep -q '^- \*\*For \(time\|memory\|loss\):\*\* `' report.md; then complain "a winner"; fi
  verdict
}

@test "revisions: same bits and speed 0, slower 1, one run each 3" {
  revisions() { # RUNS PERCENT: runs of old, and of new, which takes PERCENT of its time
    rm -f ./*_run*.log
    for k in $(seq "$1"); do
      log z1 4 3.5 3.25 3 2.75 2.5 2.25 2 | sed "s/time: 0.\(...\)/time: 0.\1$k/; s/^run: seed=1/&\nrun: revision=old/" >old_run$k.log
      sed 's/revision=old/revision=new/' old_run$k.log | awk -v f="$2" '{ for (i = 1; i < NF; i++) if ($i == "time:") $(i + 1) *= f / 100; print }' >new_run$k.log
    done
    zs-parse old_run*.log new_run*.log | zs-aggregate --by revision -o summary.h5
  }
  revisions 5 100
  run -0 zs-report --kind revision summary.h5 -o report.md
  [[ $(first_paragraph report.md) == "**Same or better.** \`new\` against \`old\`: **identical bits** (state digest \`0123456789abcdef0123456789abcdef\`). Time: no difference shown (no change);"* ]]
  [ -s revision_comparison.png ]
  revisions 5 110
  run -1 zs-report --kind revision summary.h5
  [[ $output == *"**10 % slower**, beyond the 3 % allowed"* ]]
  [[ $(zs-report --kind revision summary.h5 -f json | jq -r '.label, .comparisons[0].time.verdict') == $'Worse or different\nbad' ]]
  run -0 zs-report --kind revision --max_slowdown 15 summary.h5
  run -1 zs-report --kind revision --baseline old summary.h5
  printf '#zs-metrics 1\n#@ a revision=old\n#@ b revision=new\nrun\tstep\tloss\na\t1\t2\nb\t1\t2\n' | zs-aggregate --by revision -o untimed.h5
  run -3 zs-report --kind revision --baseline old untimed.h5 -f md
  [[ $output == *"Time: not known: at least one revision logged none. Memory: not logged."* ]] || complain "$output"
  revisions 1 110
  run -3 zs-report --kind revision summary.h5
  run -2 --separate-stderr zs-report summary.h5 -o summary.json
  [[ $stderr == *"only --kind revision and --gradients are written as JSON"* ]]
  run -2 --separate-stderr zs-report --kind revision <(zs-parse old_run1.log | zs-aggregate)
  [[ $stderr == *"a comparison of revisions needs two conditions (zs-aggregate --by revision)" ]]
}

@test "revisions: another training or arithmetic is said and not called worse; the layout is no excuse" {
  pair() { # ATTRIBUTE=OLD NEW: two runs each, other digests
    rm -f ./*_run*.log
    for k in 1 2; do
      log z1 4 3.5 3.25 3 2.75 2.5 2.25 2 | sed "1i run: revision=old\nrun: seed2=$k\nrun: $1" >old_run$k.log
      sed "s/^run: revision=.*/run: revision=new/; s/^state_digest: 0/state_digest: f/; s/^run: ${1%%=*}=.*/run: ${1%%=*}=$2/; s/Loss: 2.25 /Loss: 2.26 /" old_run$k.log >new_run$k.log
    done
    zs-parse old_run*.log new_run*.log | zs-aggregate --by revision -o summary.h5
  }
  pair weight_decay=0.1 0.2
  run -3 zs-report --kind revision summary.h5
  [[ $output == *"the revisions train different things: they differ in weight decay (0.1 and 0.2); "* ]]
  pair kernels=plain fused
  run -3 zs-report --kind revision summary.h5
  [[ $output == *"the revisions are not expected to be the same bits, because they differ in kernels (plain and fused); "* ]]
  pair passes=one two
  run -1 zs-report --kind revision summary.h5
}

@test "the reference batch: its numbers, and no claim that its logs do not carry" {
  batch=$ROOT/../shared/data/reference_batch
  [ -d "$batch" ] || skip "the reference batch is not here"
  zs-parse "$batch"/z1_baseline.log "$batch"/z3_deepcompile.log | zs-aggregate -o summary.h5
  run -0 zs-report summary.h5
  for number in 1.620094 0.363938 1.628428 0.367286; do grep -qF "$number" <<<"$output" || complain "lacks $number"; done
  [[ ${lines[1]} == "**Losses differ.** At the same step the losses differ by up to "*" No condition logged a state digest,"* ]] || complain "${lines[1]}"
  verdict
}

@test "zs-report takes a folder of logs, of a batch or of runs, and writes the report into it" {
  for name in logs batch runs/x runs/y; do mkdir -p $name; done
  cp z1.log z2.log logs/
  cp z1.log z2.log batch/
  echo '{"conditions": {"z1": {"exit_code": 0}, "z2": {"exit_code": 0}}, "condition_order": ["z1", "z2"]}' >batch/metadata.json
  zs-parse z1.log --format h5 -o runs/x/metrics.h5
  zs-parse z2.log --format h5 -o runs/y/metrics.h5
  for folder in logs batch runs; do
    run -0 --separate-stderr zs-report $folder
    [ "$output" = "Same bits: $folder/report.html, $folder/report.md" ] || complain "$folder: $output"
    [ -z "$stderr" ] || complain "$folder: $stderr"
    for file in report.html report.md report_numbers.tsv loss_comparison.png iteration_time_comparison.png memory_usage_comparison.png; do
      [ -s $folder/$file ] || complain "$folder: no $file"
    done
    cp $folder/report.md first.md
    zs-report $folder >/dev/null || complain "$folder: not again"
    cmp first.md $folder/report.md || complain "$folder: another report the second time"
  done
  zs-report z1.log z2.log -o two.html || complain "two logs"
  [ -s two.html ] || complain "no two.html"
  # What somebody else wrote is not written over, and nothing is written then.
  rm logs/report.html
  echo 'my notes' >logs/report.md
  refuses_with "zs-report: logs/report.md: is not a report of zs-report, and would be written over: name another file with -o" zs-report logs
  [ ! -e logs/report.html ] || complain "written in part"
  mkdir empty
  refuses_with "zs-report: empty: is a folder without anything that zs knows; zs-report takes logs, metric records, runs, runs of TensorBoard, W&B and MLflow, and folders of these" zs-report empty
  # A table of runs is no log, be it of zs or of others.
  for table in runs.csv zs-runs.csv; do printf 'run_id,final_train_loss\na,2.5\n' >empty/$table; done
  refuses_with "zs-report: empty: is a folder without anything that zs knows; zs-report takes logs, metric records, runs, runs of TensorBoard, W&B and MLflow, and folders of these" zs-report empty
  verdict
}

@test "folders of others' scripts: revisions by the names of their folders, detailed logs, TensorBoard's and W&B's runs" {
  for revision in old new; do
    for k in 1 2 3; do
      mkdir -p "there/logs_${revision}_run$k" && sed "s/time: 0.\(...\)/time: 0.\1$k/" z1.log >"there/logs_${revision}_run$k/debug.log"
    done
  done
  local own=there/revision_comparison
  run -0 --separate-stderr zs-report --kind revision --baseline old --test_config '--zero_stage 3 --batch_size 2' there
  [[ $output == *": ${own}_report.html, ${own}_report.md, ${own}_data.json" && -z $stderr ]] || complain "$output $stderr"
  [[ $(<${own}_report.md) == '# Comparison of new with old'*'zero\_stage 3'* ]] || complain "$(head -1 ${own}_report.md)"
  [ "$(jq -r '.revisions | length' ${own}_data.json)" = 2 ] || complain "no JSON"
  run -0 zs-report --kind revision --baseline old there # once more, over its own files
  run -2 zs-report there -f json -o - --kind revision
  [[ $output == *"there does not record which revision is the baseline: name it with --baseline"* ]] || complain "$output"
  run -0 zs-report there -f json -o - --kind revision --baseline old
  [ "$(jq -r '.revisions[].runs | length' <<<"$output")" = $'3\n3' ] || complain "not three runs each"
  run -0 zs-report there -f md
  [[ $output == *'`old_run1`'* ]] || complain "runs by their folders"
  mkdir detailed
  cp z1.log detailed/z1_detailed.log
  cp z2.log detailed/z2.log
  cp z2.log detailed/z2_detailed.log
  run -0 zs-report detailed -f md
  [[ $output == *"Both conditions"* && $output != *z2_detailed* ]] || complain "detailed logs: $(head -3 <<<"$output")"
  echo 'no metric of any trainer' >detailed/install.log
  run -1 --separate-stderr zs-report detailed -f md
  [[ $output == *"Both conditions"* ]] || complain "a stray log"
  [ "$stderr" = "zs-report: detailed/install.log: no metric line among 1 line" ] || complain "$stderr"
  cp -r "$ROOT/tests/data/trackers" trackers
  for folder in trackers/*/; do
    zs-parse "$folder" >records 2>/dev/null || continue
    zs-report "$folder" -f md >report.md || (($? == 1)) || complain "$folder"
    grep -q '^## Loss$' report.md || complain "$folder: no report"
  done
  verdict
}

@test "the lowest final loss is marked, where there is one, and no reason to choose" {
  sed -i 's/Loss: 2 /Loss: 1.875 /; s/^state_digest: 0/state_digest: f/; s/seed=1/seed=2/' z2.log
  summary z1.log z2.log z3.log
  run -0 zs-report summary.h5 -f md
  [ "$(grep -cF '**1.875**' <<<"$output")" = 1 ] || complain "$(grep -F 1.875 <<<"$output")"
  [[ $output == *"In bold: the lowest final loss of the conditions."* ]] || complain "not said"
  grep -qE '\| all steps \(s\)|\| all steps' <<<"$output" || complain "no time of all steps"
  summary z1.log z3.log
  run -0 zs-report summary.h5 -f md
  [[ $output != *"In bold:"* ]] || complain "equal losses are marked"
  verdict
}

@test "a log with a fault makes a report, says where, and ends with 1" {
  sed -i 's/Loss: 2.75 /Loss: 2,75 /' z1.log
  mkdir logs
  mv z1.log z2.log logs/
  run -1 --separate-stderr zs-report logs
  [[ $stderr == "zs-report: logs/z1.log:11: "* ]] || complain "$stderr"
  [ -s logs/report.md ]
  verdict
}

@test "a report begins with its pictures, folds its setup, and prints a remark on several conditions once" {
  sed -i 's/Step 4, /Step 9, /; /Step [5678],/d' z1.log z2.log
  summary z1.log z2.log z3.log
  zs-report summary.h5 -o report.html || (($? == 1))
  awk '/class="verdict/ { verdict = NR } /<figure>/ && !figure { figure = NR } /id="loss"/ { loss = NR } /id="setup"/ { setup = NR } /<details><summary>What all conditions share/ { fold = NR }
    END { exit !(verdict < figure && figure < loss && loss < setup && setup < fold) }' report.html || complain "another order"
  [ "$(grep -c '<figure>' report.html)" = 4 ] || complain "$(grep -c '<figure>' report.html) pictures"
  grep -q '95&nbsp;%' report.html || complain "95 % breaks over a line"
  [ "$(zs-report summary.h5 | grep -c 'between logged steps')" -le 1 ] || complain "a remark stands twice"
  verdict
}

@test "a trainer that counts micro-steps: the tokens of a logged step are those of one" {
  for log in z1 z2; do
    { printf 'run: %s\n' log_interval=1 batch_size=2 seq_length=64 gradient_accumulation_steps=4
      awk '/expected_steps/ { next } match($0, /Step [0-9]+/) { sub(/Step [0-9]+/, "Step " 4 * substr($0, RSTART + 5, RLENGTH - 5)) } 1' $log.log; } >micro_$log.log
  done
  summary micro_z1.log micro_z2.log; run zs-report summary.h5
  [[ $output == *"| tokens of a logged step (a micro-step) | 256 |"* ]]
}

@test "unwritable places and bad input are errors, and no part of a report remains" {
  summary z1.log
  run -2 --separate-stderr zs-report summary.h5 -o none/report.html
  [ "$stderr" = "zs-report: none/report.html: cannot be written by --output: there is no folder none" ]
  run -2 --separate-stderr zs-report none.h5
  [ "$stderr" = "zs-report: none.h5: No such file or directory" ]
  head -c 3000 summary.h5 >cut.h5
  run -2 zs-report cut.h5 -o report.md
  [ ! -e report.md ]
  run -2 bash -c 'zs-report summary.h5 >/dev/full'
}

@test "zs-report: the six logs that come with zs are a report of the same bits in one command" {
  pictures && cp -r "$ROOT/share/logs" six
  run -0 --separate-stderr zs-report six
  [ "$output" = "Same bits: six/report.html, six/report.md" ] || complain "$output"
  [ -z "$stderr" ] || complain "$stderr"
  for name in z1_baseline z3_deepcompile; do grep -q "$name" six/report.md || complain "$name"; done
  [ "$(head -c 8 six/loss_comparison.png | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || complain "no picture"
  verdict
}
