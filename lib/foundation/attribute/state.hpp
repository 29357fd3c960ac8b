// SPDX-License-Identifier: Apache-2.0
// The state of a training: one set of words for summaries, reports, zs-runs and the manuals.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace zs::attribute {

/// From the best to the worst: the worst of several states is their maximum.
enum class RunState : std::uint8_t {
  complete,   ///< all expected steps exist, or the run reports that it finished and gives no number of steps
  running,    ///< training
  pending,    ///< its job is queued, or its script has not reached it
  unknown,    ///< nothing shows whether it is complete
  truncated,  ///< steps are missing, and nothing shows a failure
  preempted,  ///< stopped with everything saved, and nothing will resume it
  cancelled,  ///< its user cancelled the job
  missing,    ///< never started, and nothing will start it
  dead,       ///< its parameters cannot have changed
  diverged,   ///< a loss or gradient norm is not finite
  failed,     ///< ended with an exit code or an error, or before its last step with its process or job gone
};

inline constexpr std::array<std::string_view, 11> kRunStates = {"COMPLETE",  "RUNNING",   "PENDING",   "UNKNOWN",
                                                                "TRUNCATED", "PREEMPTED", "CANCELLED", "MISSING",
                                                                "DEAD",      "DIVERGED",  "FAILED"};

/// "COMPLETE", "RUNNING", ...: the word in every table, report and JSON.
constexpr std::string_view name(RunState state) { return kRunStates[static_cast<std::size_t>(state)]; }

constexpr std::optional<RunState> state_named(std::string_view name) {
  for (std::size_t at = 0; at < kRunStates.size(); ++at) {
    if (kRunStates[at] == name) return static_cast<RunState>(at);
  }
  return {};
}

/// Whether the result of an ended training may be compared: it is complete, or nothing shows that it is not.
constexpr bool believable(RunState state) { return state == RunState::complete || state == RunState::unknown; }

// Why a training ended badly: one sentence from what was recorded, for tables, reports and zs-runs alike.

/// The value of a fact by its name; "" if it is not known.
using Fact = std::function<std::string(const char* name)>;

/// The first cause that is known: `failure`, else `error` with its rank ("rank 3: ValueError: bad batch"), else how its
/// process ended; "" if nothing says that it ended badly.
std::string reason(const Fact& fact);

/// "exit code 3"; of a signal "ended by SIGKILL": 137 in a shell, -9 in Python; "" for 0 and for a text that is not a
/// number.
std::string code_text(std::string_view exit_code);

}  // namespace zs::attribute
