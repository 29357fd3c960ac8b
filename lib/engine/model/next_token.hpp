// SPDX-License-Identifier: Apache-2.0
// The end of a language model: the loss of the next tokens.
#pragma once
#include "kernel/kernels.hpp"
#include "unit/unit.hpp"

namespace zs::model {

/// The loss of a micro-batch under the logits of x_BTC times the transpose of weight_VC: the mean over its targets, as
/// unit::Batch weighs it. Leaves the logits where the context asks for them. They are capped
/// as kernel::Attending says.
at::Tensor next_token_loss(const kernel::Kernels& kernels, const at::Tensor& x_BTC, const at::Tensor& weight_VC,
                           const unit::ForwardContext& context, double cap = 0);

}  // namespace zs::model
