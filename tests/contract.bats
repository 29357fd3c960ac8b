# SPDX-License-Identifier: Apache-2.0
# The rules for every tool. Each test walks all of build/zs-*, so a new tool is tested without an edit here, unless its
# operand is not an input file (`reading` below).
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
}

# reading TOOL FILE: sets `line`, the command that makes TOOL read FILE.
reading() {
  case $1 in
    zs-checkpoint) line=(zs-checkpoint show "$2") ;;
    zs-plot) line=(zs-plot loss "$2" -o picture.svg) ;;
    zs-runs) line=(zs-runs --registry "$2") ;;
    zs-sweep) line=(zs-sweep "$2" "$2") ;;
    zs-tokenize) line=(zs-tokenize --info "$2") ;;
    *) line=("$1" "$2") ;;
  esac
}

# Runs a command that should fail: status 2, nothing on stdout, and its own name before the error.
refuses() {
  local tool=$1 status=0
  "$@" >out 2>err </dev/null || status=$?
  [[ $status == 2 ]] || complain "$*: status $status"
  [ ! -s out ] || complain "$*: something on stdout: $(head -n 3 out)"
  grep -q "^$tool: " err || complain "$*: no message of $tool: $(head -n 3 err)"
}

@test "--help is on stdout, with status 0, and starts with Usage" {
  for tool in $(tools); do
    for option in --help -h; do
      run -0 --separate-stderr "$tool" $option
      [[ ${lines[0]} == "Usage: $tool "* ]] || complain "$tool $option: ${lines[0]}"
      [ -z "$stderr" ] || complain "$tool $option: something on stderr: $stderr"
    done
  done
  verdict
}

@test "--help ends with three examples and the name of the page" {
  for tool in $(tools); do
    run -0 "$tool" --help
    [[ ${lines[-1]} == "More: man $tool"?(; *) ]] || complain "$tool: ${lines[-1]}"
    sed -n '/^Examples:$/,/^More: /p' <<<"$output" >examples
    [ "$(grep -c "^  .*$tool" examples)" -ge 3 ] || complain "$tool: $(cat examples)"
    [ -e "$ROOT/man/$tool.1" ] || complain "$tool has no page"
  done
  verdict
}

@test "--version names the tool and a version, on one line" {
  for tool in $(tools); do
    run -0 --separate-stderr "$tool" --version
    [[ ${#lines[@]} == 1 && $output == "$tool "?* ]] || complain "$tool: $output"
  done
  verdict
}

@test "an unknown option is refused with status 2 and the nearest one is named" {
  for tool in $(tools); do
    refuses "$tool" --zs_no_such_option
    grep -qF "unknown option '--zs_no_such_option'" err || complain "$tool: $(cat err)"
    grep -qF "see $tool --help" err || complain "$tool does not say where to find help: $(cat err)"
    refuses "$tool" --versoin
  done
  verdict
}

@test "'_' and '-' are alike in option names" {
  for tool in $(tools); do
    for option in $("$tool" --help all | grep -oE '^ +(-., )?--[a-z]+_[a-z_]+' | grep -oE -- '--.*' | head -n 2); do
      "$tool" "$option" --zs_no >underscore 2>&1 </dev/null || true
      "$tool" "${option//_/-}" --zs_no >dash 2>&1 </dev/null || true
      diff underscore dash || complain "$tool takes $option and ${option//_/-} differently"
      ! grep -q "unknown option '$option'" underscore || complain "$tool does not know its own $option"
    done
  done
  verdict
}

@test "a full device is an error, also at the last write" {
  for tool in $(tools); do
    for option in --help --version; do
      "$tool" $option >/dev/full 2>err && status=0 || status=$?
      ((status == 2)) || complain "$tool $option >/dev/full: status $status"
      grep -q "^$tool: stdout: " err || complain "$tool $option >/dev/full: $(cat err)"
    done
  done
  verdict
}

@test "a file that is not there is an error that names it" {
  for tool in $(tools); do
    reading "$tool" no-such-file
    refuses "${line[@]}"
    grep -q "no-such-file" err || complain "${line[*]}: $(cat err)"
    [ ! -e picture.svg ] || complain "$tool left a picture of nothing"
  done
  verdict
}

@test "an empty file is an error that names it" {
  : >empty-file
  for tool in $(tools); do
    reading "$tool" empty-file
    refuses "${line[@]}"
    grep -q "empty-file" err || complain "${line[*]}: $(cat err)"
    [ ! -e picture.svg ] || complain "$tool left a picture of nothing"
  done
  verdict
}

@test "a folder in place of a file is an error that names it" {
  mkdir a-folder
  for tool in zs-aggregate zs-plot zs-report zs-sweep; do
    [ -x "$BUILD/$tool" ] || continue
    reading "$tool" a-folder
    refuses "${line[@]}"
    grep -q "a-folder" err || complain "${line[*]}: $(cat err)"
  done
  verdict
}

@test "no operand and '-' are both stdin" {
  printf 'Epoch 1, Step %d, Loss: 2.%d sync: True time: 0.1 alloc_mem: 10 peak_mem: 20\n' 10 5 20 4 30 3 >run.log
  zs-parse run.log >records.tsv
  zs-aggregate records.tsv >summary.h5
  for pair in "zs-parse run.log" "zs-aggregate records.tsv" "zs-report summary.h5"; do
    read -r tool file <<<"$pair"
    mkdir -p bare dash
    run -0 "$tool" -o bare/out <"$file"
    run -0 "$tool" -o dash/out - <"$file"
    diff -r bare dash || complain "$tool reads '-' differently"
  done
  verdict
}

@test "the ending of --output decides the form in every tool that has one, or is refused with those that are taken" {
  printf '%s\n' 'Epoch 1, Step 1, Loss: 2.5 sync: True time: 0.1 alloc_mem: 1 peak_mem: 2' \
    'Epoch 1, Step 2, Loss: 2.4 sync: True time: 0.1 alloc_mem: 1 peak_mem: 2' >x.log
  for tool in $(tools); do
    "$tool" --help all | grep -qE -- '-o, --output FILE( |$)' || continue
    for ending in docx xlsx jpg foo; do
      case $tool in
        zs-plot) words=(loss x.log) ;;
        zs-verify) words=(x.log x.log) ;;
        *) words=(x.log) ;;
      esac
      run -2 --separate-stderr "$tool" "${words[@]}" -o "x.$ending"
      [[ $stderr == "$tool: cannot write 'x.$ending': $tool writes ."* ]] || complain "$tool .$ending: $stderr"
      [ ! -e "x.$ending" ] || complain "$tool wrote x.$ending"
    done
    seen+=" $tool"
  done
  [ "$(wc -w <<<"$seen")" -ge 8 ] || complain "only$seen"
  zs-parse x.log -o x.csv
  [ "$(head -n 1 x.csv)" = run,step,epoch,loss,sync,iteration_time,alloc_mem,peak_mem,line ] || complain "$(cat x.csv)"
  zs-aggregate x.log -o s.csv 2>/dev/null || true
  [[ $(head -n 1 s.csv) == condition,* ]] || complain "s.csv: $(head -n 1 s.csv)"
  zs-aggregate x.log -o s.json 2>/dev/null || true
  jq -e .conditions s.json >/dev/null || complain "s.json is not JSON"
  zs-aggregate x.log -o s.tsv 2>/dev/null || true
  diff <(cut -f 1 s.tsv) <(cut -d , -f 1 s.csv) || complain "s.tsv and s.csv differ"
  sed 's/2\.4/2.3/' x.log >y.log
  zs-verify x.log y.log -o v.json >v.txt || true
  [ "$(jq -r .verdict v.json)" = "$(sed -n 's/^verdict: //p' v.txt)" ] || complain "v.json: $(cat v.json)"
  run -2 --separate-stderr zs-aggregate x.log --format csv -o s.json
  [[ $stderr == "zs-aggregate: --format csv does not suit the name 's.json': leave out one of them"* ]] || complain "$stderr"
  verdict
}

@test "every tool has a man page with every option of its --help" {
  mandoc -T ascii "$ROOT/man/zs-train.1" | sed 's/.\x08//g' >trains
  for tool in $(tools); do
    page=$ROOT/man/$tool.1
    [ -s "$page" ] || { complain "no man/$tool.1"; continue; }
    mandoc -T ascii "$page" | sed 's/.\x08//g' >page
    for option in $("$tool" --help all | grep -oE '^ +(-., )?--[a-z0-9_]+' | grep -oE -- '--.*'); do
      pages=(page)
      # A page may leave groups of options to that of zs-train.
      if grep -q '^\.\\" elsewhere ' "$page"; then pages+=(trains); fi
      grep -qE -- "$option([^a-z0-9_]|$)" "${pages[@]}" || complain "man/$tool.1 lacks $option"
    done
  done
  verdict
}

@test "every tool completes its options" {
  for tool in $(tools); do
    "$tool" --completion >completion
    bash -n completion
    for option in $("$tool" --help all | grep -oE '^ +(-., )?--[a-z0-9_]+' | grep -oE -- '--.*'); do
      grep -qwF -- "$option" completion || complain "the completion of $tool lacks $option"
    done
  done
  verdict
}

