// SPDX-License-Identifier: Apache-2.0
#include "report/findings.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/words.hpp"
#include "figure/figure.hpp"
#include "stat/outlier.hpp"
#include "summary/difference.hpp"

namespace zs::report {
namespace {

void add(std::vector<DigestGroup>& groups, const Condition& condition, const std::string& digest) {
  auto group = std::ranges::find(groups, digest, &DigestGroup::digest);
  if (group == groups.end()) group = groups.insert(group, {digest, {}});
  if (std::ranges::find(group->members, &condition) == group->members.end()) group->members.push_back(&condition);
}

void add(std::vector<DigestClass>& classes, const Condition& condition, const std::string& digest,
         const attribute::Facts& facts) {
  const attribute::Facts decides = attribute::of_role(facts, attribute::Role::decides),
                         arithmetic = attribute::of_role(facts, attribute::Role::arithmetic);
  auto found = std::ranges::find_if(
      classes, [&](const DigestClass& one) { return one.decides == decides && one.arithmetic == arithmetic; });
  if (found == classes.end()) found = classes.insert(found, {decides, arithmetic, facts, 0, {}});
  ++found->runs;
  add(found->groups, condition, digest);
}

/// The digests of a healthy condition's runs; if the summary lacks the runs, its own digests.
void add_digests(const Condition& condition, Findings& found) {
  if (condition.members.empty()) {
    if (condition.state_digest.empty())
      found.without_digest.push_back(&condition);
    else
      add(found.digests, condition, condition.state_digest, {});
    return;
  }
  bool complete = true;
  for (const summary::Member& member : condition.members) {
    const std::string digest = member.run->attribute("state_digest");
    if (digest.empty())
      complete = false;
    else
      add(found.digests, condition, digest, member.facts);
  }
  if (!complete) found.without_digest.push_back(&condition);
}

/// Another arithmetic is an excuse for other bits, not against the same: classes of one training that end with one
/// digest are one.
void merge(std::vector<DigestClass>& classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (std::size_t j = i + 1; j < classes.size();) {
      DigestClass &into = classes[i], &from = classes[j];
      const bool one = into.decides == from.decides && into.groups.size() == 1 && from.groups.size() == 1 &&
                       into.groups[0].digest == from.groups[0].digest;
      if (!one) {
        ++j;
        continue;
      }
      into.runs += from.runs;
      for (const Condition* const member : from.groups[0].members) add(into.groups, *member, from.groups[0].digest);
      classes.erase(classes.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

/// Attributes that decide or round, and differ between the classes.
std::vector<attribute::Difference> unlike(const std::vector<DigestClass>& classes) {
  std::vector<const attribute::Facts*> facts;
  for (const DigestClass& one : classes) facts.push_back(&one.facts);
  std::vector<attribute::Difference> differing = attribute::differences(facts);
  std::erase_if(differing, [](const auto& one) { return one.role == attribute::Role::layout; });
  return differing;
}

std::vector<DigestGroup> shared(const std::vector<DigestClass>& classes) {
  std::vector<DigestGroup> groups;
  for (const DigestClass& one : classes) {
    for (const DigestGroup& group : one.groups) {
      for (const Condition* const member : group.members) add(groups, *member, group.digest);
    }
  }
  std::erase_if(groups, [&](const DigestGroup& group) {
    return std::ranges::count_if(classes, [&](const DigestClass& one) {
             return std::ranges::any_of(one.groups,
                                        [&](const DigestGroup& shown) { return shown.digest == group.digest; });
           }) < 2;
  });
  return groups;
}

struct Reading {
  const Condition* condition;
  double value, low, high;
};

Best smallest(std::vector<Reading> readings) {
  Best best;
  best.compared = readings.size();
  if (readings.empty()) return best;
  std::ranges::stable_sort(readings, [](const Reading& a, const Reading& b) { return a.value < b.value; });
  best.winner = readings[0].condition;
  if (readings.size() > 1) best.next = readings[1].condition;
  best.intervals = std::ranges::all_of(
      readings, [](const Reading& one) { return std::isfinite(one.low) && std::isfinite(one.high); });
  for (std::size_t i = 1; i < readings.size(); ++i) {
    if (!(readings[0].high < readings[i].low)) best.level.push_back(readings[i].condition);
  }
  return best;
}

}  // namespace

bool DigestClass::known() const { return decides.count("model.name") + decides.count("model.parameters") > 0; }

bool Findings::digests_differ() const {
  return std::ranges::any_of(digests, [](const DigestClass& one) { return one.known() && one.groups.size() > 1; });
}

bool Findings::digests_unjudged() const {
  return std::ranges::any_of(digests, [](const DigestClass& one) { return !one.known() && one.groups.size() > 1; });
}

bool Findings::digests_compared() const {
  return std::ranges::any_of(digests, [](const DigestClass& one) { return one.runs > 1; });
}

std::string shares_of_kinds(const Findings& found, const std::function<bool(const Condition&)>& is) {
  std::vector<std::string> shares;
  for (const stat::Alike& kind : found.kinds) {
    const auto count = std::ranges::count_if(kind.runs, [&](std::size_t i) { return is(found.conditions[i]); });
    const bool whole = static_cast<std::size_t>(count) == kind.runs.size();
    if (count > 0)
      shares.push_back((whole ? "" : std::to_string(count) + " of ") + kind.label + " (" +
                       std::to_string(kind.runs.size()) + ")");
  }
  return zs::joined(shares);
}

Findings findings(const metric::Store& store, const std::string& source) {
  Findings found;
  found.conditions = summary::conditions(store, source);
  if (found.conditions.empty()) throw Error(source, 0, "the summary has no condition");
  for (const Condition& condition : found.conditions) {
    if (condition.bad()) {
      found.bad.push_back(&condition);
      continue;
    }
    found.healthy.push_back(&condition);
    if (condition.status != name(attribute::RunState::complete)) found.unknown.push_back(&condition);
    add_digests(condition, found);
  }
  merge(found.digests);
  if (found.digests.size() > 1) found.unlike = unlike(found.digests), found.shared = shared(found.digests);
  if (!store.runs.empty()) found.recordings = store.runs.front().attribute("probe_verdict");
  found.losses = summary::losses(store, found.healthy, found.conditions.size());
  found.unlike_work = summary::unlike_work(found.healthy);
  found.outliers = stat::outlier_sentences(store);
  std::vector<const metric::Run*> runs;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < found.conditions.size(); ++i) {
    if (found.conditions[i].members.empty()) continue;
    runs.push_back(found.conditions[i].members.front().run);
    places.push_back(i);
  }
  found.kinds = stat::alike(runs);
  for (stat::Alike& kind : found.kinds) {
    for (std::size_t& run : kind.runs) run = places[run];
  }

  std::vector<Reading> times, memories, final_losses;
  const auto read = [](std::vector<Reading>& into, const Condition& one, const std::optional<double>& value,
                       const std::optional<double>& low, const std::optional<double>& high) {
    if (value && std::isfinite(*value))
      into.push_back({&one, *value, low.value_or(figure::kNone), high.value_or(figure::kNone)});
  };
  for (const Condition* const one : found.healthy) {
    // Steps of one run follow one another: their interval does not hold what differs from one run to the next.
    const auto end = [&](Condition::Column column) { return one->timed_runs() > 1 ? (*one)[column] : std::nullopt; };
    if ((*one)["time_mean"] > 0) read(times, *one, (*one)["time_mean"], end("time_low"), end("time_high"));
    // A peak is counted, not sampled: within one percent two conditions are no reason to choose.
    const auto peak = (*one)["peak_mem"].value_or(0);
    if (peak > 0) read(memories, *one, peak, 0.995 * peak, 1.005 * peak);
    read(final_losses, *one, (*one)["final_loss"], (*one)["final_loss_low"], (*one)["final_loss_high"]);
  }
  found.loss = smallest(std::move(final_losses));
  found.time = smallest(std::move(times));
  found.memory = smallest(std::move(memories));
  return found;
}

}  // namespace zs::report
