// SPDX-License-Identifier: Apache-2.0
// Shared by the autograd nodes on a GPU: converts tensors for zs's kernels, on LibTorch's stream.
#pragma once
#include <ATen/cuda/CUDAContext.h>
#include <cuda_bf16.h>

#include "base/error.hpp"
#include "kernel/kernels.hpp"

namespace zs::kernel::cuda {

inline cudaStream_t stream() { return at::cuda::getCurrentCUDAStream(); }

inline at::Tensor floats(std::int64_t n) { return at::empty({n}, at::TensorOptions(at::kFloat).device(at::kCUDA)); }

/// Calls f with a value of the corresponding element type of zs's kernels.
template <typename F>
auto with_type(const at::Tensor& x, F f) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return f(float{});
    case at::kBFloat16:
      return f(__nv_bfloat16{});
    default:
      throw Error(std::string("--compile on a GPU computes in float32 or bfloat16, not ") +
                  at::toString(x.scalar_type()));
  }
}
template <typename T>
T* data(const at::Tensor& x) {
  return static_cast<T*>(x.data_ptr());
}

inline at::Tensor rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// Llama's layers (cuda_llama.cpp), with the signatures of Kernels: by zs's kernels if these support the shape, the type
// and the options, else by LibTorch's operations.
Normed rms_norm_layer(const at::Tensor& x_BTC, const at::Tensor& weight_C, double epsilon);
at::Tensor attention_layer(const at::Tensor& x_BTC, const AttentionLayer& layer);
at::Tensor gated_layer(const at::Tensor& x_BTC, const GatedLayer& layer);
at::Tensor embedding_layer(const at::Tensor& weight_VC, const at::Tensor& tokens_BT);

}  // namespace zs::kernel::cuda
