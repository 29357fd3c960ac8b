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

class Ahead {
 public:
  /// Of what lies in `store`, whose device holds `held()` bytes; both outlive it.
  Ahead(Store& store, std::function<std::int64_t()> held) : store_(&store), held_(std::move(held)) {}

  /// Before operation `at` of the plan. `state`: what of a unit is offloaded.
  void before(const plan::Plan& plan, std::size_t at, const std::function<Kept&(int unit)>& state);

 private:
  Store* store_;
  std::function<std::int64_t()> held_;
  // What is held without what travels: at most, at the last look, and by how much it rose from one look to the next,
  // before the last backward and in it.
  std::int64_t most_ = 0, last_ = 0, rise_[2] = {};
  bool late_ = false;      // at the last look: no forward is to come in this step
  std::size_t begun_ = 0;  // the operation up to which loads have begun
};

}  // namespace zs::zero
