// SPDX-License-Identifier: Apache-2.0
#include "parse/flat_json.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace zs::parse {
namespace {

constexpr int kDeepest = 32;

}  // namespace

bool FlatJson::fail(const std::string& what) {
  if (fault_.empty())
    fault_ = rest_.empty() ? "it is cut" : what + " at byte " + std::to_string(all_.size() - rest_.size() + 1);
  return false;
}

bool FlatJson::read(std::string_view text) {
  arrays_ = false;
  return begin(text) && object("", 0);
}

bool FlatJson::read_all(std::string_view text) {
  arrays_ = true;
  begin(text);
  skip_blanks(rest_);
  return rest_.starts_with('[') ? array("", 0) : object("", 0);
}

bool FlatJson::begin(std::string_view text) {
  all_ = rest_ = text;
  fields_.clear();
  made_.clear();
  fault_.clear();
  return true;
}

bool FlatJson::object(const std::string& prefix, int depth) {
  if (depth > kDeepest) return fail("nested too deeply");
  if (!skip(rest_, "{")) return fail("expected '{'");
  skip_blanks(rest_);
  if (skip(rest_, "}")) return true;
  while (true) {
    skip_blanks(rest_);
    std::string_view key;
    if (!text(key)) return false;
    skip_blanks(rest_);
    if (!skip(rest_, ":")) return fail("expected ':'");
    skip_blanks(rest_);
    if (!prefix.empty()) key = made_.emplace_back(prefix + std::string(key));
    if (!value(key, depth)) return false;
    skip_blanks(rest_);
    if (skip(rest_, "}")) return true;
    if (!skip(rest_, ",")) return fail("expected ',' or '}'");
  }
}

bool FlatJson::value(std::string_view key, int depth) {
  if (rest_.starts_with('{')) return object(std::string(key) + ".", depth + 1);
  if (rest_.starts_with('[')) return array(key, depth + 1);
  if (rest_.starts_with('"')) {
    std::string_view string;
    if (!text(string)) return false;
    const Token token = value_of(string);
    if (!string.empty()) fields_.push_back({key, string, token.kind});
    return true;
  }
  for (const auto& [word, meant] :
       {std::pair<std::string_view, std::string_view>{"true", "True"}, {"false", "False"}, {"null", ""}}) {
    if (!skip(rest_, word)) continue;
    if (!meant.empty()) fields_.push_back({key, meant, Kind::word});
    return true;
  }
  const Token number = take_json_number();
  if (number.text.empty()) return fail("expected a value");
  if (rest_.empty()) return fail("cut");
  fields_.push_back({key, number.text, number.kind});
  return true;
}

/// A number as JSON spells it: no '+', no leading zero, a digit on either side of the point. NaN and Infinity in any
/// case.
Token FlatJson::take_json_number() {
  const Token number = number_at(rest_);
  std::string_view digits = number.text;
  skip(digits, "-");
  if (digits.empty()) return {};
  const bool word = is_alpha(digits.front());
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  const bool zero = digits.starts_with('0') && whole > 1;
  const bool point = whole < digits.size() && digits[whole] == '.';
  const bool fraction = !point || (whole + 1 < digits.size() && is_digit(digits[whole + 1]));
  const bool wrong = !word && (whole == 0 || zero || !fraction);
  if (wrong) {
    if (number.text.size() == rest_.size()) rest_ = {};  // its rest may be missing
    return {};
  }
  rest_.remove_prefix(number.text.size());
  return number;
}

bool FlatJson::array(std::string_view key, int depth) {
  if (depth > kDeepest) return fail("nested too deeply");
  skip(rest_, "[");
  skip_blanks(rest_);
  if (skip(rest_, "]")) return true;
  for (std::size_t index = 0;; ++index) {
    skip_blanks(rest_);
    const std::size_t known = fields_.size();
    const std::string_view name =
        arrays_ ? std::string_view(made_.emplace_back(std::string(key) + "[" + std::to_string(index) + "]")) : "";
    if (!value(name, depth)) return false;
    if (!arrays_) fields_.resize(known);
    skip_blanks(rest_);
    if (skip(rest_, "]")) return true;
    if (!skip(rest_, ",")) return fail("expected ',' or ']'");
  }
}

bool FlatJson::text(std::string_view& out) {
  if (!rest_.starts_with('"')) return fail("expected '\"'");
  std::size_t end = 1;
  while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
  if (end >= rest_.size()) return rest_ = {}, fail("cut");
  out = rest_.substr(1, end - 1);
  if (out.find('\\') != std::string_view::npos) {
    const auto decoded = nlohmann::json::parse(rest_.substr(0, end + 1), nullptr, false);
    if (decoded.is_discarded()) return fail("a text with a wrong escape");
    std::string& made = made_.emplace_back(decoded.get<std::string>());
    for (std::size_t at; (at = made.find('\0')) != std::string::npos;)
      made.replace(at, 1, "\xEF\xBF\xBD");  // no form holds a NUL
    out = made;
  }
  rest_.remove_prefix(end + 1);
  return true;
}

}  // namespace zs::parse
