// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <cerrno>
#include <cstring>

namespace zs {

std::string located(std::string_view path, std::int64_t line, std::string_view what) {
  std::string text(path);
  if (line > 0) text += ":" + std::to_string(line);
  if (!text.empty()) text += ": ";
  return text.append(what);
}

Error::Error(std::string_view path, std::int64_t line, std::string_view what)
    : std::runtime_error(located(path, line, what)) {}

std::string errno_text() { return std::strerror(errno); }

}  // namespace zs
