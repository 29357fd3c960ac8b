// SPDX-License-Identifier: Apache-2.0
// The facts that determine rounding: two trainings with the same arithmetic have the same bits, others may not.
#pragma once
#include <string>
#include <string_view>

#include "unit/tensor.hpp"

namespace zs::unit {

struct Arithmetic {
  std::string torch;  ///< LibTorch's version: "2.11.0"
  std::string blas;   ///< the library of matrix products, with its settings: "MKL 2024.2, oneDNN 3.10.2"
  std::string
      instruction_set;  ///< for LibTorch's loops, and the basis of BLAS's choice: "AVX2 (GenuineIntel avx2 avx512f)"
  int threads = 1;      ///< of this process
};

/// The value of the first processor's line `key` in /proc/cpuinfo: "model name"; "" if missing.
std::string processor(std::string_view key);

/// The current arithmetic of this process.
Arithmetic arithmetic();

/// The computation type of forward and backward for parameters of `type`: that type, or float32 for float16 on a CPU.
/// Then parameters are widened, and their gradients rounded to `type`.
at::ScalarType computed_in(at::ScalarType type, at::DeviceType device);

/// This processor's instructions for bfloat16 matrix products, as far as oneDNN may use them: "amx_bf16",
/// "avx512_bf16", or "" for none. Then kernels widen matrices to float32 for each product.
const std::string& bfloat16_products();
/// The same for a processor with these flags (as in /proc/cpuinfo), if oneDNN may use those up to `most` (a value of
/// ONEDNN_MAX_CPU_ISA; "" for all).
std::string bfloat16_products(std::string_view flags, std::string_view most);

/// Why matrix products are slow here, with the remedy; "" if no reason is known.
std::string slow_products();

/// If OpenBLAS mistakes the processor for an old one, runs this program again, once, with the right core type in its
/// environment, which OpenBLAS reads at its start. Call it first in main; it returns if nothing is wrong.
void choose_products(char** argv);

/// The core type (a value of OPENBLAS_CORETYPE) that suits a processor with these flags (as in /proc/cpuinfo) better
/// than `core`, OpenBLAS's choice; "" if `core` is good, or unknown.
std::string better_core(std::string_view core, std::string_view flags);

}  // namespace zs::unit
