# SPDX-License-Identifier: Apache-2.0
# What every .bats file loads: the built tools on PATH, one thread per rank, mpirun as root where tests run as root.
# shellcheck shell=bash
bats_require_minimum_version 1.5.0
ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
BUILD=$(cd "$ROOT" && realpath "${BUILD:-build}")
PATH=$BUILD:$PATH
export ROOT BUILD PATH LC_ALL=C.UTF-8 OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

# The built tools, by name.
tools() { basename -a "$BUILD"/zs-*; }

# Whether a tool loads LibTorch or MPI.
heavy() { ldd "$BUILD/$1" | grep -qE 'libtorch|libmpi'; }

# Says what went wrong, for a test that looks at many things, and goes on; `verdict` ends the test.
complaints=0
complain() {
  echo "$*"
  complaints=$((complaints + 1))
}
verdict() { ((complaints == 0)); }
