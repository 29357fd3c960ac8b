# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Tests that need more than Debian's PyTorch has: make check-planted runs them with that of tests/bugs.
setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load ../helper
  cd "$BATS_TEST_TMPDIR" || return
  # shellcheck source=tests/bugs/environment.bash disable=SC2153 # of helper.bash
  source "$ROOT/tests/bugs/environment.bash"
  # shellcheck disable=SC2034 # the tests run it
  PYTHON=$python
}
