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

// A decoder's layers (cuda_llama.cpp), with the signatures of Kernels: by zs's kernels if these support the shape, the
// type and the options, else by LibTorch's operations.
Normed rms_norm_layer(const at::Tensor& x_BTC, const NormWeight& norm, double epsilon);
at::Tensor attention_layer(const at::Tensor& x_BTC, const AttentionLayer& layer);
at::Tensor gated_layer(const at::Tensor& x_BTC, const GatedLayer& layer);
at::Tensor embedding_layer(const at::Tensor& weight_VC, const at::Tensor& tokens_BT);

// The parts of a decoder's attention (cuda_heads.cpp and cuda_fused.cpp), likewise.
at::Tensor project(const at::Tensor& x_BTI, const at::Tensor& weight_OI, const at::Tensor& bias_O);
at::Tensor rotate_heads(const at::Tensor& x_BTE, const at::Tensor& cos_TR, const at::Tensor& sin_TR);
bool takes_sequences(const at::Tensor& q_BTE, const Attending& how);
at::Tensor attention_of_sequences(const at::Tensor& q_BTE, const at::Tensor& k_BTF, const at::Tensor& v_BTF,
                                  const Attending& how);
/// The parts of experts' networks (cuda_experts.cpp).
const ExpertParts& expert_parts();
/// The table of these.
const Kernels& own();

}  // namespace zs::kernel::cuda
