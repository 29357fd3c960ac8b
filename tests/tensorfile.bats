#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Files of tensors against Python's PyTorch, in one Python process.

setup() { load helper; }

@test "tensorfile: PyTorch reads our files and we read PyTorch's, bit by bit" {
  python_with 'torch, numpy' python3-torch python3-numpy
  cd "$BATS_TEST_DIRNAME/.."
  run "${BUILD:-build}/test-light" --no-skip --test-case="PyTorch: *"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"test cases:"*" 1 | "*" 1 passed"* ]]
}
