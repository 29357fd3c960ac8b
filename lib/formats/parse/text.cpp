// SPDX-License-Identifier: Apache-2.0
#include "parse/text.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/number.hpp"

namespace zs::parse {
namespace {

/// The length of nan, inf or infinity at the start of `text`, in any case, as a whole word.
std::size_t non_finite_length(std::string_view text) {
  for (const std::string_view word : {std::string_view("nan"), std::string_view("infinity"), std::string_view("inf")}) {
    if (text.size() < word.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i < word.size() && same; ++i) same = (text[i] | 32) == word[i];
    if (!same) continue;
    const bool ends = text.size() == word.size() ||
                      !(is_alpha(text[word.size()]) || is_digit(text[word.size()]) || text[word.size()] == '_');
    if (ends) return word.size();
  }
  return 0;
}

}  // namespace

Token number_at(std::string_view text) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* at = begin;
  if (at != end && (*at == '-' || *at == '+')) ++at;
  const char* const first = at;
  while (at != end && is_digit(*at)) ++at;
  auto digits = at - first;
  Kind kind = Kind::integer;
  if (at != end && *at == '.') {
    const char* const point = at++;
    while (at != end && is_digit(*at)) ++at;
    digits += at - point - 1;
    kind = Kind::real;
  }
  if (digits == 0) {
    at = first;
    const std::size_t length = non_finite_length(text.substr(static_cast<std::size_t>(at - begin)));
    if (length == 0) return {};
    return {text.substr(0, static_cast<std::size_t>(at - begin) + length), Kind::real};
  }
  if (at != end && (*at | 32) == 'e') {
    const char* exponent = at + 1;
    if (exponent != end && (*exponent == '-' || *exponent == '+')) ++exponent;
    if (exponent != end && is_digit(*exponent)) {
      while (exponent != end && is_digit(*exponent)) ++exponent;
      at = exponent;
      kind = Kind::real;
    }
  }
  return {text.substr(0, static_cast<std::size_t>(at - begin)), kind};
}

Token value_of(std::string_view text) {
  const Token number = number_at(text);
  return number.text.size() == text.size() ? number : Token{text, Kind::word};
}

bool number_ends(std::string_view rest) {
  const bool comma = skip(rest, ",");
  if (rest.empty() || !is_blank(rest.front())) return rest.empty();
  skip_blanks(rest);
  return comma || rest.empty() || !is_digit(rest.front());
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

Token take_number(std::string_view& text) {
  const Token number = number_at(text);
  text.remove_prefix(number.text.size());
  return number;
}

Token take_grouped_number(std::string_view& text, std::deque<std::string>& made) {
  Token number = take_number(text);
  if (number.kind != Kind::integer || number.text.size() > 3) return number;
  std::string whole(number.text);
  while (text.starts_with(',')) {
    std::string_view ahead = text.substr(1);
    const Token more = take_number(ahead);
    const std::size_t point = std::min(more.text.find('.'), more.text.size());
    if (number.kind != Kind::integer || point != 3 || !is_digit(more.text.front())) break;
    whole += more.text;
    number.kind = more.kind;
    text = ahead;
  }
  if (whole.size() > number.text.size()) number.text = made.emplace_back(std::move(whole));
  return number;
}

std::string shifted(std::string_view text, int places) {
  const std::size_t sign = !text.empty() && (text.front() == '-' || text.front() == '+') ? 1 : 0;
  const std::size_t point = std::min(text.find('.'), text.size());
  if (const std::size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    const auto exponent = parse_int(text.substr(e + 1));
    return exponent ? std::string(text.substr(0, e)) + "e" + std::to_string(*exponent + places) : std::string(text);
  }
  const bool plain = text.find_first_not_of("0123456789.", sign) == std::string_view::npos && point > sign;
  if (!plain) return std::string(text);
  std::string digits(text.substr(sign, point - sign));
  if (point < text.size()) digits += text.substr(point + 1);
  std::ptrdiff_t whole = static_cast<std::ptrdiff_t>(point - sign) + places;  // digits before the point
  if (whole < 1) {
    digits.insert(0, static_cast<std::size_t>(1 - whole), '0');
    whole = 1;
  }
  if (static_cast<std::size_t>(whole) > digits.size())
    digits.append(static_cast<std::size_t>(whole) - digits.size(), '0');
  std::string result(digits, 0, static_cast<std::size_t>(whole));
  result.erase(0, std::min(result.find_first_not_of('0'), result.size() - 1));
  if (static_cast<std::size_t>(whole) < digits.size()) result += "." + digits.substr(static_cast<std::size_t>(whole));
  return (text.starts_with('-') ? "-" : "") + result;
}

std::string bytes_of(std::string_view number, std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {{{"GiB", 0x1p30},
                                                                                 {"GB", 0x1p30},
                                                                                 {"MiB", 0x1p20},
                                                                                 {"MB", 0x1p20},
                                                                                 {"KiB", 0x1p10},
                                                                                 {"KB", 0x1p10},
                                                                                 {"kB", 0x1p10},
                                                                                 {"B", 1}}};
  const auto found = std::ranges::find_if(kUnits, [&](const auto& pair) { return pair.first == unit; });
  const auto value = parse_real(number);
  if (found == kUnits.end() || !value || !(*value >= 0 && *value < 0x1p32)) return "";
  return to_text(static_cast<std::int64_t>(std::llround(*value * found->second)));
}

std::string_view without_escapes(std::string_view text, std::string& storage) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 32 && c != '\t'; };
  const auto first = std::ranges::find_if(text, is_control);
  if (first == text.end()) return text;
  storage.assign(text.begin(), first);
  for (std::size_t i = static_cast<std::size_t>(first - text.begin()); i < text.size(); ++i) {
    if (!is_control(text[i])) {
      storage += text[i];
      continue;
    }
    if (text[i] != '\x1b') {
      // Text was lost between a word and the text after it (a hole in the file has NULs): "1\0" "2" is not 12.
      const std::size_t end = std::min(text.find_first_not_of(text[i], i), text.size());
      const bool glued = !storage.empty() && !is_blank(storage.back());
      if (glued && (text[i] == '\0' || (end < text.size() && !is_blank(text[end])))) storage += "\xEF\xBF\xBD";
      i = end - 1;
      continue;
    }
    if (i + 1 == text.size()) continue;
    if (text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && !(text[i] >= '@' && text[i] <= '~')) ++i;
    } else if (text[i + 1] == ']') {
      while (i < text.size() && text[i] != '\a' && !(text[i] == '\\' && text[i - 1] == '\x1b')) ++i;
    } else {
      ++i;
    }
  }
  return storage;
}

std::string rank_of(std::string_view prefix) {
  const auto taken = [](std::string_view& rest) -> std::string_view {
    const std::string_view digits = take_digits(rest);
    return digits.size() <= kLongestRank ? digits : std::string_view{};
  };
  const auto number_after = [&](std::size_t at) {
    std::string_view rest = prefix.substr(at);
    skip_blanks(rest);
    return taken(rest);
  };
  static constexpr std::array<std::string_view, 4> kHeads = {"[rank", "[Rank", "[default", "(rank"};
  for (const std::string_view head : kHeads) {
    const std::size_t at = prefix.find(head);
    if (at == std::string_view::npos) continue;
    const std::string_view rank = number_after(at + head.size());
    if (rank.empty()) continue;
    const auto task = head == "[default" ? parse_int(rank_of(prefix.substr(0, at))) : std::nullopt;
    return task ? to_text(*task * 1000 + parse_int(rank).value_or(0)) : std::string(rank);
  }
  std::string_view rest = prefix;  // [1,3]<stdout>: of mpirun --tag-output, 3: of srun --label
  if (skip(rest, "[") && !take_number(rest).text.empty() && skip(rest, ",")) {
    const std::string_view rank = taken(rest);
    return std::string(rest.starts_with("]<std") ? rank : std::string_view());
  }
  rest = prefix;
  skip_blanks(rest);
  skip(rest, "rank ");
  const std::string_view rank = taken(rest);
  return std::string(rest.starts_with(": ") || rest == ":" ? rank : std::string_view());
}

RankLine rank_line(std::string_view line) {
  const std::size_t at = line.find("]: ");
  if (!line.starts_with("[rank") || at == std::string_view::npos) return {{}, line};
  return {line.substr(5, at - 5), line.substr(at + 3)};
}

bool is_exception(std::string_view line) {
  static constexpr std::array<std::string_view, 7> kEnds = {"Error",   "Exception", "Interrupt", "Exit",
                                                            "Failure", "Expired",   "Iteration"};
  const std::string_view name = take_key(line);
  if (name.empty() || !is_alpha(name.front()) || !(line.empty() || line.starts_with(":"))) return false;
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

std::optional<std::pair<double, std::size_t>> stamp_in(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00 00:00:00";
  for (std::size_t at = text.size() - std::min(text.size(), kShape.size() - 1); at-- > 0;) {
    if (!is_digit(text[at]) || (at > 0 && is_digit(text[at - 1]))) continue;
    const std::string_view stamp = text.substr(at, kShape.size());
    if (!std::equal(stamp.begin(), stamp.end(), kShape.begin(), [](char c, char shape) {
          return shape == '0' ? is_digit(c) : c == shape || (shape == ' ' && c == 'T');
        }))
      continue;
    const auto number = [&](std::size_t from, std::size_t count) {
      return static_cast<int>(*parse_int(stamp.substr(from, count)));
    };
    const std::chrono::year_month_day date(std::chrono::year(number(0, 4)),
                                           std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                           std::chrono::day(static_cast<unsigned>(number(8, 2))));
    if (!date.ok()) return {};
    double seconds = std::chrono::duration<double>(std::chrono::sys_days(date).time_since_epoch()).count() +
                     number(11, 2) * 3600 + number(14, 2) * 60 + number(17, 2);
    std::string_view rest = text.substr(at + kShape.size());
    if (skip(rest, ",") || skip(rest, "."))
      seconds += *parse_real("0." + std::string(take_digits(rest).substr(0, 9)) + "0");
    return std::pair(seconds, at);
  }
  return {};
}

}  // namespace zs::parse
