// SPDX-License-Identifier: Apache-2.0
// Experts that are divided among ranks: rank r of N has the r-th part. Each of these ranks has a separate micro-batch,
// a leaf of the sum of gradients. A token's row is sent to the rank of its expert and back.
//
//            rows by expert     to_experts()       rows by leaf, then by expert     to_tokens()
//   rank 0   [ e0 e1 | e2 e3 ]  --all-to-all-->    [ e0 e1 ] [ e0 e1 ]              --all-to-all-->   as they were
//   rank 1   [ e0 e1 | e2 e3 ]                     [ e2 e3 ] [ e2 e3 ]
//
// An expert computes the rows of each leaf as one product, as without division: so the bits are the same.
#pragma once
#include <cstdint>
#include <vector>

#include "unit/tensor.hpp"

namespace zs::unit {

class ExpertRanks {
 public:
  virtual ~ExpertRanks() = default;
  /// The ranks, as many as leaves, and this one.
  virtual int size() const = 0;
  virtual int rank() const = 0;

  /// Rows on their way: those that each leaf has for each expert, [leaf][expert] of all experts.
  using Counts = std::vector<std::vector<std::int64_t>>;
  /// The counts of all leaves, from this rank's counts. COLLECTIVE: of these ranks.
  virtual Counts counts(const std::vector<std::int64_t>& local) const = 0;
  /// By leaf the rows for this rank's experts, in their order, from this rank's leaf's rows for all, [R, C].
  /// Differentiable. COLLECTIVE: of these ranks; its backward too.
  virtual std::vector<at::Tensor> to_experts(const at::Tensor& rows_RC, const Counts& counts) const = 0;
  /// The way back: what became of them, [R, C]. COLLECTIVE: as above.
  virtual at::Tensor to_tokens(const std::vector<at::Tensor>& rows_RC, const Counts& counts) const = 0;
};

}  // namespace zs::unit
