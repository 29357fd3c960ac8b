// SPDX-License-Identifier: Apache-2.0
// JSON lines: wandb-history.jsonl, and any flat object with a step and a number beside it.
//   {"train/loss": 2.0751, "train/global_step": 40, "_step": 3, "_runtime": 61.4, "_timestamp": 1750132261.4}
#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "parse/dialect.hpp"
#include "parse/names.hpp"

namespace zs::parse {
namespace {

constexpr int kDeepest = 32;

/// An object on one line, read flat: nested objects become dotted keys. NaN and Infinity are values, as Python writes
/// them, and numbers keep their digits: no JSON library does both.
class FlatJson {
 public:
  /// Reads the object that `text` starts with. Null and arrays are left out. False, with fault() saying why, if it
  /// is none; the fields read so far stay.
  bool read(std::string_view text);
  /// Views of the text, or of this reader.
  const std::vector<Field>& fields() const { return fields_; }
  const std::string& fault() const { return fault_; }

 private:
  bool object(const std::string& prefix, int depth);
  bool value(std::string_view key, int depth);
  bool text(std::string_view& out);
  bool skip_array(int depth);
  Token take_json_number();
  bool fail(const std::string& what);

  std::string_view all_, rest_;
  std::vector<Field> fields_;
  std::deque<std::string> made_;
  std::string fault_;
};

bool FlatJson::fail(const std::string& what) {
  if (fault_.empty())
    fault_ = rest_.empty() ? "it is cut" : what + " at byte " + std::to_string(all_.size() - rest_.size() + 1);
  return false;
}

bool FlatJson::read(std::string_view text) {
  all_ = rest_ = text;
  fields_.clear();
  made_.clear();
  fault_.clear();
  return object("", 0);
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
  if (rest_.starts_with('[')) return skip_array(depth + 1);
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

bool FlatJson::skip_array(int depth) {
  if (depth > kDeepest) return fail("nested too deeply");
  skip(rest_, "[");
  skip_blanks(rest_);
  if (skip(rest_, "]")) return true;
  while (true) {
    skip_blanks(rest_);
    const std::size_t known = fields_.size();
    if (!value("", depth)) return false;
    fields_.resize(known);
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

class JsonLines : public Dialect {
 public:
  bool repeats() const override { return true; }
  bool json_numbers() const override { return true; }

  Verdict read(const Line& line, Findings& findings) override {
    const std::size_t at = line.text.find("{\"");
    if (at == std::string_view::npos || line.text.find_first_not_of(" \t") < at) {
      const bool prefixed = at != std::string_view::npos && !rank_of(line.text.substr(0, at)).empty();
      if (!prefixed) return {};
    }
    const bool whole = json_.read(line.text.substr(at));
    const auto& fields = json_.fields();
    const bool step = std::any_of(fields.begin(), fields.end(), [](const Field& f) {
      return column_named(f.key).column == "step" && f.kind != Kind::word;
    });
    if (!whole) {
      const bool like_one = line.text.find("step\":") != std::string_view::npos;
      if (!step && !seen_ && !like_one) return {};  // some other text in braces
      return {false, "malformed JSON line: " + json_.fault()};
    }
    const auto numbers =
        std::count_if(fields.begin(), fields.end(), [](const Field& f) { return f.kind != Kind::word; });
    if (!step || numbers < 2) return {};
    seen_ = true;
    if (const std::string_view twice = repeated_key(); !twice.empty())
      return {false, "malformed JSON line: key '" + std::string(twice) + "' stands twice"};
    findings.record(fields, line.text.substr(0, at), line.number);
    return {true};
  }

 private:
  /// A key that stands twice: nobody knows which value is meant.
  std::string_view repeated_key() {
    keys_.clear();
    for (const Field& field : json_.fields()) keys_.push_back(field.key);
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    return twice == keys_.end() ? std::string_view() : *twice;
  }

  FlatJson json_;
  std::vector<std::string_view> keys_;
  bool seen_ = false;
};

}  // namespace

std::unique_ptr<Dialect> make_json() { return std::make_unique<JsonLines>(); }

}  // namespace zs::parse
