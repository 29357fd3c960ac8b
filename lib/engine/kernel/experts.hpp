// SPDX-License-Identifier: Apache-2.0
// A feed-forward network of experts (Shazeer et al. 2017): a router sends each token to K of E gated networks and adds
// their weighted outputs. Experts have no capacity limit: no token is dropped. Shapes as in kernels.hpp; N = B*T
// tokens, I inner width of an expert.
//
// Bits depend only on the tokens of the micro-batch. The router's product and softmax are float32 for every type of x,
// outside of autocast. Of equal logits the expert with the lowest number is chosen. Each expert multiplies all its
// tokens at once, in their order. For one token it multiplies two rows, the second of zeros, since the rounding of
// products of one row depends on the address of the matrix. The outputs are added in float32, in the order of a token's
// logits, and rounded once. An expert without tokens has a gradient of zeros.
#pragma once
#include <vector>

#include "kernel/kernels.hpp"
#include "unit/expert_ranks.hpp"

namespace zs::kernel {

/// The weights of a token's experts: softmax over all logits, as it is or divided by the sum of the chosen ones, or
/// softmax over the chosen ones alone.
enum class Routing { all, normalised, chosen };

/// One expert: down (SiLU(gate x) * up x), of weights [out, in]. Where `up` is undefined, gpt-oss's, of weights [in,
/// out] and biases: gate g and up u are the even and odd columns of one product, and down takes (u + 1) g sigmoid(alpha
/// g), of g up to `limit` and u within it.
struct Expert {
  at::Tensor gate, up, down, gate_bias{}, down_bias{};
};

struct ExpertsLayer {
  NormWeight norm_C;
  double epsilon;
  Projection router;  ///< [E, C], without adapter
  std::int64_t chosen;
  Routing routing;
  /// The weights of all experts. If experts are divided: of this rank's experts, once for each leaf, and each leaf's
  /// gradient goes to its copy.
  std::vector<Expert> experts;
  const unit::ExpertRanks* among = nullptr;  ///< the ranks that divide them, or null
  double alpha = 0, limit = 0;
  /// One expert after another picks its tokens and puts its results in their place, without sorting: the same bits, by
  /// a plain loop, for zs-verify to compare with.
  bool one_by_one = false;
};

/// The experts of each token, by their logits, with their weights; differentiable. Of equal logits the lowest number.
struct Routes {
  at::Tensor experts_NK;        ///< int64
  at::Tensor weights_NK;        ///< float32
  at::Tensor probabilities_NE;  ///< softmax over all logits, float32
};
Routes routes(const at::Tensor& logits_NE, std::int64_t chosen, Routing routing);

/// x plus the layer of its norm; and where tokens went.
struct Mixed {
  at::Tensor y_BTC;
  Routes routes;
};
Mixed experts_layer(const Kernels& by, const at::Tensor& x_BTC, const ExpertsLayer& layer);

}  // namespace zs::kernel
