// SPDX-License-Identifier: Apache-2.0
// Self-attention as one autograd node on a CPU. Shapes as in kernels.hpp.
#pragma once
#include "kernel/kernels.hpp"

namespace zs::kernel {

/// Causal, over the queries, keys and values in qkv_BTE: [B, T, C]. Without scale, cap and window.
at::Tensor fused_attention(const at::Tensor& qkv_BTE, const Attending& how);
/// Over separate queries, keys and values: [B, T, H*D].
at::Tensor fused_grouped_attention(const at::Tensor& q_BTE, const at::Tensor& k_BTF, const at::Tensor& v_BTF,
                                   const Attending& how, bool causal);

}  // namespace zs::kernel
