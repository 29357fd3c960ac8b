// SPDX-License-Identifier: Apache-2.0
// Of a log that no dialect reads: the line that most looks like one of metrics, and a pattern that would read it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace zs::parse {

class Likeliest {
 public:
  /// Looks at a line that was not read.
  void see(std::string_view line, std::int64_t number);
  /// "; the likeliest line is 12, 'it 5 | l=2.5': read it with --pattern '...'", or "" where no line looks like one.
  std::string advice() const;

 private:
  std::string line_;
  std::int64_t number_ = 0;
  int score_ = 0;
};

/// A regular expression with named groups for `line`: the numbers behind words like step, loss, lr, time; "" where it
/// has none of a step or a loss.
std::string pattern_for(std::string_view line);

}  // namespace zs::parse
