// SPDX-License-Identifier: Apache-2.0
// The last part of a language model: the loss of the next tokens.
#pragma once
#include "kernel/kernels.hpp"
#include "unit/unit.hpp"

namespace zs::model {

/// The loss of a micro-batch with the logits of x_BTC times the transpose of weight_VC, capped as in kernel::Attending:
/// the mean over its targets, weighted as in unit::Batch. Stores the logits if the context requests them.
at::Tensor next_token_loss(const kernel::Kernels& kernels, const at::Tensor& x_BTC, const at::Tensor& weight_VC,
                           const unit::ForwardContext& context, double cap = 0);

}  // namespace zs::model
