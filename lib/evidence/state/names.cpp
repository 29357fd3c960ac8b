// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "state/diff.hpp"

namespace zs::state {
namespace {

std::ptrdiff_t stars(const std::string& text) { return std::ranges::count(text, '*'); }

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// The text that matches the * of a pattern in a name; nothing if they do not match.
std::optional<std::string> star_of(const std::string& pattern, const std::string& name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) return {};
  return name.substr(head.size(), name.size() - head.size() - tail.size());
}

std::string with_star(std::string pattern, const std::string& star) {
  for (std::size_t at = 0; (at = pattern.find('*', at)) != std::string::npos; at += star.size())
    pattern.replace(at, 1, star);
  return pattern;
}

}  // namespace

Names::Names(const std::string& path) : path_(path) {
  std::istringstream lines(Input(path).read_all());
  long number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string a, b, more;
    if (!(words >> a) || a == "#") continue;
    const std::size_t equals = line.find(" = ");
    if (equals != std::string::npos) {
      Line join{true, trimmed(line.substr(equals + 3)), trimmed(line.substr(0, equals)), number};
      if (join.expression.find('(') == std::string::npos) join.first = false, std::swap(join.name, join.expression);
      if (join.expression.find('(') == std::string::npos || join.name.find_first_of("( ,") != std::string::npos)
        throw Error(path, number, "expected NAME = EXPRESSION or EXPRESSION = NAME: qkv = cat(q, k, v)");
      std::vector<std::string> parts;
      try {
        parts = Expression::parse(join.expression).names();
      } catch (const Error& error) {
        throw Error(path, number, error.what());
      }
      if (std::ranges::any_of(parts, [&](const std::string& part) { return stars(part) != stars(join.name); }) ||
          stars(join.name) > 1)
        throw Error(path, number, "expected one * in each name, or in none");
      joins_.push_back(std::move(join));
      continue;
    }
    if (!(words >> b) || words >> more)
      throw Error(path, number, "expected two names: that in the first checkpoint, and that in the second");
    if (stars(a) != stars(b) || stars(a) > 1) throw Error(path, number, "expected one * in both names, or in none");
    rules_.emplace_back(a, b);
  }
  if (empty()) throw Error(path, 0, "holds no pair of names");
}

std::string Names::renamed(const std::string& name) const {
  for (const auto& [from, to] : rules_) {
    if (const auto star = star_of(from, name)) return with_star(to, *star);
  }
  return name;
}

std::vector<Join> Names::joins(const State& state, bool first) const {
  std::vector<Join> found_joins;
  for (const Line& line : joins_) {
    if (line.first != first) continue;
    const std::string pattern = Expression::parse(line.expression).names().front();
    std::set<std::string> found;
    for (const Parameter& parameter : state.parameters) {
      if (const auto star = star_of(pattern, parameter.name)) found.insert(*star);
    }
    if (found.empty()) throw Error(path_, line.number, state.path + " has no " + pattern);
    for (const std::string& star : found)
      found_joins.push_back(
          {with_star(line.name, star), Expression::parse(with_star(line.expression, star)), path_, line.number});
  }
  return found_joins;
}

}  // namespace zs::state
