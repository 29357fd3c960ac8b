// SPDX-License-Identifier: Apache-2.0
// Self-attention as one node of autograd on a processor. Shapes as in kernels.hpp.
#pragma once
#include "kernel/kernels.hpp"

namespace zs::kernel {

/// Causal, over the queries, keys and values of qkv_BTE: [B, T, C]. Knows no scale, cap and window.
at::Tensor fused_attention(const at::Tensor& qkv_BTE, const Attending& how);
/// Over queries, keys and values of their own: [B, T, H*D].
at::Tensor fused_grouped_attention(const at::Tensor& q_BTE, const at::Tensor& k_BTF, const at::Tensor& v_BTF,
                                   const Attending& how, bool causal);

}  // namespace zs::kernel
