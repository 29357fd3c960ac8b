// SPDX-License-Identifier: Apache-2.0
// Shapes as in kernel/experts.hpp; n rows of one expert.
#include "kernel/gated_experts.hpp"

#include <ATen/MethodOperators.h>
#include <ATen/ops/_foreach_add.h>
#if __has_include(<ATen/ops/_grouped_mm.h>)
#include <ATen/ops/_grouped_mm.h>
#endif
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numeric>

#include "kernel/gradient.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

constexpr std::size_t kGate = 0, kUp = 1, kDown = 2, kWeights = 3;  // of an expert
constexpr std::int64_t kAligned = 8;  // numbers of bfloat16 in the 16 bytes to which grouped products are aligned

/// Products of rows, or of columns, of which each expert has those up to its end: of a and b[e], or of both. REQUIRES:
/// kGrouped.
#if __has_include(<ATen/ops/_grouped_mm.h>)
constexpr bool kGrouped = true;
Tensor grouped_product(const Tensor& a, const Tensor& b, const Tensor& ends_E) { return at::_grouped_mm(a, b, ends_E); }
#else
constexpr bool kGrouped = false;
Tensor grouped_product(const Tensor&, const Tensor&, const Tensor&) { return {}; }
#endif

/// Products with the weights of experts, of which each has its rows behind another's.
class Products {
 public:
  Products(const std::vector<std::int64_t>& counts, const Tensor* weights) : counts_(counts), weights_(weights) {}

  /// The rows times their expert's weight number `which`, or its transpose: [R, O].
  Tensor rows(const Tensor& a_RI, std::size_t which, bool transposed) const {
    if (grouped(a_RI)) {
      const Tensor all = joined(which);
      return grouped_product(a_RI, transposed ? all.transpose(1, 2) : all, ends(a_RI));
    }
    const Tensor made_RO = at::empty({a_RI.size(0), weights_[which].size(transposed ? 0 : 1)}, a_RI.options());
    each([&](std::size_t e, std::int64_t begin, std::int64_t n) {
      const Tensor& weight = weights_[e * kWeights + which];
      Tensor its = made_RO.narrow(0, begin, n);
      if (n == 1)
        its.copy_(at::mm(rows_of(a_RI, begin, n), transposed ? weight.t() : weight).narrow(0, 0, n));
      else
        at::mm_out(its, rows_of(a_RI, begin, n), transposed ? weight.t() : weight);
    });
    return made_RO;
  }

  /// Adds each expert's product of the transposed rows of dy with the rows of x to the gradient of its weight.
  void add(std::vector<Gradient>& sums, std::size_t which, const Tensor& dy_RO, const Tensor& x_RI) const {
    const Tensor all = grouped(dy_RO) ? grouped_product(dy_RO.t(), x_RI, ends(dy_RO)) : Tensor();
    std::vector<Tensor> into, terms;
    each([&](std::size_t e, std::int64_t begin, std::int64_t n) {
      Gradient& sum = sums[e * kWeights + which];
      if (!sum.wanted()) return;
      into.push_back(sum.sum());
      terms.push_back(all.defined() ? all[static_cast<std::int64_t>(e)]
                                    : at::mm(rows_of(dy_RO, begin, n).t(), rows_of(x_RI, begin, n)));
    });
    if (!into.empty()) at::_foreach_add_(into, terms);
  }

 private:
  const std::vector<std::int64_t>& counts_;
  const Tensor* weights_;

  /// Calls `see` with each expert that has rows, the first of them, and how many.
  template <typename See>
  void each(See see) const {
    std::int64_t begin = 0;
    for (std::size_t e = 0; e < counts_.size(); begin += counts_[e++]) {
      if (counts_[e] > 0) see(e, begin, counts_[e]);
    }
  }

  /// Rows of one expert; of one row two, the second of zeros.
  static Tensor rows_of(const Tensor& all_RX, std::int64_t begin, std::int64_t n) {
    const Tensor its = all_RX.narrow(0, begin, n);
    return n == 1 ? at::constant_pad_nd(its, {0, 0, 0, 1}) : its;
  }

  /// Elements from one expert's weight to the next one's.
  std::int64_t stride(std::size_t which) const {
    if (counts_.size() == 1) return weights_[which].numel();
    return weights_[kWeights + which].storage_offset() - weights_[which].storage_offset();
  }
  /// The weights number `which` of all experts, [E, O, I]. REQUIRES: grouped().
  Tensor joined(std::size_t which) const {
    const Tensor& first = weights_[which];
    return first.as_strided({std::ssize(counts_), first.size(0), first.size(1)}, {stride(which), first.size(1), 1});
  }
  /// Whether one call computes all products: for bfloat16 on a GPU, if the weights have equal distances in one buffer.
  /// Its bits are the same as those of one product after another.
  bool grouped(const Tensor& rows) const {
    if (!kGrouped || !rows.is_cuda() || rows.scalar_type() != at::kBFloat16 || rows.size(0) == 0) return false;
    for (std::size_t i = 0; i < counts_.size() * kWeights; ++i) {
      const Tensor &its = weights_[i], &first = weights_[i % kWeights];
      const auto e = static_cast<std::int64_t>(i / kWeights);
      const bool fits = its.size(0) % kAligned == 0 && its.size(1) % kAligned == 0 && its.is_contiguous() &&
                        its.storage_offset() % kAligned == 0 &&
                        its.storage().unsafeGetStorageImpl() == first.storage().unsafeGetStorageImpl() &&
                        its.storage_offset() == first.storage_offset() + e * stride(i % kWeights);
      if (!fits) return false;
    }
    return stride(0) > 0;
  }
  /// Behind the last row of each expert, int32 on the device.
  Tensor ends(const Tensor& beside) const {
    const Tensor here = at::empty({std::ssize(counts_)}, at::TensorOptions(at::kInt));
    std::partial_sum(counts_.begin(), counts_.end(), here.data_ptr<std::int32_t>());
    return here.to(beside.device(), /*non_blocking=*/true);
  }
};

struct Gated : torch::autograd::Function<Gated> {
  static Tensor forward(AutogradContext* ctx, const Tensor& rows_RC, const at::TensorList& weights,
                        const std::vector<std::int64_t>& counts) {
    const Products by(counts, weights.data());
    const Tensor gate_RI = by.rows(rows_RC, kGate, true), up_RI = by.rows(rows_RC, kUp, true);
    Variables saved = {rows_RC, gate_RI, up_RI};
    saved.insert(saved.end(), weights.begin(), weights.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["counts"] = counts;
    return by.rows(at::silu(gate_RI).mul_(up_RI), kDown, true);
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &rows_RC = saved[0], &gate_RI = saved[1], &up_RI = saved[2], dy_RC = gradients[0].contiguous();
    const Tensor* const weights = saved.data() + 3;
    const std::vector<std::int64_t> counts = ctx->saved_data["counts"].toIntVector();
    const Products by(counts, weights);
    std::vector<Gradient> sums(weights, weights + counts.size() * kWeights);
    const Tensor silu_RI = at::silu(gate_RI), dinner_RI = by.rows(dy_RC, kDown, false);
    by.add(sums, kDown, dy_RC, silu_RI * up_RI);
    const Tensor dgate_RI = at::silu_backward(dinner_RI * up_RI, gate_RI), dup_RI = silu_RI.mul_(dinner_RI);
    by.add(sums, kGate, dgate_RI, rows_RC);
    by.add(sums, kUp, dup_RI, rows_RC);
    Variables all = {by.rows(dgate_RI, kGate, false).add_(by.rows(dup_RI, kUp, false))};
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
