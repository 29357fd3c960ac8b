// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/number.hpp"
#include "flight/dump.hpp"

namespace zs::flight {
namespace {

/// "rank 1", "ranks 0, 2 and 3".
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + to_text(std::int64_t{ranks[i]});
  return text;
}

std::string at(const Collective& one) { return one.place.empty() ? "" : " at " + one.place; }
std::string called(const Collective& one) { return one.name + " of " + one.sizes + " " + one.types; }

/// Each rank gives and gets as much as the others.
bool is_even(const std::string& name) {
  return name.find("all_to_all") == std::string::npos && name.find("coalesced") == std::string::npos &&
         name != "gather" && name != "scatter";
}

/// One group's collectives, by rank.
struct Group {
  std::string name;
  std::vector<int> ranks;
  std::vector<const std::map<std::int64_t, Collective>*> collectives;  ///< nullptr: the rank left no dump
};

/// The last collective of a rank that did not arrive.
std::string last_of(const std::map<std::int64_t, Collective>& all) {
  if (all.empty()) return "it has entered none";
  const Collective& last = all.rbegin()->second;
  return "its last is collective " + to_text(last.number) + ", " + last.name + at(last);
}

Finding explain(const Group& group, std::int64_t number) {
  std::vector<int> there, missing, silent;
  std::vector<const Collective*> found;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    if (!group.collectives[i]) {
      silent.push_back(group.ranks[i]);
      continue;
    }
    const auto entered = group.collectives[i]->find(number);
    if (entered == group.collectives[i]->end()) {
      missing.push_back(group.ranks[i]);
    } else {
      there.push_back(group.ranks[i]);
      found.push_back(&entered->second);
    }
  }
  if (there.empty()) return {};
  const Collective& first = *found[0];
  const std::string what = "collective " + to_text(number) + " of " + group.name;
  for (std::size_t i = 1; i < found.size(); ++i) {
    const Collective& other = *found[i];
    const std::string who = ranks_text({there[0]}), others = ranks_text({there[i]});
    if (other.name != first.name)
      return {true, what + " is " + first.name + at(first) + " on " + who + ", and " + other.name + at(other) + " on " +
                        others};
    if (is_even(first.name) && (other.sizes != first.sizes || other.types != first.types))
      return {true, what + ", " + first.name + ", is of " + first.sizes + " " + first.types + at(first) + " on " + who +
                        ", and of " + other.sizes + " " + other.types + at(other) + " on " + others};
  }
  const bool done = std::all_of(found.begin(), found.end(), [](const Collective* one) { return one->completed; });
  if (done) return {};
  const std::string waiting = ranks_text(there) + (there.size() == 1 ? " waits" : " wait");
  if (!missing.empty()) {
    std::string where;
    if (missing.size() == 1) {
      const auto it = std::find(group.ranks.begin(), group.ranks.end(), missing[0]);
      where = ": " + last_of(*group.collectives[static_cast<std::size_t>(it - group.ranks.begin())]);
    }
    return {true, ranks_text(missing) + " did not enter " + what + ", " + called(first) + ", in which " + waiting +
                      at(first) + where};
  }
  if (!silent.empty())
    return {true,
            ranks_text(silent) + " left no dump, and " + waiting + " in " + what + ", " + called(first) + at(first)};
  std::vector<int> out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i]->completed) out.push_back(there[i]);
  }
  return {true, "every rank entered " + what + ", " + called(first) + at(first) + ", and " +
                    (out.empty() ? "none" : "only " + ranks_text(out)) +
                    " completed it: a link, a GPU or what ran before it"};
}

}  // namespace

Finding explain(const std::vector<Dump>& dumps) {
  std::set<std::string> names;
  for (const Dump& dump : dumps) {
    for (const auto& [name, collectives] : dump.collectives) names.insert(name);
  }
  static const std::map<std::int64_t, Collective> kNone;
  for (const std::string& name : names) {
    Group group{name, {}, {}};
    std::set<int> ranks;
    for (const Dump& dump : dumps) {
      const auto listed = dump.groups.find(name);
      if (listed != dump.groups.end()) ranks.insert(listed->second.begin(), listed->second.end());
      if (dump.collectives.count(name)) ranks.insert(dump.rank);
    }
    // Older entries have made room for newer ones: what every rank still has is compared.
    std::int64_t oldest = 0, newest = 0;
    for (const int rank : ranks) {
      const auto dump = std::find_if(dumps.begin(), dumps.end(), [&](const Dump& one) { return one.rank == rank; });
      group.ranks.push_back(rank);
      if (dump == dumps.end()) {
        group.collectives.push_back(nullptr);
        continue;
      }
      const auto own = dump->collectives.find(name);
      group.collectives.push_back(own == dump->collectives.end() ? &kNone : &own->second);
      if (group.collectives.back()->empty()) continue;
      oldest = std::max(oldest, group.collectives.back()->begin()->first);
      newest = std::max(newest, group.collectives.back()->rbegin()->first);
    }
    for (std::int64_t number = oldest; number <= newest; ++number) {
      if (Finding finding = explain(group, number); finding.stuck) return finding;
    }
  }
  return {false, "every rank entered the same collectives and completed them"};
}

}  // namespace zs::flight
