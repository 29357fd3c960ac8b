// SPDX-License-Identifier: Apache-2.0
#include "metric/escape.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace zs::metric {
namespace {

// The first four are escaped everywhere, the others where they mean something.
constexpr std::array<std::pair<char, char>, 7> kEscapes = {
    {{'\t', 't'}, {'\n', 'n'}, {'\r', 'r'}, {'\\', '\\'}, {' ', 's'}, {'=', '='}, {'#', '#'}}};

std::string escaped(std::string_view text, std::string_view special) {
  const bool hash = text.starts_with('#');
  if (!hash && text.find_first_of(special) == std::string_view::npos) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (special.find(text[i]) == std::string_view::npos && !(i == 0 && hash)) {
      out += text[i];
      continue;
    }
    for (const auto& [raw, letter] : kEscapes) {
      if (raw == text[i]) out.append({'\\', letter});
    }
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) { return escaped(text, "\t\n\r\\"); }
std::string escaped_name(std::string_view text) { return escaped(text, "\t\n\r\\ ="); }

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t at = text.find('\\');
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    char found = 0;
    for (const auto& [raw, letter] : kEscapes) {
      if (at + 1 < text.size() && text[at + 1] == letter) found = raw;
    }
    if (!found) return {};
    out += found;
    text.remove_prefix(at + 2);
  }
}

std::string link_name(std::string_view name) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (name.empty()) return "%";
  std::string link;
  for (const char c : name) {
    if (c == '/' || c == '%' || c == '\0' || name == ".") {
      const auto byte = static_cast<unsigned char>(c);
      link.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    } else {
      link += c;
    }
  }
  return link;
}

std::string unlink_name(std::string_view link) {
  if (link == "%") return "";
  std::string name;
  for (std::size_t i = 0; i < link.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = link.data() + i + 1;
    if (link[i] == '%' && i + 2 < link.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      name += static_cast<char>(byte);
      i += 2;
    } else {
      name += link[i];
    }
  }
  return name;
}

}  // namespace zs::metric
