// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T tokens, N = B*T, K targets that count, C width, V vocabulary.
#include "model/next_token.hpp"

namespace zs::model {

using at::Tensor;

Tensor next_token_loss(const kernel::Kernels& kernels, const Tensor& x_BTC, const Tensor& weight_VC,
                       const unit::ForwardContext& context, double cap) {
  const unit::Batch& batch = context.batch;
  const Tensor x_NC = x_BTC.view({-1, x_BTC.size(2)}), targets_N = batch.targets.view({-1});
  if (context.logits) {
    const Tensor logits_BTV = at::mm(x_NC, weight_VC.t()).view({x_BTC.size(0), x_BTC.size(1), -1});
    *context.logits = cap > 0 ? (logits_BTV / cap).tanh() * cap : logits_BTV;
  }
  if (!batch.weight) return kernels.loss(x_NC, weight_VC, targets_N, cap);
  // Only the rows that count are multiplied.
  const Tensor counts_K = at::nonzero(targets_N.ge(0)).view({-1});
  // The mean over nothing is none: of a chunk without targets the loss is 0, and so are its gradients.
  if (counts_K.numel() == 0) return at::mm(x_NC.index_select(0, counts_K), weight_VC.t()).to(at::kFloat).sum();
  return kernels.loss(x_NC.index_select(0, counts_K), weight_VC, targets_N.index_select(0, counts_K), cap) *
         *batch.weight;
}

}  // namespace zs::model
