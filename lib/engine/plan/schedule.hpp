// SPDX-License-Identifier: Apache-2.0
// The passes of a step by the number of steps done: the schedule of DeepSpeed's DeepCompile, [(step, [passes])]. Each
// entry names all passes of its plan; before the first entry there are none.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::plan {

struct Scheduled {
  std::int64_t behind = 0;  ///< steps done
  std::vector<std::string> passes{};
  bool operator==(const Scheduled&) const = default;
};
using Schedule = std::vector<Scheduled>;  ///< ascending by steps, from 0

/// These passes from the first step on.
Schedule from_the_start(std::vector<std::string> passes);

/// Parses "prefetch" "overlap_reduce", which apply from the first step on, or "2:prefetch" "5:ALL".
/// "prefetch+overlap_reduce" are several passes of an entry, "none" means no passes, and "ALL" means usual_passes().
/// Throws zs::Error at anything else; names are not looked up.
Schedule schedule_from(const std::vector<std::string>& words);

/// In the format of schedule_from().
std::string to_text(const Schedule& schedule);

/// The index of the entry for the step after `done` steps.
std::size_t in_force(const Schedule& schedule, std::int64_t done);

}  // namespace zs::plan
