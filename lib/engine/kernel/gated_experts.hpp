// SPDX-License-Identifier: Apache-2.0
// Gated experts as one node of autograd, for GPUs, which else wait for the host: each expert has its products, with
// the bits of kernel::experts_layer's one after another, and what is elementwise is computed of all experts' rows at
// once. Gradients of weights go to .grad where that is set.
#pragma once
#include <cstdint>
#include <span>

#include "kernel/experts.hpp"

namespace zs::kernel {

/// down (SiLU(gate x) * up x) of rows that stand behind each other, counts[e] of them for expert e: [R, C].
/// Differentiable; the gradient of an expert without rows is zeros. REQUIRES: `up` of all experts; one type.
at::Tensor gated_experts(const at::Tensor& rows_RC, std::span<const std::int64_t> counts,
                         std::span<const Expert> experts);

}  // namespace zs::kernel
