// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"

namespace zs::cli {

std::string clock_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const auto whole = static_cast<long long>(std::llround(seconds));
  std::array<char, 40> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  return buffer.data();
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
  std::string line = printable(text);  // a wider one would go on in the next line, and could not be written over
  line.resize(std::min<std::size_t>(line.size(), known ? window.ws_col - 1U : 79U));
  std::fputs(("\r\x1b[K" + line).c_str(), stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

}  // namespace zs::cli
