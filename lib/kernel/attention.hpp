// SPDX-License-Identifier: Apache-2.0
// Causal self-attention on a GPU without its weights in memory: of 16 bits cuDNN's, with the deterministic backward; of
// float32 and TF32 our own (cuda_flash.hpp), since LibTorch's deterministic one takes three times as long.
// Shapes: B samples, T tokens, H heads, D = C / H, E = 3 C.
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel::cuda {

/// True if the functions below take this tensor: heads of a size that there are kernels for.
bool attention_fits(const at::Tensor& qkv_BTE, std::int64_t heads);

struct Attended {
  at::Tensor out_BTC;
  at::Tensor stats_BHT1;  ///< float32: log of the sum of exponentials, for backward (of float32: its log2)
};
Attended attention_forward(const at::Tensor& qkv_BTE, std::int64_t heads);
/// The gradient by qkv. The same bits in every run; cuDNN's graph has a workspace of B H T T.
at::Tensor attention_backward(const at::Tensor& qkv_BTE, const Attended& attended, const at::Tensor& dout_BTC,
                              std::int64_t heads);

}  // namespace zs::kernel::cuda
