# SPDX-License-Identifier: Apache-2.0
# The repository: layers, links, sizes, licences, pages and scripts, and an installation that works.
setup() {
  load helper
  cd "$ROOT"
}

# The scripts of the project: files with a shell's first line, and what they source.
scripts() { git grep -lE '^#!.*\bbash$|^# shellcheck shell=bash' -- ':!*.bats'; }

@test "tests: one that complains fails, also if its last command succeeds" {
  cd "$BATS_TEST_TMPDIR"
  printf '%s\n' 'setup() { load "$ROOT/tests/helper"; }' '@test "one" { [ 1 = 2 ] || complain "wrong"; true; }' '@test "two" { true; }' >some.bats
  run -1 bats --tap some.bats
  [[ $output == *"not ok 1 one"*"ok 2 two"* ]]
}

@test "layers: no room of lib/ includes a room that lib/LAYERS does not allow or that is above it" {
  tests/layers
}

@test "layers: a room above, a room that is not allowed and an unknown folder are found" {
  mkdir -p "$BATS_TEST_TMPDIR"/lib/{low/base,low/cli,high/parse,high/new}
  cd "$BATS_TEST_TMPDIR"
  printf 'low/base tools\nlow/cli tools\nhigh/parse tools\n' >lib/LAYERS
  echo '#include "cli/run.hpp"' >lib/high/parse/log.cpp
  echo '#include "log.hpp"' >lib/high/new/log.cpp
  run -1 "$ROOT/tests/layers" .
  [ "$output" = "lib/high/new/log.cpp:1: lib/high/new is not in lib/LAYERS
lib/high/new/log.cpp:1: lib/high/new may not include \"log.hpp\" without its room
lib/high/parse/log.cpp:1: lib/high/parse may not include cli" ]
  rm -r lib/high/new
  printf 'low/base tools\nlow/cli tools parse\nhigh/parse tools cli\n' >lib/LAYERS
  run -1 "$ROOT/tests/layers" .
  [ "$output" = "lib/LAYERS:2: cli stands before parse, which it may include" ]
  printf 'low/base tools\nhigh/parse tools\nlow/cli tools parse\n' >lib/LAYERS
  run -1 "$ROOT/tests/layers" .
  [[ $output == "lib/LAYERS:3: low has rooms in two places"* ]]
}

@test "files: the top folder holds only known files" {
  run -0 git -c core.quotePath=false ls-files
  top=$(cut -d/ -f1 <<<"$output" | sort -u | xargs)
  [ "$top" = ".ci .clang-format .gitignore .shellcheckrc CONTRIBUTING.md LICENSE Makefile README.md bench debian docs lib man share slurm tests tools" ] || complain "$top"
  verdict
}

@test "links: a tool that includes no heavy layer loads neither LibTorch nor MPI" {
  for tool in $(make -s --no-print-directory light-tools); do
    ! heavy "$tool" || complain "$tool is light and loads $(ldd "$BUILD/$tool" | grep -oE 'lib(torch|mpi)[^ ]*' | xargs)"
  done
  verdict
}

@test "links: without an engine zs-verify compares, and the tools that train say what is missing" {
  cd "$BATS_TEST_TMPDIR"
  cp "$BUILD"/zs-{train,verify} .
  printf 'step,loss\n1,2.5\n2,2.25\n' >a.csv
  cp a.csv b.csv
  run -0 ./zs-verify a.csv b.csv
  [[ $output == *"verdict: equal"* || $output == *"verdict: exact"* ]] || complain "$output"
  for tool in zs-train zs-verify; do
    run -0 "./$tool" --help
    run -0 "./$tool" --version
    [[ $output == *' without an engine' ]] || complain "$output"
    run -2 "./$tool" --model_name tiny
    [[ $output == "$tool: training needs zs's engine, which is not installed here"* ]] || complain "$output"
  done
  verdict
}

@test "make help lists the targets" {
  run -0 make -s help
  for target in all light check demo bench install man lint clean deps; do
    [[ $output == *"make $target "* ]] || complain "make help does not list $target"
  done
  verdict
}

# Lines of the C++ sources in FOLDER... that compare a stage with a number: grep's status.
compares_a_stage() {
  local relation='([=!]=|[<>]=?)'
  grep -rnE --include='*.[ch]pp' --include='*.cu' --exclude='*_test.[ch]pp' \
    "stage[]\">)]* *$relation *[0-9]|(^|[^a-zA-Z_0-9.\"<>])[0-9]+ *$relation *[a-z_.*]*(->)?[a-z_]*stage\\b|switch \\([^)]*stage\\b" "$@"
}

@test "stage: lib/foundation/stage/stage.hpp alone compares a stage with a number" {
  mkdir "$BATS_TEST_TMPDIR/lib"
  cd "$BATS_TEST_TMPDIR"
  for line in 'if (shape_.stage == 3)' 'if (stage<2)' 'if (*state->stage != 0)' 'if (3 <= s.stage)' 'if (2 > plan->stage)' \
    'switch (shape.stage) {' 'if (config[setting<"zero.stage">] == 3)' 'if (divided_by(0), 1 == stage)'; do
    echo "$line" >lib/one.cpp
    compares_a_stage lib >found || complain "not found: $line"
  done
  for line in 'if (stage <= s.stage)' 'if (stages.size() > 1)' '{"zero_stage", "3"}' 'divided_by(3)' '#include "stage.hpp"'; do
    echo "$line" >lib/one.cpp
    run compares_a_stage lib
    [ "$status" = 1 ] || complain "found: $line"
  done
  cd "$ROOT"
  run compares_a_stage lib tools bench
  while read -r line; do
    [[ $line == lib/foundation/stage/stage.hpp:* ]] || complain "$line"
  done <<<"$output"
  [ "${#lines[@]}" -gt 0 ] || complain 'the rule itself is not found'
  verdict
}

@test "folders: lib/foundation/base/folder.cpp alone lists a folder, so that one that cannot be read is never empty" {
  grep -rnE --include='*.[ch]pp' --exclude='*_test.[ch]pp' 'directory_iterator\b' lib tools >"$BATS_TEST_TMPDIR/lists"
  # zs-runs reindex removes the leftovers of killed processes that it can remove.
  while read -r line; do
    [[ $line == lib/foundation/base/folder.cpp:* || $line == lib/evidence/registry/runs.cpp:* ]] || complain "$line"
  done <"$BATS_TEST_TMPDIR/lists"
  [ -s "$BATS_TEST_TMPDIR/lists" ] || complain 'the function itself is not found'
  verdict
}

@test "sizes: no source has more than 500 lines" {
  find lib tools bench tests slurm -type f \( -name '*.[ch]pp' -o -name '*.bats' -o -name '*.sbatch' -o -name '*.cu' \) -exec wc -l {} + >"$BATS_TEST_TMPDIR/sizes"
  (($(wc -l <"$BATS_TEST_TMPDIR/sizes") > 1000))
  while read -r lines file; do
    [[ $file == total ]] || ((lines <= 500)) || complain "$file has $lines lines: split it by noun"
  done <"$BATS_TEST_TMPDIR/sizes"
  verdict
}

@test "planted faults: each is of a line that its source has once" {
  while IFS='|' read -r name source from _; do
    [[ $name && $name != '#'* ]] || continue
    count=$(grep -cF -- "$from" "$source") || true
    [ "$count" = 1 ] || complain "$name of tests/planted/mutations: $source has ${count:-no} lines with $from"
  done <tests/planted/mutations
  verdict
}

@test "licence: LICENSE is Apache-2.0, and every source says so" {
  grep -q 'Apache License' LICENSE
  local sources
  mapfile -t sources < <(find lib tools bench tests -name '*.[ch]pp' -o -name '*.cu' -o -name '*.bats' && scripts)
  ((${#sources[@]} > 1000))
  awk 'FNR <= 2 && /SPDX-License-Identifier: Apache-2.0/ { print FILENAME } FNR == 2 { nextfile }' "${sources[@]}" | sort -u >"$BATS_TEST_TMPDIR/licensed"
  for file in $(printf '%s\n' "${sources[@]}" | sort -u | comm -23 - "$BATS_TEST_TMPDIR/licensed"); do complain "$file has no SPDX line"; done
  verdict
}

@test "man: the pages are what the option tables and the prose give" {
  for tool in $(tools); do
    "$tool" --man "man/$tool.prose" | diff -u "man/$tool.1" - || complain "man/$tool.1 is stale: make man"
  done
  verdict
}

@test "man: mandoc finds nothing to complain about" {
  # EXAMPLES and EXIT STATUS come in front of OPTIONS, earlier than mdoc's custom.
  for page in man/*.[0-9]; do
    ! mandoc -T lint -W warning "$page" | grep -v 'sections out of conventional order' || complain "$page"
  done
  verdict
}

@test "man: each page fits into 80 columns, as man writes it to a file" {
  command -v groff >/dev/null || no_package groff-base
  for page in man/*.[0-9]; do
    [ -z "$(groff -mandoc -Tutf8 -rLL=78n "$page" 2>&1 >/dev/null)" ] || complain "$page: $(groff -mandoc -Tutf8 -rLL=78n "$page" 2>&1 >/dev/null | head -n 1)"
  done
  verdict
}

@test "sandbox: its scripts print their help without Slurm" {
  for script in up down env status; do
    run -0 slurm/sandbox/$script --help
    [[ $output == "$script"* || $output == *"sandbox/$script"* ]] || complain "$script: $output"
    run -2 slurm/sandbox/$script --no-such
  done
  verdict
}

@test "man: the DESCRIPTION of a tool has at most 15 lines, and examples and the exit status come before the options" {
  for page in man/*.1; do
    mandoc -T ascii -O width=100 "$page" | sed 's/.\x08//g' >"$BATS_TEST_TMPDIR/text"
    lines=$(awk '/^[A-Z]/ { here = /^DESCRIPTION/; next } here && NF' "$BATS_TEST_TMPDIR/text" | wc -l)
    ((lines >= 1 && lines <= 15)) || complain "$page: the DESCRIPTION has $lines lines"
    [ "$(grep -E '^[A-Z][A-Z ]+$' "$BATS_TEST_TMPDIR/text" | grep -vx VERDICTS | sed -n 2,6p | xargs)" = 'SYNOPSIS DESCRIPTION EXAMPLES EXIT STATUS OPTIONS' ] || complain "$page: $(grep -E '^[A-Z][A-Z ]+$' "$BATS_TEST_TMPDIR/text" | xargs)"
  done
  verdict
}

@test "scripts: shellcheck finds nothing" {
  command -v shellcheck >/dev/null || no_package shellcheck
  shellcheck $(scripts)
}

@test "assertions: none in a .bats file is one that cannot fail" {
  tests/assertions tests/*.bats tests/slurm/*.bats
  local and='&& [ 2 = 2 ]'
  printf '@test "%s" {\n  %s\n  true\n}\n' one '! false' two "[ 1 = 1 ] $and" three "grep -q a b $and" >"$BATS_TEST_TMPDIR/idle.bats"
  run -1 tests/assertions "$BATS_TEST_TMPDIR/idle.bats"
  [[ $output == *"idle.bats:2:  ! false"*"idle.bats:6:  [ 1 = 1 ] $and"*"idle.bats:10:  grep -q a b $and"* ]]
}

@test "unity: groups have each source of lib/ once; a source that is edited, new, gone or ambiguous leaves the others as they are" {
  local sources compiled folder=$BATS_TEST_TMPDIR/build root=$PWD
  # What is compiled: the sources in groups, and those outside.
  compiled() {
    local units
    mapfile -t units < <("$root/share/unity" "$folder" lib: "$@")
    printf '%s\n' "${units[@]}" | sed -n "s|^unity/|$folder/unity/|p" | xargs -r sed -n 's|^#include "\(.*\)"$|lib/\1|p'
    printf '%s\n' "${units[@]}" | sed '/^unity/d'
  }
  mapfile -t sources < <(git ls-files 'lib/*.cpp')
  diff <(printf '%s\n' "${sources[@]}" | sort) <(compiled "${sources[@]}" | sort)
  [ "$(ls "$folder/unity" | wc -l)" -lt $((${#sources[@]} / 4)) ]

  cd "$BATS_TEST_TMPDIR" && rm -r build && mkdir -p lib/room build/obj/unity
  touch -d 2001-01-01 lib/room/{a,b,c,d}.cpp
  run -0 "$root/share/unity" build room: lib/room/{a,b,c,d}.cpp
  [ "$output" = unity/room-0.cpp ]
  touch -d 2002-01-01 build/obj/unity/room-0.o
  touch lib/room/b.cpp
  run -0 "$root/share/unity" build room: lib/room/{a,b,c,d}.cpp
  [ "$output" = $'unity/room-0.cpp\nlib/room/b.cpp' ]
  diff build/unity/room-0.cpp <(printf '#include "room/%s.cpp"\n' a c d)
  # Two at once, a new one, and one that is gone.
  touch lib/room/{a,c,new}.cpp
  run -0 "$root/share/unity" build room: lib/room/{a,b,c,new}.cpp
  [ "$output" = $'unity/room-0.cpp\nlib/room/b.cpp\nlib/room/new.cpp' ]
  diff build/unity/room-0.cpp <(printf '#include "room/%s.cpp"\n' a c)
  run -0 "$root/share/unity" build room: lib/room/b.cpp
  [ "$output" = lib/room/b.cpp ]

  # A private function that another source has too is in another group, and one that a header declares in none: it is called by
  # nobody else.
  mkdir -p lib/twins
  for source in a b c d; do printf 'namespace {\n\nstd::string only_in_%s(int x) {\n}\n}  // namespace\n' $source >lib/twins/$source.cpp; done
  printf 'namespace {\nint same(double x) {\n}\n}  // namespace\n' | tee -a lib/twins/a.cpp >>lib/twins/b.cpp
  echo 'std::string only_in_c(std::string_view text);' >lib/twins/twins.hpp
  touch lib/twins/e.cpp
  # Private types and constants of one name do not compile together.
  printf 'namespace {\nstruct Same {\n};\n}  // namespace\n' | tee lib/twins/f.cpp >lib/twins/g.cpp
  printf 'namespace {\nconstexpr int kSame = 1;\n}  // namespace\n' | tee lib/twins/h.cpp >lib/twins/i.cpp
  run -0 "$root/share/unity" build twins: lib/twins/{a,b,c,d,e,f,g,h,i}.cpp
  [ "$output" = $'unity/twins-0.cpp\nunity/twins-1.cpp\nlib/twins/c.cpp' ]
  diff build/unity/twins-0.cpp <(printf '#include "twins/%s.cpp"\n' a d e f h)
  diff build/unity/twins-1.cpp <(printf '#include "twins/%s.cpp"\n' b g i)
  # Two that are edited at once, and then have a name in common.
  touch -d 2002-01-01 build/obj/unity/twins-0.o
  printf 'namespace {\nint same(double x) {\n}\n}  // namespace\n' >>lib/twins/e.cpp
  touch lib/twins/a.cpp
  run -0 "$root/share/unity" build twins: lib/twins/{a,b,c,d,e,f,g,h,i}.cpp
  [ "$output" = $'unity/twins-0.cpp\nunity/twins-1.cpp\nlib/twins/c.cpp\nlib/twins/e.cpp' ]
  diff build/unity/twins-0.cpp <(printf '#include "twins/%s.cpp"\n' a d f h)

  # A group has sources of several rooms, where a name of another namespace is another name.
  mkdir -p lib/{one,two,three}
  named() { printf 'namespace zs::%s {\nnamespace {\nint same(double x) {\n}\n}  // namespace\n}  // namespace zs::%s\n' "$1" "$1"; }
  for room in one two three; do named $room >lib/$room/a.cpp; done
  named one >lib/two/b.cpp
  run -0 "$root/share/unity" build tools: lib/{one/a,two/b,two/a}.cpp train: lib/three/a.cpp
  [ "$output" = $'unity/tools-0.cpp\nunity/tools-1.cpp\nunity/train-0.cpp' ]
  diff build/unity/tools-0.cpp <(printf '#include "%s/a.cpp"\n' one two)
  diff build/unity/tools-1.cpp <(echo '#include "two/b.cpp"')
  # A private name that a header declares: no other source of the group names the room and has the name; no other line of a header does.
  printf 'namespace zs::one {\nint same(int x);  // same\n}  // namespace zs::one\n' >lib/one/one.hpp
  printf 'namespace zs::three {\nconst int kCalled = one::same(1);\n}  // namespace zs::three\n' >lib/three/call.cpp
  rm -r build/unity
  run -0 "$root/share/unity" build tools: lib/{one/a,three/call,two/a}.cpp
  diff build/unity/tools-0.cpp <(printf '#include "%s/a.cpp"\n' one two)
  diff build/unity/tools-1.cpp <(echo '#include "three/call.cpp"')
  echo 'inline int twice(int x) { return 2 * same(x); }' >>lib/one/one.hpp
  rm -r build/unity
  run -0 "$root/share/unity" build tools: lib/{one/a,three/call,two/a}.cpp
  [ "$output" = $'unity/tools-0.cpp\nlib/one/a.cpp' ]
  # Sources that use JSON stand together, and their aliases of one type are no clash.
  alias_of() { printf 'namespace zs::one {\nnamespace {\nusing %s = %s;\n}  // namespace\n}  // namespace zs::one\n' "$1" "$2"; }
  alias_of Word int | tee lib/one/b.cpp >lib/one/d.cpp
  alias_of Json nlohmann::json | tee lib/one/c.cpp >lib/one/e.cpp
  alias_of Word long >lib/one/f.cpp
  rm -r build/unity
  UNITY_LINES=10 run -0 "$root/share/unity" build tools: lib/one/{b,c,d,e}.cpp
  diff build/unity/tools-0.cpp <(printf '#include "one/%s.cpp"\n' c e)
  diff build/unity/tools-1.cpp <(printf '#include "one/%s.cpp"\n' b d)
  rm -r build/unity
  run -0 "$root/share/unity" build tools: lib/one/{b,c,e,f}.cpp
  diff build/unity/tools-0.cpp <(printf '#include "one/%s.cpp"\n' c e b)
  diff build/unity/tools-1.cpp <(echo '#include "one/f.cpp"')
}

@test "install: the tools, pages, completions and share/ arrive, and the tools find their share/" {
  local root=$BATS_TEST_TMPDIR/an\ image
  make -s BUILD="${BUILD#"$ROOT"/}" PREFIX=/usr DESTDIR="$root" install
  for tool in $(tools); do
    [ -x "$root/usr/bin/$tool" ] || complain "no bin/$tool"
    [ -s "$root/usr/share/man/man1/$tool.1" ] || complain "no page of $tool"
    bash -n "$root/usr/share/bash-completion/completions/$tool" || complain "the completion of $tool"
  done
  # A GPU's library goes along, and the tools find it.
  [ "$("$root/usr/bin/zs-train" --version)" = "$(zs-train --version)" ] || complain "installed: $("$root/usr/bin/zs-train" --version)"
  cd "$BATS_TEST_TMPDIR"
  # What was built in a cache of this user's looks for LibTorch beside it alone.
  local engine=$root/usr/lib/zs/engine
  if ldd "$BUILD/engine" | grep -q '/zs/libtorch-'; then
    [[ $(ldd "$engine") != */zs/libtorch-* ]] || complain "the installed engine loads $(ldd "$engine" | grep libtorch)"
  fi
  [[ $(ldd "$engine") != *'not found'* ]] || complain "the installed engine lacks $(ldd "$engine" | grep 'not found')"
  for file in apptainer.def modulefiles/zs probe/zs_probe/attaching.py; do [ -s "$root/usr/share/zs/$file" ] || complain "no share/zs/$file"; done
  diff <("$root/usr/bin/zs-sweep" --list) <(zs-sweep --list) || complain "the installed zs-sweep lists other sets"
  diff <(bash "$root/usr/share/zs/slurm/batch.sbatch" --list) <(zs-sweep --list) || complain "the installed batch.sbatch lists other sets"
  verdict
}

@test "house: a test that lacks a package says so by no_package, which is a failure in CI" {
  run -1 grep -nE 'skip "[^"]*(apt-get|package|PyTorch|python)' "$ROOT"/tests/*.bats
}
