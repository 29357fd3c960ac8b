// SPDX-License-Identifier: Apache-2.0
// How a training stands, or how it ended: one set of words for summaries, reports, zs-runs and the manuals.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace zs::attribute {

/// From the best to the worst, so that the worst of several is their maximum.
enum class RunState : std::uint8_t {
  complete,   ///< all expected steps are there, or it says that it finished, and not how many steps that takes
  running,    ///< it trains
  pending,    ///< its job waits, or its script has not come to it
  unknown,    ///< nothing says whether it is complete
  truncated,  ///< steps are missing, and nothing says that it failed
  preempted,  ///< it stopped with everything saved, and nothing will go on with it
  cancelled,  ///< its user has cancelled its job
  missing,    ///< it never began, and nothing will train it
  dead,       ///< its parameters cannot have moved
  diverged,   ///< a loss or gradient norm is not finite
  failed,     ///< it ended with an exit code or an error, or short of its steps with its process or job gone
};

inline constexpr std::array<std::string_view, 11> kRunStates = {"COMPLETE",  "RUNNING",   "PENDING",   "UNKNOWN",
                                                                "TRUNCATED", "PREEMPTED", "CANCELLED", "MISSING",
                                                                "DEAD",      "DIVERGED",  "FAILED"};

/// "COMPLETE", "RUNNING", ...: in every table, report and JSON.
constexpr std::string_view name(RunState state) { return kRunStates[static_cast<std::size_t>(state)]; }

constexpr std::optional<RunState> state_named(std::string_view name) {
  for (std::size_t at = 0; at < kRunStates.size(); ++at) {
    if (kRunStates[at] == name) return static_cast<RunState>(at);
  }
  return {};
}

/// What an ended training came to may be compared with others: it is complete, or nothing says that it is not.
constexpr bool believable(RunState state) { return state == RunState::complete || state == RunState::unknown; }

}  // namespace zs::attribute
