# SPDX-License-Identifier: Apache-2.0
# The examples of the man pages run: each line under EXAMPLES that starts with `$ `, in a folder with a log, two more to
# compare, a summary, a configuration and a sweep.
setup_file() {
  load helper
  mkdir "$BATS_FILE_TMPDIR/folder"
  cd "$BATS_FILE_TMPDIR/folder"
  cp "$ROOT/share/configs/config.yaml" "$ROOT/share/configs/sweep.yaml" .
  small=(--model_name tiny --num_layers 2 --batch_size 2 --seq_length 32 --max_steps 12 --log_interval 2)
  [ -x "$BUILD/zs-train" ] || return 0
  mpirun --oversubscribe --bind-to none -n 2 zs-train "${small[@]}" --zero_stage 1 --output_dir "$PWD/a" >a.log
  mpirun --oversubscribe --bind-to none -n 2 zs-train "${small[@]}" --zero_stage 2 --output_dir "$PWD/b" >b.log
  cp a.log run.log
  zs-parse a.log b.log | zs-aggregate -o summary.h5
}

setup() {
  load helper
  cd "$BATS_FILE_TMPDIR/folder"
}

# The commands of a page's EXAMPLES, one per line; a line that ends with \ goes on in the next.
examples() {
  mandoc -T ascii "$1" | sed 's/.\x08//g' | awk '
    /^[A-Z]/ { here = /^EXAMPLES/ }
    !here { next }
    more || /^ *\$ / { sub(/^ *(\$ )?/, ""); more = sub(/\\$/, ""); printf "%s%s", $0, more ? " " : "\n" }'
}

@test "the examples of the man pages run" {
  [ -s summary.h5 ] || skip "zs-train is not built"
  count=0
  for page in "$ROOT"/man/*.[0-9]; do
    # Each page in a folder of its own: its examples may write over what the next page reads.
    cp -r "$BATS_FILE_TMPDIR/folder" "$BATS_TEST_TMPDIR/${page##*/}"
    cd "$BATS_TEST_TMPDIR/${page##*/}"
    while IFS= read -r line; do
      case $line in
        sbatch* | bash* | eval* | slurm/* | man*) continue ;; # tests/batch.bats and tests/sandbox.bats run these
      esac
      count=$((count + 1))
      timeout 120 bash -o pipefail -c "$line" >out 2>&1 </dev/null || complain "${page##*/}: $line: status $?: $(tail -n 5 out)"
    done < <(examples "$page")
  done
  ((count > 0)) || complain "no page has an example"
  verdict
}

@test "every man page has an example" {
  for page in "$ROOT"/man/zs-*.1; do
    [ -n "$(examples "$page")" ] || complain "${page##*/}"
  done
  verdict
}
