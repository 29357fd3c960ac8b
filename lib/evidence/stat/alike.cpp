// SPDX-License-Identifier: Apache-2.0
#include "stat/alike.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "attribute/difference.hpp"
#include "base/number.hpp"

namespace zs::stat {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

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

/// The last number of a name, and the position of its digits.
struct Numbered {
  std::string before, after;
  std::int64_t number = 0;
  std::size_t digits = 0;
};

Numbered numbered(const std::string& name) {
  std::size_t end = name.size();
  while (end > 0 && !digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && digit(name[begin - 1])) --begin;
  const auto number = parse_int(name.substr(begin, end - begin));
  if (begin == end || !number) return {name, "", 0, 0};
  return {name.substr(0, begin), name.substr(end), *number, end - begin};
}

bool follows(const Numbered& one, const Numbered& next) {
  return one.digits > 0 && next.digits > 0 && one.before == next.before && one.after == next.after &&
         next.number == one.number + 1;
}

}  // namespace

std::string stem(const std::string& name) {
  std::string made;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!digit(name[i]))
      made += name[i];
    else if (i == 0 || !digit(name[i - 1]))
      made += '*';
  }
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
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

}  // namespace zs::stat
