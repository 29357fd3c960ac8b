// SPDX-License-Identifier: Apache-2.0
#include "stat/alike.hpp"

#include <re2/re2.h>
#include <algorithm>
#include <map>
#include <set>

#include "attribute/difference.hpp"
#include "base/words.hpp"

namespace zs::stat {
namespace {

/// Attributes without a row in the table that have another value in every run: names.
std::set<std::string> names_of_runs(const std::vector<attribute::Facts>& runs) {
  struct Seen {
    std::size_t runs = 0;
    std::set<std::string> values;
  };
  std::map<std::string, Seen> seen;
  for (const attribute::Facts& facts : runs) {
    for (const auto& [key, value] : facts) {
      if (attribute::find(key)) continue;
      Seen& one = seen[key];
      ++one.runs, one.values.insert(value);
    }
  }
  constexpr std::size_t kFewest = 3;
  std::set<std::string> names;
  for (const auto& [key, one] : seen) {
    if (one.runs >= kFewest && one.values.size() == one.runs) names.insert(key);
  }
  return names;
}

/// The last number of a name, and what stands around it.
struct Numbered {
  std::string before, after;
  std::int64_t number = 0;
  bool any = false;
};

Numbered numbered(const std::string& name) {
  static const RE2 kLast("(?s)(.*?)([0-9]+)([^0-9]*)", RE2::Latin1);
  Numbered found;
  found.any = RE2::FullMatch(name, kLast, &found.before, &found.number, &found.after);
  return found;
}

bool follows(const Numbered& one, const Numbered& next) {
  return one.any && next.any && one.before == next.before && one.after == next.after && next.number == one.number + 1;
}

}  // namespace

std::string stem(const std::string& name) {
  static const RE2 kNumber("[0-9]+", RE2::Latin1);
  std::string made = name;
  RE2::GlobalReplace(&made, kNumber, "*");
  return made;
}

std::vector<Alike> alike(const std::vector<const metric::Run*>& runs) {
  std::vector<attribute::Facts> facts;
  for (const metric::Run* const run : runs) facts.push_back(attribute::settled(run->attributes));
  const std::set<std::string> names = names_of_runs(facts);
  std::map<std::vector<std::string>, std::size_t> places;
  std::vector<Alike> groups;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> key;
    for (const auto& [name, value] : facts[i]) {
      if (name == "seed" || names.count(name) > 0) continue;
      if (attribute::role_in(facts[i], name) <= attribute::Role::layout) key.push_back(name + "=" + value);
    }
    if (facts[i].count("model.name") + facts[i].count("model.parameters") == 0) {
      key.push_back(stem(runs[i]->name));
      for (const metric::Column& column : runs[i]->records.columns) key.push_back(column.name);
    }
    const auto place = places.try_emplace(std::move(key), groups.size()).first->second;
    if (place == groups.size()) groups.emplace_back();
    groups[place].runs.push_back(i);
  }
  for (Alike& group : groups) {
    const std::string first = runs[group.runs.front()]->name;
    const bool one_stem =
        std::ranges::all_of(group.runs, [&](std::size_t run) { return stem(runs[run]->name) == stem(first); });
    group.label = group.runs.size() == 1 ? first
                  : one_stem             ? stem(first)
                                         : first + " and " + std::to_string(group.runs.size() - 1) + " more";
  }
  return groups;
}

std::string ranges(const std::vector<std::string>& names, std::size_t most) {
  std::vector<std::string> parts;
  for (std::size_t first = 0, next = 0; first < names.size(); first = next) {
    next = first + 1;
    while (next < names.size() && follows(numbered(names[next - 1]), numbered(names[next]))) ++next;
    if (next - first > 2) {
      parts.push_back(names[first] + " to " + names[next - 1]);
    } else {
      for (std::size_t i = first; i < next; ++i) parts.push_back(names[i]);
    }
  }
  if (parts.size() > most) {
    const std::size_t more = parts.size() - (most - 1);
    parts.resize(most - 1);
    parts.push_back(std::to_string(more) + " more");
  }
  return with_and(parts);
}

}  // namespace zs::stat
