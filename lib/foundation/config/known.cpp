// SPDX-License-Identifier: Apache-2.0
#include "config/known.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::config {

std::span<const Known> known() { return kSettings; }

const Known* known(std::string_view key) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const Known*> rows;
    for (const Known& row : kSettings) {
      rows.emplace(row.key, &row);
      for (const std::string_view alias : words_of(row.aliases)) rows.emplace(alias, &row);
    }
    return rows;
  }();
  const auto found = rows.find(key);
  return found == rows.end() ? nullptr : found->second;
}

const Known* known_option(std::string_view option) {
  const auto found = std::ranges::find_if(kSettings, [&](const Known& row) { return has_word(row.options, option); });
  return found == kSettings.end() ? nullptr : &*found;
}

std::vector<std::string> words(std::string_view field) {
  const std::vector<std::string_view> parts = words_of(field);
  return {parts.begin(), parts.end()};
}

std::string same_form(const Known& row, const std::string& value) {
  const std::string word = lower(value);
  if (row.type == Type::boolean || !row.alone.empty())
    return word == "true" || word == "yes" || word == "on" || word == "1"    ? "true"
           : word == "false" || word == "no" || word == "off" || word == "0" ? "false"
                                                                             : value;
  if (value.starts_with("torch.")) return value.substr(6);
  if (row.type == Type::count) {
    const auto count = parse_count(value);
    return count ? to_text(*count) : value;
  }
  const auto number = row.type == Type::integer || row.type == Type::real ? parse_real(value) : std::nullopt;
  return number ? to_text(*number) : value;
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  double scale = 1;
  if (!text.empty()) {
    const std::size_t power =
        std::string_view("kmgt").find(static_cast<char>(std::tolower(static_cast<unsigned char>(text.back()))));
    if (power != std::string_view::npos) {
      scale = std::pow(1000.0, static_cast<double>(power + 1));
      text.remove_suffix(1);
    }
  }
  const auto number = parse_real(text);
  if (!number || !(*number >= 0)) return {};
  const double scaled = *number * scale;
  const double whole = std::round(scaled);
  // 1.1M is whole although 1.1 * 1e6 is not to the last bit; 0.0001k is not.
  if (!(whole < 9e15) || !(std::fabs(scaled - whole) <= 1e-9 * std::max(1.0, whole))) return {};
  return static_cast<std::int64_t>(whole);
}

}  // namespace zs::config
