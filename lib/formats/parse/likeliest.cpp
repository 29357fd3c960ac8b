// SPDX-License-Identifier: Apache-2.0
#include "parse/likeliest.hpp"

#include <algorithm>
#include <vector>

#include "base/number.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "parse/dialect.hpp"
#include "parse/names.hpp"
#include "parse/text.hpp"

namespace zs::parse {
namespace {

constexpr int kLeast = 4;
constexpr std::size_t kLongest = 2000, kKept = 1000;

/// A number of the line after a word.
struct Pair {
  std::string_view key, value;
  std::size_t at;  ///< of the value

  std::string_view behind(std::string_view line) const { return line.substr(at + value.size()); }
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
    const std::string_view behind = line.substr(at + number.text.size());
    // "2,89" and "1,000" are no numbers that zs knows.
    const bool grouped = behind.size() > 1 && behind[0] == ',' && is_digit(behind[1]);
    if (near && !grouped) pairs.push_back({key, number.text, at});
    key = {};
    at += number.text.size();
  }
  return pairs;
}

/// "" also where the key or what stands behind the value says another unit than the column has.
std::string_view column_of(std::string_view key, std::string_view behind) {
  const std::string name = lower(key);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("loss") || name == "l") return has("val") ? "valid_loss" : "loss";
  if (has("epoch") || name == "ep") return "epoch";
  const std::string_view unit = unit_of_key(key);
  skip_blanks(behind);
  const std::string_view word = take_key(behind);
  if ((!unit.empty() && unit != "s") || word == "ms" || word == "us" || word == "min") return {};
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
    const std::string_view column = column_of(pair.key, pair.behind(line));
    score += column == "loss" ? 4 : column == "step" || column == "valid_loss" ? 2 : 1;
    counted = counted || column == "loss" || column == "step" || column == "valid_loss";
  }
  return counted ? score : 0;
}

/// Whether one record with a step and a loss, both numbers, came of a line.
struct Tried : Emitter {
  void record(const std::vector<Field>& fields, std::string_view, std::int64_t) override {
    const auto has = [&](std::string_view key) {
      return std::ranges::any_of(fields, [&](const Field& f) { return f.key == key && f.kind != Kind::word; });
    };
    whole = ++records == 1 && has("step") && has("loss");
  }
  void attribute(std::string_view, std::string_view, bool) override {}
  void fault(std::int64_t, const std::string&) override {}
  int records = 0;
  bool whole = false;
};

}  // namespace

std::string pattern_for(std::string_view line) {
  std::string pattern;
  std::vector<std::string> names;
  for (const Pair& pair : pairs_in(line)) {
    const std::string name(column_of(pair.key, pair.behind(line)));
    if (name.empty() || std::ranges::find(names, name) != names.end()) continue;
    pattern += (pattern.empty() ? "\\b" : ".*?\\b") + std::string(pair.key) + "[\\s:=#\\[(\"']*(?P<" + name +
               (name == "step" ? ">\\d+)(?:$|[.,](?:\\D|$)|[^.\\w,])" : ">[-+.\\w]+)(?:$|,(?:\\D|$)|[^-+.\\w,])");
    names.push_back(name);
  }
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  return has("step") && has("loss") ? pattern : "";
}

void Likeliest::see(std::string_view line, std::int64_t number) {
  if (line.size() > kLongest) return;
  const int score = score_of(line);
  if (score < kLeast) return;
  if (lines_.size() < kKept && !pattern_for(line).empty()) lines_.emplace_back(line);
  if (score <= score_) return;
  score_ = score;
  line_ = line;
  number_ = number;
}

std::string Likeliest::pattern() const {
  // The simplest line has the fewest columns that others may lack.
  const auto shortest =
      std::ranges::min_element(lines_, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (const std::string& from : {line_, shortest == lines_.end() ? "" : *shortest}) {
    const std::string pattern = pattern_for(from);
    if (pattern.empty()) continue;
    const auto dialect = make_pattern(pattern);
    const bool reads_all = std::ranges::all_of(lines_, [&](const std::string& line) {
      Tried tried;
      dialect->read({line, 1, true}, tried);
      return tried.whole;
    });
    if (reads_all) return pattern;
  }
  return "";
}

std::string Likeliest::advice() const {
  const std::string found = pattern();
  if (found.empty()) return "";
  const std::string shown = line_.size() > 120 ? line_.substr(0, 120) + "..." : line_;
  return "; the likeliest is line " + to_text(number_) + ", '" + printable(shown) + "': try --pattern " +
         shell_quoted({found});
}

}  // namespace zs::parse
