// SPDX-License-Identifier: Apache-2.0
// Causal self-attention on a GPU without its weights in memory: cuDNN's, with the deterministic backward.
// Shapes: B samples, T tokens, H heads, D = C / H, E = 3 C.
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel::cuda {

/// True if the functions below take this tensor: 16-bit, heads of a size that cuDNN has kernels for.
bool attention_fits(const at::Tensor& qkv_BTE, std::int64_t heads);

struct Attended {
  at::Tensor out_BTC;
  at::Tensor stats_BHT1;  ///< float32: log of the sum of exponentials, for backward
};
Attended attention_forward(const at::Tensor& qkv_BTE, std::int64_t heads);
/// The gradient by qkv. The same bits in every run: cuDNN's graph of workspace B H T T.
at::Tensor attention_backward(const at::Tensor& qkv_BTE, const Attended& attended, const at::Tensor& dout_BTC,
                              std::int64_t heads);

}  // namespace zs::kernel::cuda
