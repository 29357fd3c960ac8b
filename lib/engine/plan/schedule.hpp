// SPDX-License-Identifier: Apache-2.0
// Which passes run over the plan of a step, from how many steps done on: the schedule of DeepSpeed's DeepCompile,
// [(step, [passes])]. Each entry names all passes of its plan; in front of the first one there are none.
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
using Schedule = std::vector<Scheduled>;  ///< by steps, the first one from 0 on

/// Those passes from the first step on.
Schedule from_the_start(std::vector<std::string> passes);

/// From "prefetch" "overlap_reduce", which count from the first step on, or from "2:prefetch" "5:ALL", where
/// "prefetch+overlap_reduce" are several passes of an entry, "none" is no pass, and "ALL" stands for usual_passes().
/// Throws zs::Error at what is neither; names are not looked up.
Schedule schedule_from(const std::vector<std::string>& words);

/// As schedule_from() reads it.
std::string to_text(const Schedule& schedule);

/// The place of the entry that a step has behind which `done` steps lie.
std::size_t in_force(const Schedule& schedule, std::int64_t done);

}  // namespace zs::plan
