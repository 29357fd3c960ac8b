# SPDX-License-Identifier: Apache-2.0
# The parts of the GPU's library that a machine without a GPU can test. tests/gpu tests the rest.
load helper

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  library=$BUILD/libzs-cuda.so
}

@test "cuda: the library asks the program for nothing that it does not have" {
  [[ -e $library ]] || skip "libzs-cuda.so was not built, for want of a driver, nvcc or a LibTorch with CUDA: make deps all CUDA=1"
  # What of zs the library leaves to the program.
  nm -D --undefined-only "$library" | sed -n 's/^ *U \(_Z[A-Z]*2zs.*\)/\1/p' | sort >needs
  [ -s needs ]
  nm -D --defined-only "$BUILD/engine" | sed 's/^[0-9a-f]* . //' | sort >has
  run comm -23 needs has
  [ -z "$output" ]
}

@test "cuda: make builds the library where there is a driver or CUDA=1 asks for it, and says what a login node needs" {
  unset CUDA # as it is where nobody says it
  mkdir -p torch/lib bin smi
  touch torch/lib/libtorch_cuda.so
  printf '#!/bin/sh\n' | tee bin/nvcc >smi/nvidia-smi
  chmod +x bin/nvcc smi/nvidia-smi
  said() { PATH=$PWD/$1:$PWD/bin:$PATH make -C "$ROOT" -n --no-print-directory BUILD="$PWD/out" UNITY=0 TORCH_HOME="$PWD/torch" KERNELS="$PWD/torch" "${@:2}" all | tail -n 1; }
  [[ $(said smi) == *" with CUDA, for GPUs of "* ]]
  [[ $(said smi CUDA=0) == *" without CUDA: CUDA=0'" ]]
  [[ $(said bin CUDA=1) == *" with CUDA, for GPUs of "* ]]
  [[ $(said bin CUDA=1 KERNELS=) == *" without CUDA: there are no headers of FlashAttention; make deps CUDA=1 fetches what it needs'" ]]
  if command -v nvidia-smi || PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q 'libcuda\.so\.1 '; then skip "this machine has a driver"; fi
  [[ $(said bin) == *" without CUDA: this machine has no driver of a GPU (no nvidia-smi, no libcuda.so.1). For GPUs of other machines: make deps all CUDA=1'" ]]
}

@test "cuda: --version says whether this build has it" {
  for tool in zs-train zs-verify; do
    run -0 "$tool" --version
    if [[ -e $library ]]; then [[ $output == *" with CUDA" ]]; else [[ $output == *" without CUDA" ]]; fi
    mkdir -p alone && cp "$BUILD"/{"$tool",engine} alone/
    run -0 "alone/$tool" --version
    [[ $output == "$tool "*" without CUDA" ]]
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

@test "cuda: a job's GPUs that will be idle are told, unless processors were asked for" {
  [[ ! -e /dev/nvidiactl ]] || skip "this machine has a GPU"
  small=(--model_name tiny --num_layers 1 --seq_length 32 --bench_step 1 --save_final false)
  SLURM_JOB_GPUS=0,1 run -0 --separate-stderr zs-train "${small[@]}"
  [[ $stderr == "zs-train: warning: this job has GPUs (SLURM_JOB_GPUS=0,1), and there is no driver "*"idle"* ]]
  SLURM_JOB_GPUS=0,1 run -0 --separate-stderr zs-train "${small[@]}" --device cpu
  [ -z "$stderr" ]
}

@test "cuda: --calibrate without a GPU says what it measures, and trains nothing" {
  [[ ! -e /dev/nvidiactl ]] || skip "this machine has a GPU"
  run -2 --separate-stderr zs-train --calibrate --model_name tiny --compile --output_dir out
  [[ $stderr == "zs-train: --calibrate measures a GPU, and --device is cpu here" && -z $output && ! -e out ]]
}

@test "cuda: zs-verify takes --device, and refuses a GPU that is not there" {
  [[ ! -e /dev/nvidiactl ]] || skip "this machine has a GPU"
  run -2 --separate-stderr zs-verify --device cuda --iterations 1
  [[ $stderr == "zs-verify: --device cuda: "* ]]
  run -0 zs-verify --device cpu --num_layers 1 --seq_length 16 --iterations 1
}

@test "cuda: without a driver auto computes on the processor, and the record says so" {
  [[ ! -e /dev/nvidiactl ]] || skip "this machine has a GPU"
  zs-train --device auto --model_name tiny --num_layers 1 --seq_length 32 --bench_step 1 --save_final false >log
  grep -qx 'run: device=cpu' log
}
