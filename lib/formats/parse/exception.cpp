// SPDX-License-Identifier: Apache-2.0
#include "parse/exception.hpp"

#include <algorithm>
#include <array>

#include "parse/text.hpp"

namespace zs::parse {

RankLine rank_line(std::string_view line) {
  const std::size_t at = line.find("]: ");
  if (!line.starts_with("[rank") || at == std::string_view::npos) return {{}, line};
  return {line.substr(5, at - 5), line.substr(at + 3)};
}

bool begins_traceback(std::string_view line) {
  return line.find("Traceback (most recent call last)") != std::string_view::npos;
}

bool is_exception(std::string_view line) {
  static constexpr std::array<std::string_view, 7> kEnds = {"Error",   "Exception", "Interrupt", "Exit",
                                                            "Failure", "Expired",   "Iteration"};
  const std::string_view name = take_key(line);
  if (name.empty() || !is_alpha(name.front()) || !(line.empty() || line.starts_with(":"))) return false;
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace zs::parse
