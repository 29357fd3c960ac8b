// SPDX-License-Identifier: Apache-2.0
// How far long work is, for people: one line on a terminal, written over again and again.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace zs::cli {

/// "0:01:23", "25:00:00".
std::string clock_text(double seconds);

/// "less than a minute", "about 20 minutes", "about 3 hours", "about 2 days".
std::string about(double seconds);

/// "[#####-----]" of `width` characters for a share from 0 to 1.
std::string bar(double share, std::size_t width);

/// A line on stderr, at most five times a second. Where stderr is no terminal, nothing.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool on_terminal() const { return terminal_; }
  /// Whether a line would be written now; `last` is always.
  bool due(bool last = false) const;
  /// Writes `text`, cut to the terminal's width, over the line before.
  void show(const std::string& text);
  /// Takes the line away: what follows begins at the left edge.
  void clear();

 private:
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace zs::cli
