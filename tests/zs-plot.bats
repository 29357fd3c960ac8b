# SPDX-License-Identifier: Apache-2.0
# Figures from summaries: pictures through gnuplot, text without it, and missing programs or columns.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
  for name in z1 z2 z3; do log $name 4 3.5 3.25 3 2.75 2.5 2.25 2 >$name.log; done
  zs-parse z1.log z2.log z3.log | zs-aggregate >same.h5
}

# log NAME LOSS...: a log of zs-train's form; time and memory follow from the name's digit.
log() {
  local stage=${1#z} step=0 loss
  shift
  echo "run: zero_stage=$stage"
  echo "run: expected_steps=$#"
  for loss; do
    step=$((step + 1))
    echo "Epoch 1, Step $step, Loss: $loss sync: True time: 0.${stage}0$((step % 3)) alloc_mem: $((1000000 / stage)) peak_mem: $((3000000 / stage)) tokens: 512"
  done
  echo "state_digest: 0123456789abcdef0123456789abcdef"
}

# A gnuplot that does what the rest of the arguments say.
fake_gnuplot() {
  mkdir -p fake
  printf '#!/bin/sh\n%s\n' "$*" >fake/gnuplot
  chmod +x fake/gnuplot
  PATH=$PWD/fake:$PATH
}

@test "each kind is a picture in each format" {
  for kind in loss difference time distribution memory throughput revision sweep; do
    for format in png svg pdf; do
      zs-plot "$kind" same.h5 -o "$kind.$format" || complain "$kind.$format"
    done
    [ "$(head -c 8 $kind.png | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || complain "$kind.png is no PNG"
    tail -c 10 $kind.svg | grep -q '</svg>' || complain "$kind.svg is cut"
    head -c 5 $kind.pdf | grep -q '%PDF-' || complain "$kind.pdf is no PDF"
  done
  verdict
}

@test "a picture goes to stdout with --format, and is the same as the file" {
  zs-plot loss same.h5 -o a.svg
  zs-plot loss -f svg -o - <same.h5 >b.svg
  cmp a.svg b.svg
}

@test "curves that coincide say so, and as much as is known" {
  run -0 zs-plot loss same.h5
  [[ $output == *"3 conditions, identical to the last bit (state digest"* ]]
  sed -i /state_digest/d z1.log
  zs-parse z1.log z2.log z3.log | zs-aggregate >fewer.h5
  run -0 zs-plot loss fewer.h5
  [[ $output == *"3 conditions with the same loss at every logged step"* ]]
  [[ $output != *identical* ]]
}

@test "a condition that failed stays in the figure, with its status" {
  (log z3 4 3.5 nan) >z3.log
  zs-parse z1.log z2.log z3.log | zs-aggregate >bad.h5 || (($? == 1))
  run -0 zs-plot time bad.h5
  [[ $output == *DIVERGED* ]]
  run -0 zs-plot loss bad.h5
  [[ $output == *"z3 (DIVERGED)"* ]]
  [[ $output == *"z3: 1 loss value not finite"* ]]
}

@test "in the terminal: 80 columns, 24 lines, ASCII outside UTF-8, no escapes into a pipe" {
  for kind in loss difference time distribution memory throughput sweep; do
    LC_ALL=C zs-plot "$kind" same.h5 >ascii
    LC_ALL=C grep -n '[^ -~]' ascii && complain "$kind: not ASCII"
    LC_ALL=C.UTF-8 zs-plot "$kind" same.h5 >utf8
    for text in ascii utf8; do
      [ "$(wc -L <$text)" -le 80 ] || complain "$kind: wider than 80 columns ($text)"
      [ "$(wc -l <$text)" -le 24 ] || complain "$kind: more than 24 lines ($text)"
    done
    grep -q $'\e' utf8 && complain "$kind: an escape in a pipe"
  done
  verdict
}

@test "on a terminal in colour, unless NO_COLOR is set" {
  command -v script >/dev/null || no_package bsdutils
  TERM=xterm script -qec "zs-plot time same.h5" /dev/null </dev/null >colour
  grep -q $'\e\[38;5;' colour
  NO_COLOR=1 TERM=xterm script -qec "zs-plot time same.h5" /dev/null </dev/null >plain
  run ! grep $'\e' plain
}

@test "without gnuplot the terminal works, and a picture's error says what to install" {
  mkdir bin
  for tool in zs-plot; do ln -s "$BUILD/$tool" bin/; done
  run -0 env PATH="$PWD/bin" zs-plot loss same.h5
  ln -s /bin/sh bin/sh
  run -2 --separate-stderr env PATH="$PWD/bin" zs-plot loss same.h5 -o x.png
  [ "$stderr" = "zs-plot: gnuplot is not installed: install the package gnuplot-nox, or draw with --terminal" ]
  [ ! -e x.png ]
}

@test "a gnuplot that fails, draws nothing or draws half leaves the last good picture" {
  zs-plot loss same.h5 -o x.png
  cp x.png good.png
  fake_gnuplot 'cat >/dev/null; echo "line 3: no such terminal" >&2; exit 1'
  run -2 --separate-stderr zs-plot loss same.h5 -o x.png
  [ "$stderr" = "zs-plot: gnuplot failed: line 3: no such terminal" ]
  fake_gnuplot 'cat >/dev/null'
  run -2 --separate-stderr zs-plot loss same.h5 -o x.png
  [ "$stderr" = "zs-plot: gnuplot drew nothing: it gave no reason" ]
  fake_gnuplot 'cat >/dev/null; head -c 500 good.png'
  run -2 --separate-stderr zs-plot loss same.h5 -o x.png
  [ "$stderr" = "zs-plot: gnuplot drew an incomplete picture (is the temporary folder full?)" ]
  fake_gnuplot 'exit 0'
  run -2 --separate-stderr zs-plot loss same.h5 -o x.png
  cmp x.png good.png
}

@test "zs-plot removes gnuplot's temporary folder, also after an error" {
  mkdir tmp
  TMPDIR=$PWD/tmp zs-plot loss same.h5 -o x.png
  fake_gnuplot 'exit 3'
  TMPDIR=$PWD/tmp run -2 zs-plot loss same.h5 -o x.png
  [ -z "$(ls tmp)" ]
}

@test "names of any kind are drawn as they are" {
  # shellcheck disable=SC2016
  name='a "b" $(touch harm) `touch harm` \n_{sub} '"'"'c'"'"' 100%'
  zs-parse --run "$name" z1.log | zs-aggregate >odd.h5
  zs-plot loss odd.h5 -o odd.svg
  # shellcheck disable=SC2016
  grep -qF 'a &quot;b&quot; $(touch harm) `touch harm` \n_{sub} &#39;c&#39; 100%' odd.svg
  for kind in time memory distribution sweep revision; do zs-plot $kind odd.h5 -o odd.png; done
  [ ! -e harm ]
}

@test "records without a summary are summarised on the way" {
  run -0 zs-plot time <(zs-parse z1.log z2.log)
  direct=$output
  run -0 zs-plot time <(zs-parse z1.log z2.log | zs-aggregate)
  [ "$direct" = "$output" ]
}

@test "logs, runs and folders are enough: no summary is needed" {
  run -0 zs-plot time z1.log z2.log
  direct=$output
  run -0 zs-plot time <(zs-parse z1.log z2.log | zs-aggregate)
  [ "$direct" = "$output" ]
  mkdir logs saved_models saved_models/one saved_models/two
  cp z1.log z2.log logs/
  run -0 zs-plot time logs
  [ "$direct" = "$output" ]
  zs-parse z1.log --format h5 -o saved_models/one/metrics.h5
  zs-parse z2.log --format h5 -o saved_models/two/metrics.h5
  run -0 zs-plot time saved_models
  [ "$direct" = "$output" ]
  run -2 --separate-stderr zs-plot loss none
  [ "$stderr" = "zs-plot: no run 'none', and no file or folder of that name" ]
}

@test "more than eight curves: five in colour, no colour twice, the rest in grey" {
  for i in 1 2 3 4 5 6 7 8 9 10 11; do log z1 4 3.5 3.$i 3 2.75 2.5 2.25 "2.$((i + 10))" | sed "1i run: seed=$i" >s$i.log; done
  zs-plot loss s*.log -o many.svg
  count=$(grep -oE 'stroke="#[0-9A-F]{6}" stroke-width="2.2"' many.svg | sort -u | wc -l)
  [ "$count" = 5 ] || complain "$count colours"
  grep -q '>6 others<' many.svg || complain "the others are not named"
  verdict
}

@test "repeated runs: the band is named, and one that is not finite does not end the others" {
  for k in 1 2 3; do log z1 4 3.5 3.$k 3 2.75 2.5 2.25 2.$k | sed "1i run: seed=$k" >a$k.log; done
  sed -i '/Step [5678],/s/Loss: [0-9.]*/Loss: nan/' a3.log
  zs-parse a?.log | zs-aggregate --by zero_stage -o band.h5 || (($? == 1))
  run -0 zs-plot loss band.h5
  [[ $output == *"band: smallest to largest of 3 runs; line: their mean"* ]] || complain "$output"
  [[ $output == *"1: not finite in 1 run from step 5; the curve is of the others"* ]] || complain "$output"
  verdict
}

@test "revisions: ratios with their intervals; what is not there is left out, and no reason for no figure" {
  for r in old new; do
    for k in 0 1 2 3; do
      log z1 4 3.5 3.25 3 2.75 2.5 2.25 2 | sed "1i run: revision=$r\nrun: run=$k
        s/ time: 0\.10/ time: 0.1$k/; s/ alloc_mem:.*tokens/ tokens/" >$r$k.log
    done
  done
  zs-parse old?.log new?.log | zs-aggregate --by revision -o rev.h5
  run -0 zs-plot revision rev.h5 --baseline old
  [[ $output == *"Ratio to old"*"new time"* ]] || complain "$output"
  if [[ $output == *memory\ * && $output == *"new memory"* ]]; then complain "memory that nobody logged"; fi
  [[ $output == *"shaded: within 3.0 % of old"* ]] || complain "no band"
  verdict
}

@test "the theme in share/ is the one in use without --theme" {
  zs-plot loss same.h5 -o a.svg
  zs-plot loss same.h5 -o b.svg --theme "$ROOT/share/plot/theme"
  cmp a.svg b.svg
}

@test "axes and smoothing" {
  run -0 zs-plot loss same.h5 --xaxis tokens --smooth 3
  [[ $(tr -s ' \n' ' ' <<<"$output") == *"smoothed: the mean of 3 logged points around each, fewer at the ends; faint: as logged"* ]]
  [[ $output == *4000* ]]
  zs-plot loss same.h5 --log --xaxis time -o x.svg
  grep -q 'training time' x.svg
}

@test "the difference to a baseline is taken at the same step" {
  (log z3 4 3.5 3.25 3 2.75 2.5 2.5 2.5) >z3.log
  zs-parse z1.log z2.log z3.log | zs-aggregate >other.h5
  run -0 zs-plot difference other.h5 --baseline z2
  [[ $output == *"1 condition of 2 without a difference at any common step"* ]]
  run -2 --separate-stderr zs-plot difference other.h5 --baseline z4
  [ "$stderr" = "zs-plot: no condition 'z4' to be the baseline, did you mean 'z1'? (see zs-plot --help)" ]
}

@test "a sweep marks the best, and says when it has nothing to show" {
  run -0 zs-plot sweep same.h5 --value time_mean
  [[ $output == *"best: ZeRO stage 1, 101.0 ms"* ]]
  run -2 --separate-stderr zs-plot sweep same.h5 --value final_los
  [ "$stderr" = "zs-plot: a sweep cannot show 'final_los', did you mean 'final_loss'? (see zs-plot --help)" ]
  run -2 --separate-stderr zs-plot sweep same.h5 --rows zero_stag
  [ "$stderr" = "zs-plot: no run has the attribute 'zero_stag', did you mean 'zero_stage'? (see zs-plot --help)" ]
}

@test "what cannot be drawn is an error that says why, and no file" {
  check() { # MESSAGE ARGUMENT...
    local message=$1
    shift
    run "-${status_of:-2}" --separate-stderr zs-plot "$@"
    [ "$stderr" = "zs-plot: $message" ] || complain "$*: $stderr"
  }
  check "unknown kind of figure 'tme', did you mean 'time'? (see zs-plot --help)" tme same.h5
  check "cannot write 'x.gif': zs-plot writes .png, .svg, .pdf; any other name needs --format (see zs-plot --help)" loss same.h5 -o x.gif
  check "which figure? give its kind; --list lists them (see zs-plot --help)"
  check "unknown kind of figure 'losss', did you mean 'loss'? (see zs-plot --help)" losss none
  check "none.h5: No such file or directory" loss none.h5 -o x.png
  status_of=3 # there is nothing to draw
  check "scaling needs conditions with tokens per second at two numbers of ranks (attribute world_size) or more" scaling same.h5 -o x.png
  grep -v Epoch z1.log >empty.log
  zs-parse z1.log | sed 's/tokens/other/' | zs-aggregate >no-tokens.h5
  check "no condition of the summary has tokens per second (the logs must say tokens)" throughput no-tokens.h5 -o x.png
  [ ! -e x.png ] || complain "a file remains"
  verdict
}

@test "a full device is an error" {
  run -2 --separate-stderr bash -c 'zs-plot loss same.h5 >/dev/full'
  run -2 --separate-stderr bash -c 'zs-plot loss same.h5 -f png -o - >/dev/full'
}

@test "curves of any numbers are drawn: flat to an ulp, at both ends of the doubles, on either axis" {
  losses() { local step=0 loss; for loss; do step=$((step + 1)); echo "{\"step\": $step, \"loss\": $loss}"; done; }
  losses 5.0 5.000000000000001 5.0 >ulp.jsonl
  losses 1e308 -1e308 5e307 >huge.jsonl
  losses 1e-320 1e308 1 >wide.jsonl
  losses 5e-324 1e-323 1.5e-323 >tiny.jsonl
  losses 0 0 1e-300 >zero.jsonl
  for log in *.jsonl; do
    zs-parse "$log" | zs-aggregate >summary.h5
    for axis in "" --log; do
      run -0 timeout "$HANG" zs-plot loss summary.h5 $axis
      [[ $output != *inf* && ${#lines[@]} -ge 3 ]] || complain "$log $axis: $output"
      run -0 timeout "$HANG" zs-plot loss summary.h5 $axis -o "$log.svg"
    done
    run timeout "$HANG" zs-report summary.h5 --format html -o report.html
    ((status < 2)) || complain "$log: $output"
    grep -q '<svg' report.html || complain "$log: no picture in the report"
    if grep -Eq '[ML"](inf|nan|-nan)' report.html; then complain "$log: a place that is no number"; fi
  done
  zs-parse huge.jsonl | zs-aggregate >summary.h5
  run -0 zs-plot loss summary.h5
  [[ $output == *"loss / 1e308"* ]] || complain "$output"
  zs-parse wide.jsonl | zs-aggregate >summary.h5
  zs-plot loss summary.h5 --log --format svg -o wide.svg # three points: gnuplot's own axes have no place for 1e308
  [ "$(grep -o '<circle' wide.svg | wc -l)" -eq 3 ] || complain "$(grep -c '<circle' wide.svg) points"
  verdict
}

@test "a name cannot steer the terminal, in a picture, a table or a message" {
  name=$(printf 'a\033[31mb\302\2332J\nc')
  printf '{"step":1,"loss":1}\n{"step":2,"loss":2}\n' | zs-parse --run "$name" - >records
  zs-aggregate records >summary.h5
  clean() { if LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$1"; then complain "$1: $(cat -v "$1")"; fi; }
  zs-plot loss summary.h5 >picture
  zs-aggregate --format table summary.h5 >table
  zs-aggregate --format tsv summary.h5 >tsv
  zs-aggregate records records 2>message || true
  for text in records picture table tsv message; do
    clean $text
    grep -qF 'a\x1B[31mb' $text || complain "$text: $(cat -v $text)"
  done
  [ "$(zs-aggregate summary.h5 --format json | jq -r '.conditions[0].condition')" = "$name" ] || complain "the name is another"
  verdict
}

@test "zs-plot: error bars of the standard deviation on request, and said" {
  { printf '#zs-metrics 1\nrun\tstep\tloss\titeration_time\n'; for i in 1 2 3 4 5 6 7 8; do printf 'a\t%s\t2\t%s\n' $i 0.$((8 + i % 2 * 4)); done; } >r.tsv
  run -0 zs-plot time r.tsv --error std
  [[ $output == *"standard deviation of the iteration times"* ]] || complain "$output"
  # After five steps of warm-up 0.8, 0.12 and 0.8 s are left.
  [[ $output == *"570 ± 390 ms"* ]] || complain "$output"
  run -0 zs-plot time r.tsv
  [[ $output == *"95 % interval of the mean"* ]] || complain "$output"
  verdict
}
