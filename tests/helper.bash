# SPDX-License-Identifier: Apache-2.0
# What every .bats file loads: the built tools on PATH, one thread per rank, mpirun as root where tests run as root.
# shellcheck shell=bash
bats_require_minimum_version 1.5.0
ROOT=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
BUILD=$(cd "$ROOT" && realpath "${BUILD:-build}")
PATH=$BUILD:$PATH
export ROOT BUILD PATH LC_ALL=C.UTF-8 OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

# No test asks how long something takes, which says more of the machine's load than of zs: `timeout "$HANG"` stands before
# what might hang, and `await` waits for a state.
export HANG=900  # s

# await COMMAND...: waits until the command succeeds; fails after HANG seconds, and says what `circumstances` prints.
await() {
  local end=$((SECONDS + HANG))
  until "$@"; do
    ((SECONDS < end)) || { echo "in vain: $*"; circumstances; return 1; }
    sleep 0.1
  done
}
circumstances() { :; }

# no_package PACKAGE...: skips the test, which needs these Debian packages; where CI=true, which `make deps` reads too, fails it.
no_package() {
  if [[ ${CI:-} != true ]]; then skip "needs $*: apt-get install $*"; fi
  echo "CI=true, and there is no $*: apt-get install $*"
  return 1
}

# python_with MODULES PACKAGE...: PYTHON is a Python that has the modules: that of ZS_TORCH_PYTHON, the first on PATH, or
# the distribution's; else the test needs the Debian packages. It looks for them without loading them: PyTorch takes two seconds.
python_with() {
  for PYTHON in ${ZS_TORCH_PYTHON:-} python3 /usr/bin/python3; do
    if "$PYTHON" -c "import importlib.util as modules, sys; sys.exit(not all(map(modules.find_spec, '$1'.split(', '))))" 2>/dev/null; then
      export PYTHON
      return
    fi
  done
  no_package "${@:2}"
}

# warm_up [MODULES]: in setup_file, starts a Python that has imported PyTorch (tests/warm.py), where there is one with these modules
# too. It ends when cool_down, in teardown_file, removes the program that uses it.
warm_up() {
  local program=$BATS_FILE_TMPDIR/python socket=$BATS_FILE_TMPDIR/socket
  CI=true python_with "${1:-torch}" python3-torch >/dev/null || return 0
  printf '#!/bin/bash\nexec "%s" -IS "%s/tests/warm.py" run "%s" "$@"\n' "$PYTHON" "$ROOT" "$socket" >"$program"
  chmod +x "$program"
  "$PYTHON" "$ROOT/tests/warm.py" serve "$socket" "$program" </dev/null >"$BATS_FILE_TMPDIR/warm.log" 2>&1 3>&- &
}
cool_down() { rm -f "$BATS_FILE_TMPDIR/python"; }

# warm_python: as python_with torch python3-torch, with the one that is warm.
warm_python() {
  [[ -e $BATS_FILE_TMPDIR/python ]] || python_with torch python3-torch
  await test -S "$BATS_FILE_TMPDIR/socket"
  export PYTHON=$BATS_FILE_TMPDIR/python
}

# warm: zs-train and zs-verify of this test are forks of an engine that is loaded (tests/warm/engine.cpp), where tests/run has one.
warm() { [[ ! -e ${ZS_WARM_ENGINE:-} ]] || PATH=$BUILD-warm:$PATH; }
# cold: those of this test start as a user's do.
cold() { unset ZS_WARM_ENGINE; }

# The built tools, by name.
tools() { basename -a "$BUILD"/zs-*; }

# Whether a tool loads LibTorch or MPI.
heavy() { ldd "$BUILD/$1" | grep -qE 'libtorch|libmpi'; }

# marked PROGRAM: the processes of that program that were started with the ZS_MARK that is exported now, zombies not, the
# oldest first.
marked() {
  local pid
  grep -lzsxF -e "ZS_MARK=$ZS_MARK" /proc/[0-9]*/environ | cut -d/ -f3 | sort -n | while read -r pid; do
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) != "$1" || $(ps -o stat= -p "$pid") != [!Z]* ]] || echo "$pid"
  done
}

# none_runs PID...: whether none of the processes runs; says which do.
none_runs() {
  local running
  running=$(ps -o pid=,stat=,args= -p "$(IFS=,; echo "$*")" | grep -v ' Z') || return 0
  echo "still running: $running"
  return 1
}

# Says what went wrong, for a test that looks at many things, and goes on; `verdict` ends the test there, and every test at its end.
complaints=0
complain() {
  echo "$*"
  complaints=$((complaints + 1))
}
verdict() { ((complaints == 0)); }
teardown() { verdict; }

# fake_trainer: makes bin/ with the tools, but a zs-train that prints a log and at stage 3 dies with 42 before its first
# step, and makes it BUILD: what the scripts do is tested without waiting for trainings.
fake_trainer() {
  mkdir bin
  ln -s "$BUILD"/zs-* bin/
  rm -f bin/zs-train
  cat >bin/zs-train <<'END'
#!/usr/bin/env bash
if [[ $1 == --version ]]; then echo "zs-train 0"; exit; fi
if [[ "$*" == *"--zero_stage 3"* ]]; then echo "zs-train: out of memory" >&2; exit 42; fi
((${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-0}} == 0)) || exit 0
{
  echo "run: expected_steps=3"
  for step in 1 2 3; do
    echo "Epoch 1, Step $step, Loss: 2.$((99 - step)) sync: True time: 0.1 alloc_mem: 1000000 peak_mem: 2000000"
  done
  echo "state_digest: 0123456789abcdef0123456789abcdef"
} | tee "$ZS_RUN/run.log"
"${0%/*}/zs-parse" "$ZS_RUN/run.log" -o "$ZS_RUN/metrics.h5"
END
  chmod +x bin/zs-train
  export BUILD=$PWD/bin
}

# refuses_with MESSAGE COMMAND...: the message is all there is on stderr, the status is 2, and stdout is empty.
refuses_with() {
  local message=$1
  shift
  run -2 --separate-stderr "$@"
  [ -z "$output" ]
  # shellcheck disable=SC2154 # run --separate-stderr sets it
  [ "$stderr" = "$message" ]
}

# trained_on RANKS OPTION...: trains the suite's model, ${small[@]}, into log; prints the digest.
# shellcheck disable=SC2154 # the suite's setup says small
trained_on() { mpirun -np "$1" --oversubscribe zs-train "${small[@]}" "${@:2}" | tee log | sed -n 's/^state_digest: //p'; }

# recorded_again FROM TO: the same training, recorded a second time.
recorded_again() {
  cp -r "$1" "$2"
  sed -i "1s/\"id\": \"[0-9a-f]*\"/\"id\": \"$(printf '%s' "$2" | cksum | cut -d' ' -f1)\"/" "$2"/rank-*.jsonl
}
