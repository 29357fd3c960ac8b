// SPDX-License-Identifier: Apache-2.0
// R rows of one expert, or of all of them, N*K in all.
#include "kernel/experts.hpp"

#include <ATen/MethodOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernel/gated_experts.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

Tensor logits(const Tensor& x_NC, const Projection& router) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Tensor x = x_NC.to(at::kFloat), weight_CE = router.weight_OI.to(at::kFloat).t();
  return router.bias_O.defined() ? at::addmm(router.bias_O.to(at::kFloat), x, weight_CE) : at::mm(x, weight_CE);
}

const ExpertParts& parts_of(const Kernels& by) { return by.experts ? *by.experts : plain_parts(); }

/// The outputs of experts on a GPU, as one node.
Tensor at_once(const Kernels& by, const Tensor& rows_RC, std::span<const std::int64_t> counts,
               std::span<const Expert> experts, const ExpertsLayer& layer) {
  const Gating how{!experts[0].up.defined(), layer.alpha, layer.limit};
  return gated_experts(rows_RC, counts, experts, how, parts_of(by));
}
bool takes_at_once(const Tensor& rows_RC) {
  return rows_RC.is_cuda() && c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastCUDA);
}

/// An expert's output for its tokens.
Tensor network(const Kernels& by, const Tensor& x_RC, const Expert& expert, const ExpertsLayer& layer) {
  const std::int64_t R = x_RC.size(0);
  if (takes_at_once(x_RC)) return at_once(by, x_RC, {&R, 1}, {&expert, 1}, layer);
  const Tensor x_1RC = (R == 1 ? at::constant_pad_nd(x_RC, {0, 0, 0, 1}) : x_RC).unsqueeze(0);
  Tensor y_1RC;
  if (expert.up.defined()) {
    const Tensor up_1RI = by.project(x_1RC, expert.up, {}), gate_1RI = by.project(x_1RC, expert.gate, {});
    y_1RC = by.project(by.swiglu(gate_1RI, up_1RI), expert.down, {});
  } else {
    const Tensor both = by.linear(x_1RC, expert.gate, expert.gate_bias);
    const std::vector<Tensor> pair = both.view({1, both.size(1), both.size(2) / 2, 2}).unbind(3);
    const Tensor gate_1RI = pair[0].clamp_max(layer.limit), up_1RI = pair[1].clamp(-layer.limit, layer.limit);
    y_1RC = by.linear((up_1RI + 1) * (gate_1RI * (gate_1RI * layer.alpha).sigmoid()), expert.down, expert.down_bias);
  }
  return y_1RC.squeeze(0).narrow(0, 0, R);
}

/// The outputs of experts for their rows, which follow each other expert by expert.
Tensor each(const Kernels& by, const Tensor& rows_RC, std::span<const std::int64_t> counts,
            std::span<const Expert> experts, const ExpertsLayer& layer) {
  if (takes_at_once(rows_RC)) return at_once(by, rows_RC, counts, experts, layer);
  const std::vector<Tensor> parts = rows_RC.split_with_sizes({counts.data(), counts.size()}, 0);
  std::vector<Tensor> made;
  for (std::size_t e = 0; e < parts.size(); ++e) made.push_back(network(by, parts[e], experts[e], layer));
  return at::cat(made);
}

/// The same where ranks divide the experts.
Tensor divided(const Kernels& by, const Tensor& rows_RC, const std::vector<std::int64_t>& counts,
               const ExpertsLayer& layer) {
  const unit::ExpertRanks& among = *layer.among;
  const auto leaves = static_cast<std::size_t>(among.size()), local = layer.experts.size() / leaves,
             first = static_cast<std::size_t>(among.rank()) * local;
  const unit::ExpertRanks::Counts by_leaf = among.counts(counts);
  std::vector<Tensor> rows = among.to_experts(rows_RC, by_leaf);
  for (std::size_t leaf = 0; leaf < leaves; ++leaf)
    rows[leaf] = each(by, rows[leaf], std::span(by_leaf[leaf]).subspan(first, local),
                      std::span(layer.experts).subspan(leaf * local, local), layer);
  return among.to_tokens(rows, by_leaf);
}

/// Rows of x by `from`, of each row K, as a node of autograd. Its gradient picks by `back` the places of each row's, in
/// their order, and adds them: without sorting, and in one order.
struct Picked : torch::autograd::Function<Picked> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_NC, const Tensor& from_R, const Tensor& back_R) {
    ctx->save_for_backward({back_R});
    ctx->saved_data["rows"] = x_NC.size(0);
    return x_NC.index_select(0, from_R);
  }
  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const std::int64_t N = ctx->saved_data["rows"].toInt(), C = gradients[0].size(1);
    const Tensor picked_RC = gradients[0].index_select(0, ctx->get_saved_variables()[0]);
    return {picked_RC.size(0) == N ? picked_RC : picked_RC.view({N, -1, C}).sum(1), Tensor(), Tensor()};
  }
};

/// The results of experts. Row place_R[n K + k] is the result of expert k of token n; `order_R` is the inverse.
struct Sent {
  Tensor made_RC, place_R, order_R;
};

/// Of rows that are sorted by their expert.
Sent sorted(const Kernels& by, const Tensor& x_NC, const Tensor& experts_NK, const ExpertsLayer& layer) {
  const std::int64_t N = x_NC.size(0), K = layer.chosen, E = static_cast<std::int64_t>(layer.experts.size());
  const Tensor expert_R = experts_NK.reshape({-1});
  // Stable: of one expert, in the order of tokens.
  const Tensor order_R = std::get<1>(expert_R.sort(/*stable=*/true, 0, /*descending=*/false));
  const Tensor counts_E = expert_R.unsqueeze(1).eq(at::arange(E, expert_R.options())).sum(0).to(at::kCPU);
  const std::vector<std::int64_t> counts(counts_E.data_ptr<std::int64_t>(), counts_E.data_ptr<std::int64_t>() + E);
  const Tensor place_R = at::empty_like(order_R).scatter_(0, order_R, at::arange(N * K, order_R.options()));
  const Tensor rows_RC = Picked::apply(x_NC, at::floor_divide(order_R, K), place_R);
  const Tensor made_RC =
      layer.among ? divided(by, rows_RC, counts, layer) : each(by, rows_RC, counts, layer.experts, layer);
  return {made_RC, place_R, order_R};
}

/// The same, one expert after another.
Sent one_by_one(const Kernels& by, const Tensor& x_NC, const Tensor& experts_NK, const ExpertsLayer& layer) {
  const std::int64_t N = x_NC.size(0), K = layer.chosen, C = x_NC.size(1);
  const Tensor x_NKC = x_NC.unsqueeze(1).expand({N, K, C});
  Tensor y_NKC;
  for (std::size_t e = 0; e < layer.experts.size(); ++e) {
    const Tensor place_R2 = experts_NK.eq(static_cast<std::int64_t>(e)).nonzero();
    const c10::List<c10::optional<Tensor>> places({place_R2.select(1, 0), place_R2.select(1, 1)});
    const Tensor made_RC = network(by, x_NKC.index(places), layer.experts[e], layer);
    if (!y_NKC.defined()) y_NKC = at::zeros({N, K, C}, made_RC.options());
    y_NKC = y_NKC.index_put(places, made_RC);
  }
  const Tensor every_R = at::arange(N * K, experts_NK.options());
  return {y_NKC.reshape({N * K, C}), every_R, every_R};
}

/// In float32, in the order of a token's experts.
Tensor weighted(const Tensor& y_NKC, const Tensor& weights_NK) {
  const std::vector<Tensor> made = y_NKC.unbind(1), weights = weights_NK.unsqueeze(2).unbind(1);
  Tensor sum_NC;
  for (std::size_t k = 0; k < made.size(); ++k) {
    const Tensor term_NC = made[k].to(at::kFloat) * weights[k];
    sum_NC = k == 0 ? term_NC : sum_NC + term_NC;
  }
  return sum_NC;
}

}  // namespace

Routes routes(const Tensor& logits_NE, std::int64_t chosen, Routing routing) {
  // Stable: of equal ones the first.
  const Tensor experts_NK =
      std::get<1>(logits_NE.detach().sort(/*stable=*/true, 1, /*descending=*/true)).narrow(1, 0, chosen);
  const Tensor probabilities_NE = at::softmax(logits_NE, 1);
  if (routing == Routing::chosen)
    return {experts_NK, at::softmax(logits_NE.gather(1, experts_NK), 1), probabilities_NE};
  const Tensor weights_NK = probabilities_NE.gather(1, experts_NK);
  return {experts_NK, routing == Routing::normalised ? weights_NK / weights_NK.sum(1, /*keepdim=*/true) : weights_NK,
          probabilities_NE};
}

Mixed experts_layer(const Kernels& given, const Tensor& x_BTC, const ExpertsLayer& layer) {
  Kernels by = x_BTC.is_cuda() ? plain() : given;  // a fused product would be chosen for each number of rows
  by.experts = given.experts;
  const auto [x, in_BTC] = given.rms_norm(x_BTC, layer.norm_C, layer.epsilon);
  const Tensor in_NC = in_BTC.reshape({-1, in_BTC.size(2)});
  const Routes chosen = routes(logits(in_NC, layer.router), layer.chosen, layer.routing);
  const auto [made_RC, place_R, order_R] =
      (layer.one_by_one ? one_by_one : sorted)(by, in_NC, chosen.experts_NK, layer);
  if (const auto combine = parts_of(by).combine; combine && takes_at_once(made_RC) && made_RC.size(1) % 8 == 0)
    return {combine(x.reshape(in_NC.sizes()), made_RC, place_R, chosen.weights_NK).view(x.sizes()), chosen};
  const Tensor y_NKC = Picked::apply(made_RC, place_R, order_R).view({in_NC.size(0), layer.chosen, -1});
  return {x + weighted(y_NKC, chosen.weights_NK).to(x.scalar_type()).view(x.sizes()), chosen};
}

}  // namespace zs::kernel
