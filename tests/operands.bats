# SPDX-License-Identifier: Apache-2.0
# What a user names: every tool takes the same things for the same, or refuses them with the same words.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
}

# log FACTOR: a log of eight steps of a loss.
log() { awk -v k="$1" 'BEGIN { for (i = 1; i <= 8; i++) print "Epoch 1, Step " i ", Loss: " 4 / (i + k) " sync: True time: 0." k " alloc_mem: 1000000 peak_mem: 2000000" }'; }

@test "records are told by their first bytes, through compression, by every tool" {
  log 1 >a.log
  log 2 >b.log
  zs-parse a.log b.log >two.tsv
  grep -v '^#' two.tsv >bare.tsv
  printf '\xEF\xBB\xBF' | cat - two.tsv >marked.txt
  gzip -c two.tsv >two.gz
  zstd -q two.tsv -o two.tsv.zst
  zs-parse a.log b.log --format h5 -o two.h5
  gzip -c two.h5 >h5.packed
  for file in two.tsv bare.tsv marked.txt two.gz two.tsv.zst two.h5 h5.packed; do
    [ "$(zs-aggregate "$file" -f tsv | cut -f1 | paste -sd,)" = condition,a,b ] || complain "zs-aggregate $file"
    [ "$(zs-report "$file" -f md | grep -oE '^\| `?[ab]`? ' | sort -u | tr -d '|` \n')" = ab ] || complain "zs-report $file"
    zs-plot loss "$file" -o picture.svg || complain "zs-plot $file"
    for name in a b; do grep -q ">$name<" picture.svg || complain "zs-plot $file: no $name"; done
    run -2 zs-verify "$file" a.log
    [[ $output == *"holds 2 runs, expected one"* ]] || complain "zs-verify $file: $output"
  done
  verdict
}

@test "a name that is no run is told alike by every tool, with the nearest" {
  for name in alpha1 alpha2; do zs-runs add -r saved_models run_name=$name >/dev/null; done
  for id in saved_models/2*; do log 1 | zs-parse --format h5 -o "$id/metrics.h5"; done
  for command in 'zs-runs show' zs-report 'zs-plot loss' zs-aggregate 'zs-verify alpha1' 'zs-plot gradients' 'zs-report --gradients'; do
    # shellcheck disable=SC2086
    run -2 $command alpha3
    [[ $output == "${command%% *}: no run 'alpha3', did you mean 'alpha1'?" ]] || complain "$command: $output"
    # shellcheck disable=SC2086
    run -2 $command 2
    [[ $output == "${command%% *}: 2 runs begin with '2': "* ]] || complain "$command: $output"
  done
  verdict
}
