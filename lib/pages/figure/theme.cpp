// SPDX-License-Identifier: Apache-2.0
#include "figure/theme.hpp"

#include <fmt/format.h>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/name.hpp"
#include "base/number.hpp"

namespace zs::figure {
namespace {

bool is_colour(const std::string& text) {
  return text.size() == 7 && text[0] == '#' && text.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string::npos;
}

/// Sets one key from its words; returns what is wrong, or "".
using Setter = std::function<std::string(Theme&, const std::vector<std::string>&)>;

Setter colour_setter(std::string Theme::*member) {
  return [member](Theme& theme, const std::vector<std::string>& words) -> std::string {
    if (words.size() != 1 || !is_colour(words[0])) return "takes one colour, #RRGGBB";
    theme.*member = words[0];
    return "";
  };
}

template <typename Number>
Setter number_setter(Number Theme::*member, double lowest, double highest) {
  return [=](Theme& theme, const std::vector<std::string>& words) -> std::string {
    const auto value = words.size() == 1 ? parse_real(words[0]) : std::nullopt;
    if (!value || !(*value >= lowest && *value <= highest)) {
      return "takes a number from " + zs::to_text(lowest) + " to " + zs::to_text(highest);
    }
    theme.*member = static_cast<Number>(*value);
    return "";
  };
}

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table = {
      {"palette",
       [](Theme& theme, const std::vector<std::string>& words) -> std::string {
         for (const std::string& word : words) {
           if (!is_colour(word)) return "takes colours, #RRGGBB, with blanks between";
         }
         if (words.empty()) return "takes at least one colour";
         theme.palette = words;
         return "";
       }},
      {"font",
       [](Theme& theme, const std::vector<std::string>& words) -> std::string {
         theme.font.clear();
         for (const std::string& word : words) theme.font += (theme.font.empty() ? "" : " ") + word;
         return theme.font.empty() ? "takes the name of a font" : "";
       }},
      {"background", colour_setter(&Theme::background)},
      {"foreground", colour_setter(&Theme::foreground)},
      {"grid", colour_setter(&Theme::grid)},
      {"failure", colour_setter(&Theme::failure)},
      {"note", colour_setter(&Theme::note)},
      {"font_size", number_setter(&Theme::font_size, 4, 72)},
      {"line_width", number_setter(&Theme::line_width, 0.1, 20)},
      {"width", number_setter(&Theme::width, 200, 10000)},
      {"height", number_setter(&Theme::height, 100, 10000)},
      {"scale", number_setter(&Theme::scale, 0.5, 8)},
  };
  return table;
}

/// `colour` moved towards `other` by `share`.
std::string mixed(const std::string& colour, const std::string& other, double share) {
  std::string result = "#";
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const auto level = [&](const std::string& hex) {
      return static_cast<double>(std::strtol(hex.substr(1 + 2 * channel, 2).c_str(), nullptr, 16));
    };
    result += fmt::format("{:02X}", std::lround(level(colour) + share * (level(other) - level(colour))));
  }
  return result;
}

std::string strong(const std::string& hue, bool dark) {
  return dark ? mixed(hue, "#FFFFFF", 0.65) : mixed(hue, "#000000", 0.42);
}

}  // namespace

Theme read_theme(const std::string& path) {
  Theme theme;
  Input input(path);
  std::istringstream lines(input.read_all(std::uint64_t{1} << 20));  // a theme is a page
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream stream(line);
    std::string key;
    if (!(stream >> key) || key == "#" || (key[0] == '#')) continue;
    std::vector<std::string> words, known;
    for (std::string word; stream >> word;) words.push_back(word);
    for (const auto& [name, setter] : setters()) known.push_back(name);
    const auto setter = setters().find(key);
    if (setter == setters().end()) throw Error(path, number, "unknown key '" + key + "'" + did_you_mean(key, known));
    const std::string wrong = setter->second(theme, words);
    if (!wrong.empty()) throw Error(path, number, "'" + key + "' " + wrong);
  }
  return theme;
}

std::string to_text(const Theme& theme) {
  std::string text = "palette";
  for (const std::string& colour : theme.palette) text += " " + colour;
  const auto add = [&](const char* key, const std::string& value) { text += std::string("\n") + key + " " + value; };
  add("background", theme.background);
  add("foreground", theme.foreground);
  add("grid", theme.grid);
  add("failure", theme.failure);
  add("note", theme.note);
  add("font", theme.font);
  add("font_size", zs::to_text(theme.font_size));
  add("line_width", zs::to_text(theme.line_width));
  add("width", zs::to_text(static_cast<std::int64_t>(theme.width)));
  add("height", zs::to_text(static_cast<std::int64_t>(theme.height)));
  add("scale", zs::to_text(theme.scale));
  return text + "\n";
}

static bool is_strong(const Ink& ink, const Theme& theme) {
  return ink.strong != (ink.hue / theme.palette.size() % 2 == 1);
}

std::string colour(const Ink& ink, const Theme& theme) {
  switch (ink.role) {
    case Ink::Role::text:
      return theme.foreground;
    case Ink::Role::note:
      return theme.note;
    case Ink::Role::grid:
      return theme.grid;
    case Ink::Role::paper:
      return theme.background;
    case Ink::Role::failure:
      return theme.failure;
    default:
      break;
  }
  const std::string& hue = theme.palette[ink.hue % theme.palette.size()];
  return is_strong(ink, theme) ? strong(hue, false) : hue;
}

std::string css_colour(const Ink& ink, const Theme& theme) {
  static constexpr std::array kRoles = {"", "var(--ink)", "var(--quiet)", "var(--grid)", "var(--paper)", "var(--bad)"};
  if (ink.role != Ink::Role::palette) return kRoles[static_cast<std::size_t>(ink.role)];
  return std::string("var(--") + (is_strong(ink, theme) ? "s" : "c") + std::to_string(ink.hue % theme.palette.size()) +
         ")";
}

std::string faint(const std::string& colour, const Theme& theme, double opacity) {
  return mixed(theme.background, colour, opacity);
}

std::string css(const Theme& theme, bool dark) {
  std::string style = dark ? "--ink:#E6E6E6;--quiet:#A8A8A8;--grid:#3A3D42;--paper:#16181C;--bad:#FF7B8A;"
                           : "--ink:" + theme.foreground + ";--quiet:" + theme.note + ";--grid:" + theme.grid +
                                 ";--paper:" + theme.background + ";--bad:" + theme.failure + ";";
  for (std::size_t i = 0; i < theme.palette.size(); ++i) {
    const std::string& hue = theme.palette[i];
    style += "--c" + std::to_string(i) + ":" + (dark ? mixed(hue, "#FFFFFF", 0.25) : hue) + ";--s" + std::to_string(i) +
             ":" + strong(hue, dark) + ";";
  }
  return style;
}

}  // namespace zs::figure
