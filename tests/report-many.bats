# SPDX-License-Identifier: Apache-2.0
# Reports of very many runs, of very long runs, of one run, and of records that lack something.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
}

@test "zs-report: of 300 logs the runs that stand out are named first, and the page stays small" {
  python3 "$ROOT/tests/many_logs.py" logs
  run -1 zs-report logs -o report.html
  grep -q '<details class="pages"><summary>Where the numbers come from' report.html # folded in print: 125 sheets
  head -c 60000 report.html | sed -n 's|.*<div class="verdict[^>]*>||; s|<[^>]*>||g; /stand out/p' >first
  for sentence in 'hf_055 DIVERGED' 'ref_070 to ref_074 are ' 'slower than the 195 runs like them' 'ref_120 and ref_150 have ' 'higher loss than the 198 runs like them' \
    'hf_077 has ' 'lower throughput than the 98 runs like it'; do
    grep -qF "$sentence" first || complain "no '$sentence' in $(cat first)"
  done
  (($(stat -c %s report.html) < 3000000)) || complain "$(stat -c %s report.html) bytes"
  [[ $(sed -n 's|.*<h1>\(.*\)</h1>.*|\1|p' report.html) == "Comparison of 300 conditions" ]] || complain "the title names a model"
  verdict
}

@test "zs-report: a log of 100,000 steps keeps its peak, its hollow and its gap in a small page" {
  python3 "$ROOT/tests/many_logs.py" --long long.log 100000
  run -1 zs-report long.log -o report.html
  (($(stat -c %s report.html) < 3000000)) || complain "$(stat -c %s report.html) bytes"
  for value in '9.5,' '0.25,' 'null,'; do
    grep -F '<script type="application/json">' report.html | grep -qF "$value" || complain "no $value"
  done
  verdict
}

@test "zs-report: all that a shell finds in a registry is its runs" {
  for loss in 2 3; do zs-record --registry saved -- echo "step 1 loss $loss" >/dev/null; done
  [ -s saved/runs.csv ] || complain "no table of runs"
  run -0 --separate-stderr zs-report saved/*
  [[ ${lines[0]} == "# Comparison of 2 conditions"* ]] || complain "$output"
  verdict
}

@test "zs-report: a single run has a report of its own" {
  printf '#zs-metrics 1\n#@ mine model.name=gpt2\n#@ mine expected_steps=3\n#@ mine exit_code=0\nrun\tstep\tloss\titeration_time\npeak\n' |
    sed '$d' >one.tsv
  printf 'mine\t%s\t%s\t0.5\n' 1 3 2 2 3 1.5 >>one.tsv
  run -0 --separate-stderr zs-report one.tsv
  [[ ${lines[0]} == "# Training mine, gpt2" ]] || complain "${lines[0]}"
  [[ ${lines[1]} == *"**Complete.** \`mine\` completed 3 steps. The loss goes from 3 to **1.5**"* ]] || complain "${lines[1]}"
  [[ $output != *"condition that did not fail"* ]] || complain "$output"
  sed 's/exit_code=0/exit_code=9/' one.tsv >failed.tsv
  run -1 --separate-stderr zs-report failed.tsv
  [[ ${lines[1]} == *"**Not complete.** \`mine\` FAILED (exit code 9)"*"A step takes 500.0 ms on average."* ]] || complain "${lines[1]}"
  verdict
}

@test "zs-report: a sweep of which some were evaluated is judged by the loss that all have, and says so" {
  {
    echo '#zs-metrics 1'
    for k in 1 2 3; do printf '#@ s%d exit_code=0\n#@ s%d learning_rate=0.%d\n' $k $k $k; done
    printf 'run\tstep\tloss\tvalid_loss\ns1\t1\t4.5\t3.5\ns2\t1\t4.25\t\ns3\t1\t4.125\t\n'
  } >some.tsv
  run -0 zs-report --kind sweep some.tsv
  [[ $output == *"**Best:** learning rate **0.3**, with a final loss of **4.1250**."*"is not known. 1 of 3 conditions has a validation loss, so the final loss counts."* ]] || complain "$output"
  run -0 zs-report --kind sweep --value valid_loss some.tsv
  [[ $output == *"**Best:** learning rate **0.1**, with a validation loss of **3.5000**. 1 of 3 conditions has a validation loss."* ]] || complain "$output"
  run -0 bash -c "sed -E 's/^(s[23].*\t)$/\1 3.75/; s/\t /\t/' some.tsv | zs-report --kind sweep"
  [[ $output == *"with a validation loss of **3.5000**"* && $output != *" 3 conditions ha"* ]] || complain "$output"
  verdict
}
