// SPDX-License-Identifier: Apache-2.0
#include "config/reading.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "config/known.hpp"

namespace zs::config {
namespace {

/// One of Known::needs: "training.dtype=float16", or a key alone.
struct Requirement {
  explicit Requirement(const std::string& text)
      : row(*known(text.substr(0, text.find('=')))),
        value(text.find('=') == std::string::npos ? "" : text.substr(text.find('=') + 1)) {}
  const Known& row;
  std::string value;  ///< "": any that is not 0, false or none

  bool holds(const Config& config) const {
    const Entry* const entry = config.find(row.key);
    const std::string now = entry ? same_form(row, entry->value) : same_form(row, std::string(row.fallback));
    if (!value.empty()) return now == same_form(row, value);
    return !now.empty() && now != "0" && now != "false" && now != "none";
  }
  std::string option() const {
    const bool truth = row.type == Type::boolean;
    const std::string text = as_option(row, !value.empty() ? value : truth ? "true" : "");
    return text.ends_with(' ') ? text.substr(0, text.size() - 1) : text;
  }
};

std::vector<Requirement> requirements(const Known& row) {
  std::vector<Requirement> needs;
  for (const std::string& word : words(row.needs)) needs.emplace_back(word);
  return needs;
}

/// Set by the user, and different from the default.
bool says_something(const Entry& entry, const Known& row) {
  return entry.from == From::user && entry.kind != Kind::null &&
         (row.fallback.empty() || same_form(row, entry.value) != same_form(row, std::string(row.fallback)));
}

std::string explained(const Entry& entry) {
  const Known& row = *known(entry.key);
  std::string what;
  const auto either = [&](const std::string& one) { what += (what.empty() ? "" : " or ") + one; };
  for (const Requirement& requirement : requirements(row)) either(requirement.option());
  if (!row.where.empty()) either(std::string(row.where));
  const bool option = entry.origin.starts_with("--") && entry.origin != "--set";
  return (option ? entry.origin : entry.origin + ": " + entry.key) + " has no effect here" +
         (what.empty() ? "" : ": it needs " + what) + "; leave it out" + (option ? "" : ", or set it to null");
}

}  // namespace

std::string place_of(const Entry& entry) { return entry.origin + ": " + entry.key; }

void refuse(const Entry& entry, const std::string& why) {
  throw Error(place_of(entry) + " is " + entry.value + ", and " + why);
}

std::string as_option(const Known& row, std::string_view value) {
  const std::vector<std::string> names = words(row.options);
  const bool flag = row.type == Type::boolean && row.value.empty();
  const bool bare = flag || (!row.alone.empty() && value == row.alone);
  if (names.empty() || (flag && value != "true")) return "--set " + std::string(row.key) + "=" + std::string(value);
  return "--" + names.front() + (bare ? "" : " " + std::string(value));
}

std::vector<const Entry*> Reading::unread() const {
  std::vector<const Entry*> entries;
  for (const Entry& entry : config_->entries()) {
    const Known* const row = known(entry.key);
    if (row && !read_.contains(row->key) && says_something(entry, *row)) entries.push_back(&entry);
  }
  return entries;
}

std::string Reading::without_effect(const Entry& entry) { return explained(entry); }

void require_effect(const Config& config) {
  for (const Entry& entry : config.entries()) {
    const Known* const row = known(entry.key);
    if (!row || row->needs.empty() || !row->where.empty() || !says_something(entry, *row)) continue;
    const std::vector<Requirement> needed = requirements(*row);
    if (std::none_of(needed.begin(), needed.end(), [&](const Requirement& one) { return one.holds(config); }))
      throw Error(explained(entry));
  }
}

}  // namespace zs::config
