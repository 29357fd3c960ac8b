# SPDX-License-Identifier: Apache-2.0
# The GPU's library as far as a machine without a GPU can tell. tests/gpu has what needs one.
load helper

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  library=$BUILD/libzs-cuda.so
}

@test "cuda: the library asks the program for nothing that it does not have" {
  [[ -e $library ]] || skip "libzs-cuda.so was not built: no nvcc, or a LibTorch without CUDA"
  # What of zs the library leaves to the program.
  nm -D --undefined-only "$library" | sed -n 's/^ *U \(_Z[A-Z]*2zs.*\)/\1/p' | sort >needs
  [ -s needs ]
  for tool in zs-train zs-verify; do
    nm -D --defined-only "$BUILD/$tool" | sed 's/^[0-9a-f]* . //' | sort >has
    run comm -23 needs has
    [ -z "$output" ]
  done
}

@test "cuda: a GPU that is not there is asked for in vain, in one sentence" {
  [[ ! -e /dev/nvidiactl ]] || skip "this machine has a GPU"
  run -2 --separate-stderr zs-train --device cuda --model_name tiny --bench_step 1
  [[ $stderr == "zs-train: --device cuda: "* ]]
  [ "${#stderr_lines[@]}" -eq 1 ]
  run -2 --separate-stderr zs-train --device gpu --model_name tiny
  [[ $stderr == *"auto cpu cuda"* || $stderr == *"auto, cpu"* ]]
}

@test "cuda: without a driver auto computes on the processor, and the record says so" {
  [[ ! -e /dev/nvidiactl ]] || skip "this machine has a GPU"
  zs-train --device auto --model_name tiny --num_layers 1 --seq_length 32 --bench_step 1 --save_final false >log
  grep -qx 'run: device=cpu' log
}
