// SPDX-License-Identifier: Apache-2.0
// Anyone's own format: a regular expression whose named groups are the keys of a record. RE2 takes time that grows with
// the line only, whatever the expression.
#include <re2/re2.h>

#include <algorithm>

#include "base/error.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

/// "(?<name>" as in Perl, written "(?P<name>" as RE2 wants it.
std::string with_p(std::string_view pattern) {
  std::string result;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      result += pattern[i++];
    } else if (pattern.substr(i).starts_with("(?<") && pattern.substr(i, 4) != "(?<=" &&
               pattern.substr(i, 4) != "(?<!") {
      result += "(?P<";
      i += 2;
      continue;
    }
    result += pattern[i];
  }
  return result;
}

class Pattern : public Dialect {
 public:
  Pattern(const std::string& pattern, const std::string& what) : pattern_(with_p(pattern), quiet()) {
    if (!pattern_.ok()) throw UsageError(what + ": " + pattern_.error() + " in '" + pattern_.error_arg() + "'");
    if (pattern_.NamedCapturingGroups().empty()) {
      throw UsageError(what + ": no named group, as in 'it (?P<step>\\d+) loss (?P<loss>\\S+)'");
    }
    for (const auto& [name, index] : pattern_.NamedCapturingGroups()) groups_.emplace_back(index, name);
    std::ranges::sort(groups_);
    parts_.resize(static_cast<std::size_t>(pattern_.NumberOfCapturingGroups()) + 1);
  }

  bool wants_all() const override { return true; }

  Verdict read(const Line& line, Emitter& emitter) override {
    const re2::StringPiece text(line.text.data(), line.text.size());
    std::string_view prefix;
    std::size_t from = 0;
    bool matched = false, cut = false;
    while (from <= line.text.size() &&
           pattern_.Match(text, from, text.size(), RE2::UNANCHORED, parts_.data(), static_cast<int>(parts_.size()))) {
      const std::size_t begin = static_cast<std::size_t>(parts_[0].data() - text.data());
      if (!matched) prefix = line.text.substr(0, begin);
      fields_.clear();
      for (const auto& [index, name] : groups_) {
        const re2::StringPiece part = parts_[static_cast<std::size_t>(index)];
        if (part.data() == nullptr || part.empty()) continue;  // an optional group
        const std::string_view value(part.data(), part.size());
        const bool touches_end = value.data() + value.size() == line.text.data() + line.text.size();
        cut = cut || (touches_end && !line.ended);
        if (!touches_end || line.ended) fields_.push_back({name, value, value_of(value).kind});
      }
      if (!fields_.empty()) emitter.record(fields_, prefix, line.number);
      matched = matched || !fields_.empty();
      from = std::max(begin + parts_[0].size(), from + 1);
    }
    return {matched, cut ? "malformed line: the log ends within a value" : ""};
  }

 private:
  static RE2::Options quiet() {
    RE2::Options options(RE2::Quiet);
    options.set_encoding(RE2::Options::EncodingLatin1);  // logs may hold any bytes
    return options;
  }

  RE2 pattern_;
  std::vector<std::pair<int, std::string>> groups_;
  std::vector<re2::StringPiece> parts_;
  std::vector<Field> fields_;
};

}  // namespace

std::unique_ptr<Dialect> make_pattern(const std::string& pattern, const std::string& what) {
  return std::make_unique<Pattern>(pattern, what);
}

}  // namespace zs::parse
