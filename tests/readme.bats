# SPDX-License-Identifier: Apache-2.0
# README.md does what it says: its indented commands, in order, in a folder that has nothing but what a fresh and built
# checkout has. Those of not_here (tests/examples.bash) are looked at only.
setup() {
  load helper
  load examples
  cd "$BATS_TEST_TMPDIR"
}

# The commands of README.md, one per line; a line that ends with \ goes on in the next.
commands() {
  awk '
    /^#/ { listing = /^### What an experiment leaves/ }
    !listing && (more || /^    [^ ]/) { sub(/^ */, ""); more = sub(/ *\\$/, ""); printf "%s%s", $0, more ? " " : "\n" }' "$ROOT/README.md"
}

@test "readme: every command runs, in order, with the status that a reader expects" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  for folder in slurm share man; do ln -s "$ROOT/$folder"; done
  ln -s "$BUILD" build
  PATH=$(tr : '\n' <<<"$PATH" | grep -vxF "$BUILD" | paste -sd:)
  while IFS= read -r line; do follow "$line"; done < <(commands)
  ((followed >= 20)) || complain "only $followed commands ran"
  for file in loss.png report.html gradients.html; do [ -s $file ] || complain "no $file"; done
  verdict
}

@test "readme: the places that it names exist" {
  for name in $(grep -oE '(share|slurm|man|bench|docs|lib|tests)/[A-Za-z0-9_./-]+[a-z0-9]' "$ROOT/README.md" | sort -u); do
    [[ -e $ROOT/$name || -e $ROOT/$name.cpp ]] || complain "there is no $name"
  done
  verdict
}

@test "demo: ends with six commands to try, which run on what it made" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  run -0 --separate-stderr "$ROOT/share/demo" minimal_test -- --num_layers 1 --seq_length 16 --max_steps 4 --log_interval 1
  grep '^  ' <<<"$output" >next
  [ "$(wc -l <next)" = 6 ]
  while IFS= read -r line; do follow "${line#  }"; done <next
  ((followed == 6)) || complain "$followed of 6 ran"
  verdict
}
