// SPDX-License-Identifier: Apache-2.0
// The plans of a training's steps: one per entry of its schedule of passes, the same on every rank.
#pragma once
#include <memory>
#include <vector>

#include "comm/group.hpp"
#include "plan/profile.hpp"
#include "zero/settings.hpp"

namespace zs::zero {

class Plans {
 public:
  /// Throws zs::Error if ZeRO++ is not possible with these ranks, if the ranks do not have the same plans, and in the
  /// same cases as plan::compile. COLLECTIVE.
  Plans(comm::Group& group, const unit::Units& units, const Strategy& strategy, const Settings& settings);

  /// Takes the plan that the schedule has for a step; true if it is another than before.
  bool prepare(std::int64_t step);
  /// Sets measured times, for entries of the schedule after the first step: later plans are made from them. COLLECTIVE:
  /// the same on every rank.
  void measured(std::shared_ptr<const plan::Profile> profile);

  /// The plan of the current step, or of the next.
  const plan::Plan& current() const { return current_; }
  /// The plans of all entries of the schedule.
  const std::vector<plan::Plan>& all() const { return plans_; }
  const plan::Schedule& schedule() const { return schedule_; }
  /// Whether any of them has an operation of that kind, on that unit or (-1) on any.
  bool have(plan::Kind kind, int unit = -1) const;

 private:
  comm::Group& group_;
  plan::Schedule schedule_;
  plan::Budget budget_;
  std::vector<plan::Plan> plans_;  // by entry of the schedule
  std::size_t at_ = 0;             // the entry of the current plan
  plan::Plan current_;
  bool changed_ = false;  // since prepare()

  void require_same();
};

/// Only forward, of one micro-batch per rank.
plan::Plan evaluation_plan(const plan::Plan& training);

}  // namespace zs::zero
