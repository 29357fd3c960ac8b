// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/number.hpp"

namespace zs::cli {

std::size_t line_width() {
  if (::isatty(STDOUT_FILENO)) {
    winsize window{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
  }
  const char* const columns = std::getenv("COLUMNS");
  return static_cast<std::size_t>(std::max<std::int64_t>(0, parse_int(columns ? columns : "").value_or(0)));
}

}  // namespace zs::cli
