// SPDX-License-Identifier: Apache-2.0
// Gated experts as one node of autograd, for GPUs, which would otherwise wait for the host. Each expert has separate
// products, with the bits of kernel::experts_layer's one after another; elementwise operations cover all experts' rows
// at once. Gradients of weights go to .grad if it is set.
#pragma once
#include <cstdint>
#include <span>

#include "kernel/experts.hpp"

namespace zs::kernel {

/// down (SiLU(gate x) * up x) of rows that are ordered by expert, counts[e] of them for expert e: [R, C].
/// Differentiable; the gradient of an expert without rows is zeros. REQUIRES: `up` of all experts; one type.
at::Tensor gated_experts(const at::Tensor& rows_RC, std::span<const std::int64_t> counts,
                         std::span<const Expert> experts);

}  // namespace zs::kernel
