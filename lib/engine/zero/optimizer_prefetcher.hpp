// SPDX-License-Identifier: Apache-2.0
// Next to a GPU, offloaded optimizer state moves while the GPU computes, into memory that activations do not use:
//
//   activations          ....:::||||||:::....            ....:::||||||:::....
//   what comes, goes                  ....::||||||||||||::....
//                        forward     backward  updates   forward  ...
//
// In the last backward of a step loads start as soon as there is room, and updated state is stored during the next
// forward. Room is the peak of the device so far, minus its current use: the peak does not rise.
#pragma once
#include <functional>

#include "plan/plan.hpp"
#include "zero/offloadable.hpp"

namespace zs::zero {

class OptimizerPrefetcher {
 public:
  /// For state in `store`; `held()` returns the bytes in use on its device. Both must outlive it.
  OptimizerPrefetcher(Store& store, std::function<std::int64_t()> held) : store_(&store), held_(std::move(held)) {}

  /// Call it before operation `at` of the plan. `state`: the offloaded state of a unit.
  void before(const plan::Plan& plan, std::size_t at, const std::function<OffloadableBuffer&(int unit)>& state);

 private:
  Store* store_;
  std::function<std::int64_t()> held_;
  // Device bytes in use without transfers under way: the peak, the last sample, and the largest rise between two
  // samples, before the last backward and in it.
  std::int64_t peak_ = 0, last_ = 0, rise_[2] = {};
  bool late_ = false;      // at the last sample: no forward follows in this step
  std::size_t begun_ = 0;  // loads have started up to this operation
};

}  // namespace zs::zero
