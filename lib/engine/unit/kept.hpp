// SPDX-License-Identifier: Apache-2.0
// Results of a unit's first forward that its second forward replays instead of computing them again. With activation
// checkpointing backward runs a unit's forward a second time, and attention of long samples is worth its memory.
#pragma once
#include <deque>
#include <functional>
#include <vector>

#include "unit/tensor.hpp"

namespace zs::unit {

/// Tensors that are computed together.
using Results = std::vector<at::Tensor>;
/// The results of one forward, in the order of their computation.
using Kept = std::deque<Results>;

/// While it exists, kept() on this thread puts what it computes into `results`, or takes it from there.
class Keeping {
 public:
  enum class Way { put, take };
  Keeping(Kept& results, Way way);
  ~Keeping();
  Keeping(const Keeping&) = delete;
  Keeping& operator=(const Keeping&) = delete;

 private:
  Keeping* outer_;
  Kept& results_;
  Way way_;
  friend Results kept(const std::function<Results()>& compute);
};

/// While it exists, forward on this thread is the second one of a unit, for its backward. Its result is not read.
class Again {
 public:
  Again();
  ~Again();
  Again(const Again&) = delete;
  Again& operator=(const Again&) = delete;
};
bool again();

/// The result of `compute`. A second forward gets the result of the same call in the first. REQUIRES: both make the
/// same calls in the same order, and the tensors stay as they are.
Results kept(const std::function<Results()>& compute);

}  // namespace zs::unit
