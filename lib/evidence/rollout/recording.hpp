// SPDX-License-Identifier: Apache-2.0
// Checks one recording of zs_probe: the relations of its tensors, and the log-probabilities that it has.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "probe/checks.hpp"
#include "rollout/answer.hpp"

namespace zs::rollout {

/// Adds the answer about log-probabilities to that about tensors: lines "rollout", "rollout relation". A difference
/// beyond rounding makes the recording inconsistent.
void join(probe::Answer& into, const Answer& found);

/// Checks a recording, and joins the answer about its log-probabilities, if any. Throws Error, located, if it is
/// damaged.
probe::Answer check(const std::string& folder, const std::optional<Answer>& rollouts);

/// The same of one that is still being written, or of a dump that is. `floor`: as of compare().
class LiveRecording {
 public:
  LiveRecording(const std::string& folder, std::string floor)
      : folder_(folder), floor_(std::move(floor)), checks_(folder) {}
  probe::Live::Seen grow();
  probe::Answer answer();

 private:
  std::string folder_, floor_;
  probe::LiveChecks checks_;
  bool checked_ = false, behind_ = false;  ///< behind_: the dump was not read when it was looked at last
  std::optional<Answer> rollouts_{};
  std::chrono::steady_clock::time_point next_{};  ///< when the dump is read again
};

}  // namespace zs::rollout
