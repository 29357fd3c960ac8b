// SPDX-License-Identifier: Apache-2.0
// For a log that no dialect reads: finds the line most likely to hold metrics, and suggests a pattern for it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zs::parse {

class Likeliest {
 public:
  /// Considers a line that no dialect read.
  void see(std::string_view line, std::int64_t number);
  /// A regular expression that gives a step and a loss on each line that looks as if it had both; "" if none does.
  std::string pattern() const;
  /// "; the likeliest is line 12, 'it 5 | l=2.5': try --pattern '...'", or "" without a pattern.
  std::string advice() const;

 private:
  std::string line_;
  std::vector<std::string> lines_;  // that seem to have a step and a loss
  std::int64_t number_ = 0;
  int score_ = 0;
};

/// A regular expression with named groups for `line`: the numbers after words like step, loss, lr, time; "" if it has
/// no step or no loss.
std::string pattern_for(std::string_view line);

}  // namespace zs::parse
