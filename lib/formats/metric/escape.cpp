// SPDX-License-Identifier: Apache-2.0
#include "metric/escape.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.hpp"

namespace zs::metric {
namespace {

// The first four are escaped everywhere, the others only where they have a meaning.
constexpr std::array<std::pair<char, char>, 7> kEscapes = {
    {{'\t', 't'}, {'\n', 'n'}, {'\r', 'r'}, {'\\', '\\'}, {' ', 's'}, {'=', '='}, {'#', '#'}}};

constexpr std::string_view kDigits = "0123456789ABCDEF";

void append_hex(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out.append({kDigits[byte >> 4], kDigits[byte & 15]});
}

/// The byte that two hex digits at the front of `text` spell.
std::optional<char> hex_at(std::string_view text) {
  unsigned byte = 0;
  if (text.size() < 2 || std::from_chars(text.data(), text.data() + 2, byte, 16).ptr != text.data() + 2) return {};
  return static_cast<char>(byte);
}

std::string escape(std::string_view text, std::string_view special) {
  std::string out;
  bool first = true;
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
    if (special.find(text.front()) != std::string_view::npos || (first && text.front() == '#')) {
      for (const auto& [raw, letter] : kEscapes) {
        if (raw == text.front()) out.append({'\\', letter});
      }
    } else if (size > 0 && !is_control(character)) {
      out += character;
    } else {
      for (const char c : character) out += "\\x", append_hex(out, c);
    }
    text.remove_prefix(character.size());
    first = false;
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) { return escape(text, "\t\n\r\\"); }
std::string escaped_name(std::string_view text) { return escape(text, "\t\n\r\\ ="); }

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t at = text.find('\\');
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
    if (text.starts_with('x')) {
      const auto byte = hex_at(text.substr(1));
      if (!byte) return {};
      out += *byte;
      text.remove_prefix(3);
      continue;
    }
    const auto found =
        std::ranges::find_if(kEscapes, [&](const auto& escape) { return text.starts_with(escape.second); });
    if (found == kEscapes.end()) return {};
    out += found->first;
    text.remove_prefix(1);
  }
}

std::string link_name(std::string_view name) {
  if (name.empty()) return "%";
  std::string link;
  for (const char c : name) {
    if (c == '/' || c == '%' || c == '\0' || name == ".") {
      link += '%';
      append_hex(link, c);
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
    const auto byte = link[i] == '%' ? hex_at(link.substr(i + 1)) : std::nullopt;
    if (byte) {
      name += *byte;
      i += 2;
    } else {
      name += link[i];
    }
  }
  return name;
}

}  // namespace zs::metric
