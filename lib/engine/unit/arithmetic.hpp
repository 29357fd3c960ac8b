// SPDX-License-Identifier: Apache-2.0
// What rounds. Bits belong to an arithmetic: two trainings of one have the same bits, of two need not.
#pragma once
#include <string>
#include <string_view>

#include "unit/tensor.hpp"

namespace zs::unit {

struct Arithmetic {
  std::string torch;  ///< LibTorch's version: "2.11.0"
  std::string blas;   ///< what multiplies matrices, and settings of it: "MKL 2024.2, oneDNN 3.10.2"
  std::string
      instruction_set;  ///< what LibTorch's loops use, and what BLAS chooses from: "AVX2 (GenuineIntel avx2 avx512f)"
  int threads = 1;      ///< of this process
};

/// The value of the first processor's line `key` of /proc/cpuinfo: "model name"; "" where it has none.
std::string processor(std::string_view key);

/// This process's, as it is now.
Arithmetic arithmetic();

/// What forward and backward compute in where parameters are of `type`: that type, or float32 for float16 on a
/// processor. Then parameters are widened, and their gradients rounded to `type`.
at::ScalarType computed_in(at::ScalarType type, at::DeviceType device);

/// The instructions that multiply matrices of bfloat16 on this processor, as far as oneDNN may use them: "amx_bf16",
/// "avx512_bf16", or "" for none. Then kernels widen matrices to float32 for each product.
const std::string& bfloat16_products();
/// The same of a processor with these flags (as /proc/cpuinfo has them), where oneDNN may use what `most` names (as
/// ONEDNN_MAX_CPU_ISA has it; "" for all).
std::string bfloat16_products(std::string_view flags, std::string_view most);

/// Why matrix products are slow here, and the remedy; "" if they are not known to be.
std::string slow_products();

/// An OpenBLAS that took the processor for an old one reads the right core type from its environment, at its start:
/// where that is so, runs this program again, once, with it. Call it first in main; it returns if there is nothing to
/// mend.
void choose_products(char** argv);

/// The core type (as OPENBLAS_CORETYPE has it) that suits a processor with these flags (as /proc/cpuinfo has them)
/// better than `core`, which OpenBLAS chose; "" if `core` is good, or not known.
std::string better_core(std::string_view core, std::string_view flags);

}  // namespace zs::unit
