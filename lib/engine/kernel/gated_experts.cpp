// SPDX-License-Identifier: Apache-2.0
// Shapes as in kernel/experts.hpp; n rows of one expert.
#include "kernel/gated_experts.hpp"

#include <ATen/MethodOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernel/gradient.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

constexpr std::size_t kWeights = 3;  // of an expert: gate, up and down

/// The rows of one expert, n of them from `begin` on; of one row two, the second of zeros.
struct Rows {
  std::int64_t begin, n;

  Tensor of(const Tensor& all_RX) const {
    const Tensor its = all_RX.narrow(0, begin, n);
    return n == 1 ? at::constant_pad_nd(its, {0, 0, 0, 1}) : its;
  }
  /// Puts a product of its rows of `a` into those of `into`.
  void multiply(const Tensor& into_RO, const Tensor& a_RI, const Tensor& b_IO) const {
    Tensor its = into_RO.narrow(0, begin, n);
    if (n == 1)
      its.copy_(at::mm(of(a_RI), b_IO).narrow(0, 0, n));
    else
      at::mm_out(its, of(a_RI), b_IO);
  }
};

/// Calls `see` with the number of each expert that has rows, and these.
template <typename See>
void each(const std::vector<std::int64_t>& counts, See see) {
  std::int64_t begin = 0;
  for (std::size_t e = 0; e < counts.size(); begin += counts[e++]) {
    if (counts[e] > 0) see(e, Rows{begin, counts[e]});
  }
}

struct Gated : torch::autograd::Function<Gated> {
  static Tensor forward(AutogradContext* ctx, const Tensor& rows_RC, const at::TensorList& weights,
                        const std::vector<std::int64_t>& counts) {
    const std::int64_t R = rows_RC.size(0), I = weights[0].size(0);
    const Tensor gate_RI = at::empty({R, I}, rows_RC.options()), up_RI = at::empty_like(gate_RI),
                 y_RC = at::empty_like(rows_RC);
    each(counts, [&](std::size_t e, Rows its) {
      its.multiply(gate_RI, rows_RC, weights[e * kWeights].t());
      its.multiply(up_RI, rows_RC, weights[e * kWeights + 1].t());
    });
    const Tensor inner_RI = at::silu(gate_RI).mul_(up_RI);
    each(counts, [&](std::size_t e, Rows its) { its.multiply(y_RC, inner_RI, weights[e * kWeights + 2].t()); });
    Variables saved = {rows_RC, gate_RI, up_RI};
    saved.insert(saved.end(), weights.begin(), weights.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["counts"] = counts;
    return y_RC;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &rows_RC = saved[0], &gate_RI = saved[1], &up_RI = saved[2], dy_RC = gradients[0].contiguous();
    const Tensor* const weights = saved.data() + 3;
    const std::vector<std::int64_t> counts = ctx->saved_data["counts"].toIntVector();
    const Tensor silu_RI = at::silu(gate_RI), inner_RI = silu_RI * up_RI, dinner_RI = at::empty_like(inner_RI);
    each(counts, [&](std::size_t e, Rows its) { its.multiply(dinner_RI, dy_RC, weights[e * kWeights + 2]); });
    const Tensor dgate_RI = at::silu_backward(dinner_RI * up_RI, gate_RI), dup_RI = silu_RI.mul_(dinner_RI);
    const Tensor drows_RC = at::empty_like(rows_RC), more_RC = at::empty_like(rows_RC);
    std::vector<Gradient> sums(weights, weights + counts.size() * kWeights);
    each(counts, [&](std::size_t e, Rows its) {
      its.multiply(drows_RC, dgate_RI, weights[e * kWeights]);
      its.multiply(more_RC, dup_RI, weights[e * kWeights + 1]);
      const std::pair<Tensor, Tensor> factors[kWeights] = {{dgate_RI, rows_RC}, {dup_RI, rows_RC}, {dy_RC, inner_RI}};
      std::vector<Tensor> into, terms;
      for (std::size_t i = 0; i < kWeights; ++i) {
        Gradient& sum = sums[e * kWeights + i];
        if (!sum.wanted()) continue;
        into.push_back(sum.sum());
        terms.push_back(at::mm(its.of(factors[i].first).t(), its.of(factors[i].second)));
      }
      if (!into.empty()) at::_foreach_add_(into, terms);
    });
    Variables all = {drows_RC.add_(more_RC)};
    for (const Gradient& sum : sums) all.push_back(sum.returned());
    all.emplace_back();  // of the counts
    return all;
  }
};

}  // namespace

Tensor gated_experts(const Tensor& rows_RC, std::span<const std::int64_t> counts, std::span<const Expert> experts) {
  std::vector<Tensor> weights;
  for (const Expert& its : experts) weights.insert(weights.end(), {its.gate, its.up, its.down});
  return Gated::apply(rows_RC, at::TensorList(weights), std::vector<std::int64_t>(counts.begin(), counts.end()));
}

}  // namespace zs::kernel
