// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "config/known.hpp"
#include "config/yaml.hpp"
#include "optimizer/optimizer.hpp"

namespace zs::config {
namespace {

constexpr std::ptrdiff_t kMostSections = 64;

/// The sections of a key: "a", "a.b" for "a.b.c".
template <typename Use>
void each_section(const std::string& key, Use use) {
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) use(key.substr(0, dot));
}

std::string canonical(std::string_view key) {
  const Known* const row = known(key);
  return std::string(row ? row->key : key);
}

/// "train.yaml:12: training.batch_size: ", or without the key if an option already names it.
[[noreturn]] void fail(const Entry& entry, const std::string& what) {
  const bool option = entry.origin.starts_with("--") && entry.origin != "--set";
  throw Error(entry.origin, 0, option ? what : entry.key + ": " + what);
}

const Entry& value_or_default(const Config& config, std::string_view key, Entry& fallback) {
  if (const Entry* const entry = config.find(key)) return *entry;
  const Known* const row = known(key);
  fallback = {canonical(key), std::string(row ? row->fallback : ""), "default", Kind::plain};
  if (fallback.value.empty()) throw Error(fallback.key + " is not set");
  return fallback;
}

std::string range_text(double lowest, double highest) {
  const bool below = lowest > std::numeric_limits<double>::lowest(), above = highest < 1e15;
  const auto number = [](double x) {
    if (x == kBelowOne) return std::string("less than 1");
    return x == std::numeric_limits<double>::denorm_min() ? "more than 0" : to_plain_text(x);
  };
  if (below && above) return " from " + number(lowest) + " to " + number(highest);
  return below ? " of at least " + number(lowest) : "";
}

double number_in_range(const Entry& entry, std::optional<double> number, const char* noun) {
  const Known* const row = known(entry.key);
  const double lowest = row ? row->lowest : std::numeric_limits<double>::lowest();
  const double highest = row ? row->highest : std::numeric_limits<double>::max();
  if (!number || entry.kind == Kind::list || !(*number >= lowest && *number <= highest)) {
    fail(entry, "'" + entry.value + "' is not a " + noun + range_text(lowest, highest));
  }
  return *number;
}

/// The value, if it is among the choices.
std::string chosen(const Entry& entry, const std::string& value, const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) == choices.end())
    fail(entry, fmt::format("'{}' is not one of {}{}", value, fmt::join(choices, ", "), did_you_mean(value, choices)));
  return value;
}

/// A whole number, also as another tool may have written it: "32.0", "1e4".
std::optional<std::int64_t> whole(std::string_view text) {
  if (const auto number = parse_int(text)) return number;
  const auto real = parse_real(text);
  if (!real || !(std::fabs(*real) < 9e15) || *real != std::floor(*real)) return {};
  return static_cast<std::int64_t>(*real);
}

}  // namespace

Entry entry_of(const std::string& key, const std::string& text, const std::string& origin) {
  const std::string word = lower(text);
  if (text.empty() || word == "null" || word == "~") return {key, "", origin, Kind::null};
  if (std::string_view("[{\"'").find(text.front()) == std::string_view::npos) return {key, text, origin, Kind::plain};
  return entry_of_node(key, origin, document(text, origin));
}

void Config::set(const std::string& key, const std::string& value, const std::string& origin) {
  set(entry_of(key, value, origin));
}

void Config::set(Entry entry) {
  if (entry.key.empty() || entry.key.front() == '.' || entry.key.back() == '.' ||
      entry.key.find("..") != std::string::npos) {
    throw Error(entry.origin, 0, "'" + entry.key + "' is not a key: expected words joined by dots");
  }
  entry.key = canonical(entry.key);
  if (std::count(entry.key.begin(), entry.key.end(), '.') >= kMostSections)
    throw Error(entry.origin, 0, "'" + entry.key.substr(0, 40) + "...' is not a key: too many words");
  if (const auto found = places_.find(entry.key); found != places_.end()) {
    entries_[found->second] = std::move(entry);
    return;
  }
  if (const auto section = sections_.find(entry.key); section != sections_.end()) {
    if (entry.kind == Kind::null) return;  // an empty section next to one with keys
    const Entry& first = entries_[section->second];
    throw Error(
        entry.origin, 0,
        "'" + entry.key + "' is a section (" + first.key + " is set by " + first.origin + "), it cannot have a value");
  }
  std::size_t place = entries_.size();
  each_section(entry.key, [&](const std::string& section) {
    const auto found = places_.find(section);
    if (found == places_.end()) return;
    const Entry& other = entries_[found->second];
    if (other.kind != Kind::null) {
      throw Error(
          entry.origin, 0,
          "'" + entry.key + "': '" + other.key + "' has a value already (" + other.origin + "), it is not a section");
    }
    place = found->second;  // a section that was empty
  });
  if (place == entries_.size())
    entries_.emplace_back();
  else
    places_.erase(entries_[place].key);
  places_.emplace(entry.key, place);
  each_section(entry.key, [&](const std::string& section) { sections_.emplace(section, place); });
  entries_[place] = std::move(entry);
}

void Config::add_defaults() {
  const std::string optimizer = text("training.optimizer");
  for (const Known& row : known()) {
    const std::string_view special = optimizer::usual(optimizer, row.key),
                           value = special.empty() ? row.fallback : special;
    if (!value.empty() && !has(row.key)) choose(std::string(row.key), std::string(value));
  }
}

void Config::choose(const std::string& key, const std::string& value) {
  Entry entry = entry_of(key, value, "default");
  entry.from = From::zs;
  set(std::move(entry));
}

void Config::mark_stored() {
  for (Entry& entry : entries_) entry.from = From::stored;
}

void Config::check() const {
  for (const Entry& entry : entries_) {
    const Known* const row = known(entry.key);
    if (!row || entry.kind == Kind::null) continue;
    switch (row->type) {
      case Type::text:
        text(entry.key);
        break;
      case Type::integer:
      case Type::count:
        integer(entry.key);
        break;
      case Type::real:
        real(entry.key);
        break;
      case Type::boolean:
        boolean(entry.key);
        break;
      case Type::list:
        list(entry.key);
        break;
    }
  }
}

const Entry* Config::find(std::string_view key) const {
  const auto found = places_.find(canonical(key));
  return found == places_.end() || entries_[found->second].kind == Kind::null ? nullptr : &entries_[found->second];
}

std::string Config::text(std::string_view key) const {
  const Known* const row = known(key);
  const Entry* const entry = find(key);
  if (!entry) return std::string(row ? row->fallback : "");
  if (!row) return entry->value;
  if (entry->kind == Kind::list && row->type == Type::text)
    fail(*entry, "'" + entry->value + "' is a list, expected one value");
  if (entry->value.empty()) fail(*entry, "is empty: leave it out, or write null");
  const std::vector<std::string> choices = words(row->choices);
  if (!row->alone.empty()) return chosen(*entry, same_form(*row, entry->value), choices);
  return choices.empty() ? entry->value : chosen(*entry, entry->value, choices);
}

std::int64_t Config::integer(std::string_view key) const {
  Entry fallback;
  const Entry& entry = value_or_default(*this, key, fallback);
  const Known* const row = known(key);
  const bool count = row && row->type == Type::count;
  const auto number = count ? parse_count(entry.value) : whole(entry.value);
  number_in_range(entry, number ? std::optional(static_cast<double>(*number)) : std::nullopt,
                  count ? "count (10M, 64k, 512)" : "whole number");
  return *number;
}

double Config::real(std::string_view key) const {
  Entry fallback;
  const Entry& entry = value_or_default(*this, key, fallback);
  const auto number = parse_real(entry.value);
  return number_in_range(entry, number && std::isfinite(*number) ? number : std::nullopt, "number");
}

bool Config::boolean(std::string_view key) const {
  Entry fallback;
  const Entry& entry = value_or_default(*this, key, fallback);
  const std::string word = lower(entry.value);
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  fail(entry, "'" + entry.value + "' is not true or false");
}

std::vector<std::string> Config::list(std::string_view key) const {
  const Entry* const entry = find(key);
  std::vector<std::string> items;
  if (!entry) return items;
  if (entry->kind == Kind::list) {
    const YAML::Node node = document(entry->value, entry->origin);
    if (!node.IsSequence()) fail(*entry, "'" + entry->value + "' is not a list");
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) fail(*entry, "'" + entry->value + "' is not a list of words");
      items.push_back(item.Scalar());
    }
    return items;
  }
  if (!entry->value.empty()) items = split(entry->value, ",");
  if (std::ranges::count(items, "") > 0) fail(*entry, "'" + entry->value + "' has an empty word");
  return items;
}

}  // namespace zs::config
