// SPDX-License-Identifier: Apache-2.0
// Where a line of any program names its step or epoch: "step 5/12", "Epoch: [0][5/100]", "Epoch 1/3, step 5/12".
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "parse/text.hpp"

namespace zs::parse {

/// Characters between pairs.
inline bool is_separator(char c) {
  return is_blank(c) || std::string_view(",;|[](){}*").find(c) != std::string_view::npos;
}

/// Removes and returns a key: letters, digits and "_./@-%", from a letter on.
std::string_view take_word(std::string_view& text);

/// Step, total and epoch of a line; empty if the line does not have them.
struct StepHead {
  std::string_view step, total, epoch;
  std::string_view samples;  ///< of the epoch so far
};

/// Reads the heads of one log. Keeps how its epochs and steps are counted.
class StepHeads {
 public:
  /// Removes a head from the front of `rest`; false, with both unchanged, if there is none. The result is valid until
  /// next_line().
  bool take(std::string_view& rest, StepHead& head);
  void next_line() { made_.clear(); }

 private:
  bool take_counted(std::string_view text, bool samples, std::string_view& rest, StepHead& head);
  bool take_epoch(std::string_view text, bool of_mmengine, std::string_view& rest, StepHead& head);
  std::string_view of_all_epochs(const StepHead& head);

  std::deque<std::string> made_;             // texts that are not the log's
  std::optional<std::int64_t> first_epoch_;  // 0 or 1; unknown: steps of "[epoch][batch/batches]" are left out
  std::int64_t last_epoch_ = 0, last_step_ = -1, before_ = 0;  // `before_`: steps of the epochs before
};

}  // namespace zs::parse
