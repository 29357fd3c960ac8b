// SPDX-License-Identifier: Apache-2.0
// For a log that no dialect reads: finds the line most likely to hold metrics, and suggests a pattern for it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace zs::parse {

class Likeliest {
 public:
  /// Considers a line that no dialect read.
  void see(std::string_view line, std::int64_t number);
  /// "; the likeliest line is 12, 'it 5 | l=2.5': read it with --pattern '...'", or "" if no line qualifies.
  std::string advice() const;

 private:
  std::string line_;
  std::int64_t number_ = 0;
  int score_ = 0;
};

/// A regular expression with named groups for `line`: the numbers after words like step, loss, lr, time; "" if it has
/// no step or loss.
std::string pattern_for(std::string_view line);

}  // namespace zs::parse
