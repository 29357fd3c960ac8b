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

/// A line on stderr, at most five times a second. Where stderr is no terminal, nothing. There is one such line: whoever
/// shows another takes its place. Any thread may call.
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
  bool terminal_;
  std::chrono::steady_clock::time_point last_{};
};

/// "[#####-----]  50 %  step 3 of 6  0:00:12 left": `share` of some work was done in `seconds`.
std::string progress_text(double share, const std::string& what, double seconds);

/// Such a line from the first second of the work on. All work is done from share 1 on, and the line goes.
class Progress {
 public:
  void at(double share, const std::string& what);
  /// Of `all` things of about one size, `done` are; `name` is the next, "" behind the last.
  void at(std::size_t done, std::size_t all, const std::string& name);

 private:
  ProgressLine line_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// From now on shows how far a file on disk is read, where that takes seconds.
void show_reading();

}  // namespace zs::cli
