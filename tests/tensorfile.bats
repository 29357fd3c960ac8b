#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Files of tensors against Python's PyTorch, in one Python process.

setup() {
  PYTHON=
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import importlib.util as i, sys; sys.exit(not (i.find_spec("torch") and i.find_spec("numpy")))' 2>/dev/null; then
      PYTHON=$candidate
      break
    fi
  done
  export PYTHON
}

@test "tensorfile: PyTorch reads our files and we read PyTorch's, bit by bit" {
  [ -n "$PYTHON" ] || no_package python3-torch python3-numpy
  cd "$BATS_TEST_DIRNAME/.."
  run "${BUILD:-build}/test-light" --no-skip --test-case="PyTorch: *"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"test cases:"*" 1 | "*" 1 passed"* ]]
}
