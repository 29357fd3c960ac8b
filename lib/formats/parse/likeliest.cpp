// SPDX-License-Identifier: Apache-2.0
#include "parse/likeliest.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/number.hpp"
#include "base/shell.hpp"
#include "base/text.hpp"
#include "parse/text.hpp"

namespace zs::parse {
namespace {

constexpr int kLeast = 4;
constexpr std::size_t kLongest = 2000;

/// A number of the line after a word.
struct Pair {
  std::string_view key, value;
  std::size_t at;  ///< of the value
};

std::vector<Pair> pairs_in(std::string_view line) {
  std::vector<Pair> pairs;
  std::string_view key;
  std::size_t since = 0;  // where the key ended
  for (std::size_t at = 0; at < line.size();) {
    const auto word = [](char c) { return is_alpha(c) || c == '_' || c == '/'; };
    if (is_alpha(line[at])) {
      const std::size_t begin = at;
      while (at < line.size() && (word(line[at]) || is_digit(line[at]))) ++at;
      key = line.substr(begin, at - begin);
      const Token spelt = value_of(key);  // nan
      if (spelt.kind == Kind::word) {
        since = at;
        continue;
      }
      at = begin;
    }
    const Token number = number_at(line.substr(at));
    if (number.text.empty()) {
      ++at;
      continue;
    }
    const bool near =
        !key.empty() && line.substr(since, at - since).find_first_not_of(" \t:=#[(\"'") == std::string_view::npos;
    if (near) pairs.push_back({key, number.text, at});
    key = {};
    at += number.text.size();
  }
  return pairs;
}

std::string_view column_of(std::string_view key) {
  std::string name(key);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("loss") || name == "l") return has("val") ? "valid_loss" : "loss";
  if (has("epoch") || name == "ep") return "epoch";
  if (has("time") || name == "dt" || name == "t" || name == "sec") return "iteration_time";
  if (name == "lr" || has("learning")) return "learning_rate";
  if (has("step") || has("iter") || name == "it" || name == "batch") return "step";
  if (has("norm")) return "grad_norm";
  return {};
}

int score_of(std::string_view line) {
  int score = 0;
  bool counted = false;
  for (const Pair& pair : pairs_in(line)) {
    const std::string_view column = column_of(pair.key);
    score += column == "loss" ? 4 : column == "step" || column == "valid_loss" ? 2 : 1;
    counted = counted || column == "loss" || column == "step" || column == "valid_loss";
  }
  return counted ? score : 0;
}

void add_text(std::string& pattern, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (is_blank(text[at])) {
      while (at < text.size() && is_blank(text[at])) ++at;
      pattern += "\\s+";
    } else if (is_digit(text[at])) {
      while (at < text.size() && (is_digit(text[at]) || text[at] == '.')) ++at;
      pattern += "[\\d.]+";
    } else {
      if (std::string_view("\\^$.|?*+()[]{}").find(text[at]) != std::string_view::npos) pattern += '\\';
      pattern += text[at++];
    }
  }
}

}  // namespace

std::string pattern_for(std::string_view line) {
  std::string pattern;
  std::vector<std::string> names;
  std::size_t done = std::string_view::npos;
  for (const Pair& pair : pairs_in(line)) {
    const std::string name(column_of(pair.key));
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (done == std::string_view::npos) done = static_cast<std::size_t>(pair.key.data() - line.data());
    add_text(pattern, line.substr(done, pair.at - done));
    pattern += "(?P<" + name + (name == "step" || name == "epoch" ? ">\\d+)" : ">[-+.\\w]+)");
    names.push_back(name);
    done = pair.at + pair.value.size();
  }
  const bool useful = std::any_of(names.begin(), names.end(),
                                  [](const std::string& name) { return name == "step" || name.ends_with("loss"); });
  return useful ? pattern : "";
}

void Likeliest::see(std::string_view line, std::int64_t number) {
  if (line.size() > kLongest) return;
  const int score = score_of(line);
  if (score < kLeast || score <= score_) return;
  score_ = score;
  line_ = line;
  number_ = number;
}

std::string Likeliest::advice() const {
  const std::string pattern = score_ == 0 ? "" : pattern_for(line_);
  if (pattern.empty()) return "";
  const std::string shown = line_.size() > 120 ? line_.substr(0, 120) + "..." : line_;
  return "; the likeliest is line " + to_text(number_) + ", '" + printable(shown) + "': try --pattern " +
         shell_quoted({pattern});
}

}  // namespace zs::parse
