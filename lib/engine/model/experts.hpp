// SPDX-License-Identifier: Apache-2.0
// The experts of a decoder's layers: names, parameters, and the auxiliary loss that keeps them balanced (Fedus et al.
// 2021, equations 4 to 6, over all layers at once, as transformers computes it).
#pragma once
#include <span>
#include <vector>

#include "kernel/experts.hpp"
#include "model/parameters.hpp"

namespace zs::model {

/// Modules of a layer in Hugging Face's files. An expert has three matrices, EXPERTS.N.GATE.weight and so on. Or it has
/// two with biases (`up` is null), and files stack them over all experts: EXPERTS.GATE with alternating gate and up,
/// EXPERTS.GATE_bias, and the same for down.
struct ExpertNames {
  const char *router, *experts, *gate, *up, *down;
  bool router_bias = false;
  const char* count;  ///< keys of config.json that decide shapes: how many, and their inner width
  const char* width;
  bool stacked() const { return up == nullptr; }
};

/// The experts of a model; `count` is 0 without.
struct Mixture {
  std::int64_t count = 0, chosen = 0, width = 0;
  kernel::Routing routing = kernel::Routing::normalised;
  double auxiliary = 0;         ///< factor of the auxiliary loss
  bool adds_auxiliary = false;  ///< false: it is not part of the loss
  double alpha = 0, limit = 0;  ///< of gpt-oss's activation
  std::vector<bool> layers{};   ///< which have experts; the others one network

  bool in(std::int64_t layer) const { return count > 0 && layers[static_cast<std::size_t>(layer)]; }
  /// Layers that have them.
  std::int64_t number() const;
};

/// Adds the router of a layer's experts to the layer's parameters, of a model C wide.
Layer add_router(const ExpertNames& names, const Mixture& mixture, std::int64_t C, const Settings& settings,
                 ParameterList& list);

/// The part of a layer that its experts read: the norm before them, and the router.
struct Routed {
  kernel::NormWeight norm_C;
  double epsilon;
  kernel::Projection router;
};

/// The places of a layer's experts among the parameters of their unit.
class Experts {
 public:
  /// Adds experts [begin, end) to the list, of a model C wide.
  Experts(const ExpertNames& names, const Mixture& mixture, std::int64_t C, std::int64_t begin, std::int64_t end,
          const Settings& settings, ParameterList& list);

  /// x plus the experts' output for its norm. The routing sums of the auxiliary loss are passed on next to the output.
  at::Tensor forward(const kernel::Kernels& kernels, const at::Tensor& x_BTC, const Routed& layer,
                     std::span<const at::Tensor> owned, const unit::ForwardContext& context) const;

 private:
  Mixture mixture_;
  bool one_by_one_;
  struct Places {
    Layer gate, up, down;
  };
  std::vector<Places> places_;  // of each expert

  /// For each leaf.
  std::vector<kernel::Expert> networks(std::span<const at::Tensor> owned) const;
};

/// The auxiliary loss of a micro-batch, times its factor: E times the sum, over experts, of the share of tokens that
/// went there and the mean probability to go there, over all tokens in all layers except padding. Each of the K experts
/// of a token counts separately. Throws zs::Error if the routing sums are missing.
at::Tensor auxiliary_loss(const Mixture& mixture, const unit::ForwardContext& context);
/// The same of a micro-batch in chunks, for each of this rank's: every one has the value of all chunks together, whose
/// mean it is. COLLECTIVE: of the ranks that share the sequences.
std::vector<at::Tensor> auxiliary_losses(const Mixture& mixture, std::span<const unit::Chunk> chunks,
                                         const unit::Sequence& sequence);

}  // namespace zs::model
