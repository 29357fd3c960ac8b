// SPDX-License-Identifier: Apache-2.0
// Shapes: R rows, C numbers of each.
#include "zero/shared_experts.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include <numeric>

#include "device/tensor.hpp"

namespace zs::zero {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;
using Sizes = std::vector<std::int64_t>;

/// Rows that change ranks, as a node of autograd: rows[r] go to rank r, and as many as `sizes` says come from it. Its
/// gradient goes the other way.
struct Moved : torch::autograd::Function<Moved> {
  static Variables forward(AutogradContext* ctx, const at::TensorList& rows, const SharedExperts* experts,
                           const Sizes& sizes) {
    Sizes back;
    for (const Tensor& tensor : rows) back.push_back(tensor.size(0));
    ctx->saved_data["experts"] = reinterpret_cast<std::int64_t>(experts);
    ctx->saved_data["back"] = back;
    return experts->moved(rows.vec(), sizes);
  }
  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const auto* const experts = reinterpret_cast<const SharedExperts*>(ctx->saved_data["experts"].toInt());
    Variables results = experts->moved(gradients, ctx->saved_data["back"].toIntVector());
    results.resize(results.size() + 2);  // of the other arguments
    return results;
  }
};

/// Rows for the experts of rank `rank` of `ranks`.
std::int64_t rows_for(const Sizes& counts, int rank, int ranks) {
  const auto per_rank = static_cast<std::ptrdiff_t>(counts.size()) / ranks;
  return std::accumulate(counts.begin() + rank * per_rank, counts.begin() + (rank + 1) * per_rank, std::int64_t{0});
}

}  // namespace

unit::ExpertRanks::Counts SharedExperts::counts(const Sizes& local) const {
  return group_->all_gather(std::span<const std::int64_t>(local), "exchange of the numbers of tokens of experts");
}

Sizes SharedExperts::sent(const Counts& counts) const {
  Sizes sizes;
  for (int rank = 0; rank < size(); ++rank)
    sizes.push_back(rows_for(counts[static_cast<std::size_t>(group_->rank())], rank, size()));
  return sizes;
}

Sizes SharedExperts::received(const Counts& counts) const {
  Sizes sizes;
  for (const Sizes& leaf : counts) sizes.push_back(rows_for(leaf, group_->rank(), size()));
  return sizes;
}

std::vector<Tensor> SharedExperts::moved(const std::vector<Tensor>& rows, const Sizes& sizes) const {
  const at::NoGradGuard no_grad;
  const std::int64_t C = rows[0].size(1);
  std::vector<Tensor> to, from;
  std::vector<device::View> sent, received;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const bool local = static_cast<int>(rank) == group_->rank();
    to.push_back(local ? Tensor() : rows[rank].contiguous());
    from.push_back(local ? rows[rank].clone() : at::empty({sizes[rank], C}, rows[0].options()));
    const device::Type type = device::type_of(rows[0].scalar_type());
    const device::View none{nullptr, 0, type, group_->device()};
    sent.push_back(local || to.back().numel() == 0 ? none : device::view(to.back()));
    received.push_back(local || from.back().numel() == 0 ? none : device::view(from.back()));
  }
  group_->all_to_all(sent, received, "all-to-all of tokens of experts")->wait();
  return from;
}

std::vector<Tensor> SharedExperts::to_experts(const Tensor& rows_RC, const Counts& counts) const {
  const Variables pieces = rows_RC.split_with_sizes(sent(counts), 0);
  return Moved::apply(at::TensorList(pieces), this, received(counts));
}

Tensor SharedExperts::to_tokens(const std::vector<Tensor>& rows_RC, const Counts& counts) const {
  return at::cat(Moved::apply(at::TensorList(rows_RC), this, sent(counts)));
}

}  // namespace zs::zero
