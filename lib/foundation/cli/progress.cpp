// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>

#include "base/input.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace zs::cli {
namespace {

std::mutex line_mutex;
bool line_shown = false;  // the terminal's last line is one of progress

}  // namespace

std::string clock_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const auto whole = static_cast<long long>(std::llround(seconds));
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string about(double seconds) {
  if (!(seconds >= 60)) return "less than a minute";
  static constexpr std::array<std::pair<double, const char*>, 3> kUnits = {
      {{86400, "day"}, {3600, "hour"}, {60, "minute"}}};
  for (const auto& [size, name] : kUnits) {
    // From two of a unit on it says enough: 90 minutes, not 2 hours.
    if (seconds < 2 * size && size > 60) continue;
    const auto count = std::llround(seconds / size);
    return "about " + std::to_string(count) + " " + name + (count == 1 ? "" : "s");
  }
  return "";
}

std::string bar(double share, std::size_t width) {
  const std::size_t inside = std::max<std::size_t>(width, 3) - 2;
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(inside));
  return "[" + std::string(full, '#') + std::string(inside - full, '-') + "]";
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

bool ProgressLine::due(bool last) const {
  return terminal_ && (last || std::chrono::steady_clock::now() - last_ >= std::chrono::milliseconds(200));
}

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  last_ = std::chrono::steady_clock::now();
  winsize window = {};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  std::string line = printable(text);  // a wider line would wrap, and could not be overwritten
  line.resize(std::min<std::size_t>(line.size(), known ? window.ws_col - 1U : 79U));
  const std::lock_guard lock(line_mutex);
  std::fputs(("\r\x1b[K" + line).c_str(), stderr);
  line_shown = true;
}

void ProgressLine::clear() {
  const std::lock_guard lock(line_mutex);
  if (line_shown) std::fputs("\r\x1b[K", stderr);
  line_shown = false;
}

std::string progress_text(double share, const std::string& what, double seconds) {
  constexpr std::size_t kWidth = 22;
  const auto percent = static_cast<int>(std::clamp(share, 0.0, 1.0) * 100);
  return bar(share, kWidth) + " " +
         std::string(percent < 10    ? 2
                     : percent < 100 ? 1
                                     : 0,
                     ' ') +
         std::to_string(percent) + " %  " + what + "  " + clock_text(seconds * (1 - share) / share) + " left";
}

void Progress::at(double share, const std::string& what) {
  if (!(share < 1)) return line_.clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (seconds >= 1 && line_.due()) line_.show(progress_text(share, what, seconds));
}

void Progress::at(std::size_t done, std::size_t total, const std::string& name) {
  if (done > 0)
    at(static_cast<double>(done) / static_cast<double>(total),
       std::to_string(done + 1) + " of " + std::to_string(total) + ": " + name);
}

void show_reading() {
  if (::isatty(STDERR_FILENO) != 1) return;
  struct File {
    std::mutex mutex;
    std::string name;
    std::int64_t read = 0;
    std::optional<Progress> progress;
  };
  watch_reading([file = std::make_shared<File>()](const std::string& name, std::int64_t read, std::int64_t size) {
    const std::lock_guard lock(file->mutex);
    if (!file->progress || name != file->name || read < file->read) file->progress.emplace(), file->name = name;
    file->read = read;
    if (read < size)
      file->progress->at(static_cast<double>(read) / static_cast<double>(size), name);
    else
      file->progress.reset();
  });
}

std::size_t line_width() {
  if (::isatty(STDOUT_FILENO)) {
    winsize window{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
  }
  const char* const columns = std::getenv("COLUMNS");
  return static_cast<std::size_t>(std::max<std::int64_t>(0, parse_int(columns ? columns : "").value_or(0)));
}

}  // namespace zs::cli
