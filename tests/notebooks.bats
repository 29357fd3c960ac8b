# SPDX-License-Identifier: Apache-2.0
# Runs the blocks of docs/notebooks.md, in order, in a folder with the files that its first lines make.
setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  cd "$BATS_TEST_TMPDIR"
  ln -s "$ROOT/share"
  while IFS= read -r line; do bash -c "$line"; done < <(sed -n 's/^    \(zs-[^#]*\).*/\1/p' "$ROOT/docs/notebooks.md")
  # blocks LANGUAGE: into block-1, block-2 ...
  blocks() { awk -v begin="\`\`\`$1" '/^```/ { inside = $0 == begin; n += inside; next } inside { print >"block-" n }' "$ROOT/docs/notebooks.md"; }
}

# Where PYTHON names one that has all packages, every block runs; else those whose packages the distribution's has.
@test "notebooks: the blocks of Python run" {
  blocks python
  local python=${PYTHON:-/usr/bin/python3} ran=0 package
  for block in block-*; do
    for package in $(sed -n 's/^import //p' "$block" | tr -d ,); do
      "$python" -c "import $package" 2>/dev/null && continue
      [ -z "$PYTHON" ] || complain "$PYTHON has no $package"
      continue 2
    done
    "$python" "$block" >said 2>&1 || complain "$block: $(cat said)"
    [ -s said ] || complain "$block says nothing"
    ran=$((ran + 1))
  done
  ((ran > 0)) || complain "none ran: python3-h5py is not installed"
  verdict
}

@test "notebooks: the places that MATLAB's block reads are there" {
  blocks matlab
  local place
  for place in $(grep -oE "'/[a-z0-9_/]+'" block-1 | tr -d "'"); do
    /usr/bin/python3 -c 'import h5py, sys; d = h5py.File("summary.h5")[sys.argv[1]]; assert len(d) > 0 and "unit" in d.attrs' "$place" || complain "$place"
  done
  verdict
}
