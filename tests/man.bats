# SPDX-License-Identifier: Apache-2.0
# Runs the examples of the man pages: every line under EXAMPLES that starts with `$ `, in order. It must have the status that
# the page gives. The folder has logs and runs of two trainings, a, b, a summary, a configuration, a sweep, a checkpoint of
# DeepSpeed and a recording with its golden.
setup_file() {
  load helper
  warm
  mkdir "$BATS_FILE_TMPDIR/folder"
  cd "$BATS_FILE_TMPDIR/folder"
  cp "$ROOT/share/configs/config.yaml" "$ROOT/share/configs/sweep.yaml" .
  tar xzf "$ROOT/tests/data/checkpoints/0.19.8-deepspeed-stage2-ranks2-dtypebf16.tar.gz" && mv checkpoint checkpoints
  cp -r "$ROOT/tests/data/probe/plain" probe
  zs-verify --golden goldens probe --update
  sed -i '1s/"id": "/&1/' probe/rank-*.jsonl # a recording of its own
  small=(--model_name tiny --num_layers 2 --batch_size 2 --seq_length 32 --max_steps 12 --save_steps 10 --log_interval 2)
  [ -x "$BUILD/zs-train" ] || return 0
  mpirun --oversubscribe --bind-to none -n 2 zs-train "${small[@]}" --zero_stage 1 --run_name a --probe first >a.log
  mpirun --oversubscribe --bind-to none -n 2 zs-train "${small[@]}" --zero_stage 2 --run_name b --probe second >b.log
  cp a.log run.log
  zs-parse a.log b.log | zs-aggregate -o summary.h5
}

setup() {
  load helper
  warm
  load examples
  cd "$BATS_FILE_TMPDIR/folder"
}

# What stands under EXAMPLES of a page.
section() { mandoc -T ascii -O width=200 "$1" | sed 's/.\x08//g' | awk '/^[A-Z]/ { here = /^EXAMPLES/; next } here'; }

# The commands of it, one per line; a line that ends with \ goes on in the next.
examples() {
  section "$1" | awk '
    more || /^ *\$ / { sub(/^ *(\$ )?/, ""); more = sub(/\\$/, ""); printf "%s%s", $0, more ? " " : "\n" }'
}

@test "man: the examples of every page run, with the status that they say" {
  [ -s summary.h5 ] || skip "zs-train is not built: make all"
  for page in "$ROOT"/man/*.[0-9]; do
    # Each page in a folder of its own: its examples may write over what the next page reads.
    cp -r "$BATS_FILE_TMPDIR/folder" "$BATS_TEST_TMPDIR/${page##*/}"
    cd "$BATS_TEST_TMPDIR/${page##*/}"
    ln -s "$ROOT/slurm"
    before=$complaints
    while IFS= read -r line; do follow "$line"; done < <(examples "$page")
    ((complaints == before)) || echo "... of ${page##*/}"
  done
  ((followed >= 40)) || complain "only $followed examples ran"
  verdict
}

@test "man: every page has an example, and every command of one stands behind a \$" {
  for page in "$ROOT"/man/*.[0-9]; do
    [ -n "$(examples "$page")" ] || complain "${page##*/}: no example"
    section "$page" | grep -E '^ *(zs-[a-z]+ |mpirun |bash |sbatch |slurm/)' >bare || continue
    complain "${page##*/}: does not run: $(cat bare)"
  done
  verdict
}
