// SPDX-License-Identifier: Apache-2.0
// Beside a GPU, offloaded optimizer state travels while the GPU computes, in memory that activations leave free:
//
//   activations          ....:::||||||:::....            ....:::||||||:::....
//   what comes, goes                  ....::||||||||||||::....
//                        forward     backward  updates   forward  ...
//
// In the last backward of a step loads begin as soon as there is room, and what was updated goes home under the next
// forward. Room is what the device held at most until now, less what it holds: the peak does not rise.
#pragma once
#include <functional>

#include "plan/plan.hpp"
#include "zero/store.hpp"

namespace zs::zero {

class OptimizerPrefetcher {
 public:
  /// Of state that lies in `store`; `held()` gives the bytes in use of its device. Both outlive it.
  OptimizerPrefetcher(Store& store, std::function<std::int64_t()> held) : store_(&store), held_(std::move(held)) {}

  /// Before operation `at` of the plan. `state`: what of a unit is offloaded.
  void before(const plan::Plan& plan, std::size_t at, const std::function<OffloadableBuffer&(int unit)>& state);

 private:
  Store* store_;
  std::function<std::int64_t()> held_;
  // Device bytes in use without transfers under way: the peak, the last sample, and the largest rise between two
  // samples, before the last backward and in it.
  std::int64_t peak_ = 0, last_ = 0, rise_[2] = {};
  bool late_ = false;      // at the last sample: no forward is to come in this step
  std::size_t begun_ = 0;  // the operation up to which loads have begun
};

}  // namespace zs::zero
