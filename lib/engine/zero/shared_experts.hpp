// SPDX-License-Identifier: Apache-2.0
// Rows of tokens between the ranks that divide experts among them.
#pragma once
#include "comm/group.hpp"
#include "unit/expert_ranks.hpp"

namespace zs::zero {

class SharedExperts final : public unit::ExpertRanks {
 public:
  /// The group outlives it.
  explicit SharedExperts(comm::Group& group) : group_(&group) {}

  int size() const override { return group_->size(); }
  int rank() const override { return group_->rank(); }
  Counts counts(const std::vector<std::int64_t>& local) const override;
  std::vector<at::Tensor> to_experts(const at::Tensor& rows_RC, const Counts& counts) const override;
  at::Tensor to_tokens(const std::vector<at::Tensor>& rows_RC, const Counts& counts) const override;

  /// Rows that change ranks: rows[r] go to rank r, and sizes[r] come from it. COLLECTIVE.
  std::vector<at::Tensor> moved(const std::vector<at::Tensor>& rows, const std::vector<std::int64_t>& sizes) const;

 private:
  comm::Group* group_;

  /// Rows for each rank's experts from this rank's leaf, and for this rank's experts from each rank's.
  std::vector<std::int64_t> sent(const Counts& counts) const;
  std::vector<std::int64_t> received(const Counts& counts) const;
};

}  // namespace zs::zero
