// SPDX-License-Identifier: Apache-2.0
// Shapes as in kernel/experts.hpp.
#include "model/experts.hpp"

#include <ATen/MethodOperators.h>

#include <algorithm>

#include "base/error.hpp"

namespace zs::model {

using at::Tensor;
using unit::Parameter;

namespace {

/// 1 for every token, 0 for padding. Undefined if there is no padding.
Tensor counted(const unit::Batch& batch) {
  if (!batch.lengths.defined()) return {};
  const Tensor place_T = at::arange(batch.inputs.size(1), batch.lengths.options());
  return place_T.unsqueeze(0).lt(batch.lengths.unsqueeze(1)).reshape({-1, 1}).to(at::kFloat);
}

/// Two rows of a layer, [2, E]: the sum over tokens of each expert's probability, and the number of its tokens.
Tensor balance(const kernel::Routes& routes, const unit::Batch& batch) {
  const Tensor &all_NE = routes.probabilities_NE, mask_N1 = counted(batch);
  const Tensor chosen_NE = at::zeros_like(all_NE.detach()).scatter_(1, routes.experts_NK, 1.0);
  const auto sum = [&](const Tensor& of_NE) { return (mask_N1.defined() ? of_NE * mask_N1 : of_NE).sum(0); };
  return at::stack({sum(all_NE), sum(chosen_NE)});
}

}  // namespace

std::int64_t Mixture::number() const { return count > 0 ? std::count(layers.begin(), layers.end(), true) : 0; }

Layer add_router(const ExpertNames& names, const Mixture& mixture, std::int64_t C, const Settings& settings,
                 ParameterList& list) {
  const std::int64_t E = mixture.count;
  const std::string router = names.router, count = names.count;
  Layer made{.weight = list.add(matrix(router + ".weight", {E, C}, settings, count + ", hidden_size"))};
  if (names.router_bias) made.bias = list.add(bias(router + ".bias", E, count));
  return made;
}

Experts::Experts(const ExpertNames& names, const Mixture& mixture, std::int64_t C, std::int64_t begin, std::int64_t end,
                 const Settings& settings, ParameterList& list)
    : mixture_(mixture), one_by_one_(settings.experts_one_by_one) {
  const std::int64_t E = mixture.count, I = mixture.width;
  const std::string count = names.count, keys = std::string(names.width) + ", hidden_size",
                    experts = std::string(names.experts) + ".";
  for (std::int64_t e = begin; e < end; ++e) {
    const auto add = [&](Parameter parameter) {
      parameter.expert = true;
      parameter.idle = parameter.numel() * (E - mixture.chosen) / E;
      return list.add(std::move(parameter));
    };
    const auto placed = [&](const std::string& name, std::vector<std::int64_t> shape) {
      return Layer{.weight = add(matrix(experts + std::to_string(e) + "." + name + ".weight", shape, settings, keys))};
    };
    const auto stacked = [&](const std::string& name, Parameter parameter) {
      parameter.stack = experts + name, parameter.name = parameter.stack + "[" + std::to_string(e) + "]";
      parameter.row = e, parameter.rows = E;
      return add(std::move(parameter));
    };
    const auto product = [&](const std::string& name, std::int64_t in, std::int64_t out) {
      const std::string why = count + ", " + keys;
      return Layer{stacked(name, matrix("", {in, out}, settings, why)), stacked(name + "_bias", bias("", out, why))};
    };
    if (names.stacked())
      places_.push_back({.gate = product(names.gate, C, 2 * I), .up = {}, .down = product(names.down, I, C)});
    else
      places_.push_back({placed(names.gate, {I, C}), placed(names.up, {I, C}), placed(names.down, {C, I})});
  }
}

std::vector<kernel::Expert> Experts::networks(std::span<const Tensor> owned) const {
  std::vector<kernel::Expert> networks;
  const Layer& last = places_.back().down;
  const auto each = static_cast<std::size_t>(std::max(last.weight, last.bias)) + 1;  // tensors of a leaf
  for (std::size_t leaf = 0; leaf < owned.size(); leaf += each) {
    const std::span<const Tensor> tensors = owned.subspan(leaf);
    for (const auto& [gate, up, down] : places_)
      networks.push_back({.gate = tensor_at(tensors, gate.weight),
                          .up = tensor_at(tensors, up.weight),
                          .down = tensor_at(tensors, down.weight),
                          .gate_bias = tensor_at(tensors, gate.bias),
                          .down_bias = tensor_at(tensors, down.bias)});
  }
  return networks;
}

Tensor Experts::forward(const kernel::Kernels& kernels, const Tensor& x_BTC, const Routed& routed,
                        std::span<const Tensor> owned, const unit::ForwardContext& context) const {
  kernel::ExpertsLayer layer{};
  layer.norm_C = routed.norm_C, layer.epsilon = routed.epsilon, layer.router = routed.router;
  layer.chosen = mixture_.chosen, layer.routing = mixture_.routing;
  layer.experts = networks(owned), layer.among = context.experts;
  layer.alpha = mixture_.alpha, layer.limit = mixture_.limit;
  layer.one_by_one = one_by_one_;
  const kernel::Mixed made = kernel::experts_layer(kernels, x_BTC, layer);
  if (mixture_.adds_auxiliary && context.beside) {
    const Tensor its_2E = balance(made.routes, context.batch);
    *context.beside = context.beside->defined() ? *context.beside + its_2E : its_2E;
  }
  return made.y_BTC;
}

namespace {

/// The routing of a micro-batch or a chunk, summed over the routers of all layers.
Tensor routed_sums(const unit::ForwardContext& context) {
  if (!context.beside || !context.beside->defined())
    throw Error("the auxiliary loss of experts lacks their routing: this is a fault of zs");
  return *context.beside;
}

/// Tokens except padding.
Tensor tokens_of(const unit::ForwardContext& context, const at::TensorOptions& options) {
  const Tensor mask_N1 = counted(context.batch);
  return mask_N1.defined() ? mask_N1.sum() : at::full({}, context.batch.inputs.numel(), options);
}

Tensor auxiliary_loss(const Mixture& mixture, const Tensor& sums_2E, const Tensor& tokens) {
  const Tensor means_2E = sums_2E / (tokens * static_cast<double>(mixture.number()));
  return (means_2E.select(0, 0) * means_2E.select(0, 1)).sum() *
         (mixture.auxiliary * static_cast<double>(mixture.count));
}

/// In their order.
Tensor sum_of(const std::vector<Tensor>& terms) {
  Tensor sum;
  for (const Tensor& each : terms) sum = sum.defined() ? sum + each : each;
  return sum;
}

}  // namespace

Tensor auxiliary_loss(const Mixture& mixture, const unit::ForwardContext& context) {
  const Tensor sums_2E = routed_sums(context);
  return auxiliary_loss(mixture, sums_2E, tokens_of(context, sums_2E.options()));
}

std::vector<Tensor> auxiliary_losses(const Mixture& mixture, std::span<const unit::Chunk> chunks,
                                     const unit::Sequence& sequence) {
  std::vector<Tensor> sums, tokens;
  for (const unit::Chunk& chunk : chunks) {
    sums.push_back(routed_sums(chunk.context));
    tokens.push_back(tokens_of(chunk.context, sums.back().options()));
  }
  const Tensor sums_2E = sum_of(sequence.of_all(sums)).detach(), total = sum_of(sequence.of_all(tokens));
  std::vector<Tensor> losses;
  for (const Tensor& its_2E : sums) {
    // Its value is of all chunks, its gradient this chunk's part. A leaf counts one of as many as there are chunks.
    const Tensor loss = auxiliary_loss(mixture, sums_2E + (its_2E - its_2E.detach()), total);
    losses.push_back(loss.detach() + (loss - loss.detach()) * static_cast<double>(sequence.chunks()));
  }
  return losses;
}

}  // namespace zs::model
