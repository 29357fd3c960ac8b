// SPDX-License-Identifier: Apache-2.0
// Progress of long work, for people: one line on a terminal, overwritten repeatedly.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>

namespace zs::cli {

/// "0:01:23", "25:00:00".
std::string clock_text(double seconds);

/// "less than a minute", "about 20 minutes", "about 3 hours", "about 2 days".
std::string about(double seconds);

/// "[#####-----]" of `width` characters for a share from 0 to 1.
std::string bar(double share, std::size_t width);

/// A line on stderr, at most five times a second; none if stderr is not a terminal. There is only one such line: a new
/// text replaces the last. Thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool on_terminal() const { return terminal_; }
  /// Whether show() would write now; with `last` it always does.
  bool due(bool last = false) const;
  /// Writes `text`, cut to the terminal's width, over the line before.
  void show(const std::string& text);
  /// Erases the line: the next output begins at the left edge.
  void clear();

 private:
  bool terminal_;
  std::chrono::steady_clock::time_point last_{};
};

/// "[#####-----]  50 %  step 3 of 6  0:00:12 left": the share `share` of the work took `seconds`.
std::string progress_text(double share, const std::string& what, double seconds);

/// Shows such a line after the first second of work. At share 1 the work is complete and the line is erased.
class Progress {
 public:
  void at(double share, const std::string& what);
  /// `done` of `total` items of similar size are complete; `name` is the next, "" after the last.
  void at(std::size_t done, std::size_t total, const std::string& name);

 private:
  ProgressLine line_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// From now on shows how much of a file on disk has been read, if reading takes seconds.
void show_reading();

// The terminal that a tool writes to.

/// Characters in a line of stdout: of its terminal, 80 where that does not say; elsewhere $COLUMNS; 0 is no limit.
std::size_t line_width();

}  // namespace zs::cli
