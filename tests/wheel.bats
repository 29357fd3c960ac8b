# SPDX-License-Identifier: Apache-2.0
# The wheel, in a Python environment without other packages.
setup_file() {
  load helper
  WHEEL_LEVEL=1 make -s -C "$ROOT" BUILD="$BUILD" wheel
  python3 -m venv --without-pip "$BATS_FILE_TMPDIR/venv"
  python3 -m pip --python "$BATS_FILE_TMPDIR/venv/bin/python" install --quiet --no-index --disable-pip-version-check \
    "$BUILD"/wheel/zero_suite-*.whl
}

setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
  export PATH=$BATS_FILE_TMPDIR/venv/bin:/usr/bin:/bin ZS_REGISTRY=$PWD/runs
  unset ZS_SHARE
}

@test "wheel: its tag is the glibc that its programs and libraries need" {
  needed=$(for file in "$BATS_FILE_TMPDIR"/venv/bin/zs-* "$BATS_FILE_TMPDIR"/venv/lib/zs/*; do readelf -VW "$file"; done |
    grep -oE 'GLIBC_2\.[0-9]+' | sort -V | tail -n 1)
  ls "$BUILD"/wheel | grep -F "manylinux_2_${needed#*.}_$(uname -m).whl"
  ((${needed#*.} <= 34)) || complain "glibc $needed is newer than RHEL 9's"
  cxx=$(for file in "$BATS_FILE_TMPDIR"/venv/bin/zs-* "$BATS_FILE_TMPDIR"/venv/lib/zs/*; do readelf -VW "$file"; done |
    grep -oE 'GLIBCXX_3\.4\.[0-9]+' | sort -V | tail -n 1)
  ((${cxx##*.} <= 29)) || complain "libstdc++ $cxx is newer than RHEL 9's"
  verdict
}

@test "wheel: it is made of the library that is built, not of one that is made again" {
  run -1 grep -F "$BUILD/" "$BUILD/libzs.members"
}

@test "wheel: every program starts, and loads nothing of the machine but glibc and libstdc++" {
  for tool in "$BATS_FILE_TMPDIR"/venv/bin/zs-*; do
    "$tool" --version >/dev/null || complain "$tool does not start"
    if ldd "$tool" | grep '=>' | grep -vE "=> $BATS_FILE_TMPDIR/venv/|lib(c|m|stdc\+\+|gcc_s)\.so|linux-vdso"; then complain "$tool: of the machine"; fi
  done
  (($(ls "$BATS_FILE_TMPDIR"/venv/bin/zs-* | wc -l) > 9)) || complain "only few programs"
  [ -s "$BATS_FILE_TMPDIR/venv/share/man/man1/zs-record.1" ] || complain "no page of zs-record"
  verdict
}

@test "wheel: it records a training, tells where its ranks hang, and reports a batch" {
  cat >train.py <<'PY'
import os, time
for step in range(1, 5):
    print(f"Epoch 1, Step {step}, Loss: {5 / step} sync: True time: 0.01 alloc_mem: 100 peak_mem: 200", flush=True)
def read_batch():
    time.sleep(1000)
if os.environ.get("HANGS"): read_batch()
PY
  zs-record --name first -- python train.py
  [ "$(zs-runs --show state --format tsv | sed 1d)" = COMPLETE ]
  run -143 --separate-stderr env HANGS=1 RANK=0 WORLD_SIZE=1 zs-record --timeout 2 -- python train.py
  [[ $stderr == *"rank 0 is at train.py:5 in read_batch"* ]]
  python -c 'import zs_probe.boot'
  python -c 'import ctypes, os, zs_probe; ctypes.CDLL(os.path.join(os.path.dirname(zs_probe.__file__), "libnative.so")).zs_measure'
  zs-report "$(zs-runs --show run_id --format tsv --filter run_name=first | sed "1d;s|^|runs/|")" -o report.md
  grep -q Loss report.md
}
