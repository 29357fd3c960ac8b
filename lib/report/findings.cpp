// SPDX-License-Identifier: Apache-2.0
#include "report/findings.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"
#include "plot/figure.hpp"
#include "stat/divergence.hpp"
#include "summary/difference.hpp"

namespace zs::report {
namespace {

void add(std::vector<DigestGroup>& groups, const Condition& condition, const std::string& digest) {
  auto group = std::find_if(groups.begin(), groups.end(), [&](const DigestGroup& one) { return one.digest == digest; });
  if (group == groups.end()) group = groups.insert(group, {digest, {}});
  if (std::find(group->members.begin(), group->members.end(), &condition) == group->members.end())
    group->members.push_back(&condition);
}

void add(std::vector<DigestClass>& classes, const Condition& condition, const std::string& digest,
         const attribute::Facts& facts) {
  const attribute::Facts decides = attribute::of_role(facts, attribute::Role::decides),
                         arithmetic = attribute::of_role(facts, attribute::Role::arithmetic);
  auto found = std::find_if(classes.begin(), classes.end(), [&](const DigestClass& one) {
    return one.decides == decides && one.arithmetic == arithmetic;
  });
  if (found == classes.end()) found = classes.insert(found, {decides, arithmetic, facts, 0, {}});
  ++found->runs;
  add(found->groups, condition, digest);
}

/// The digests of a healthy condition's runs; those of the summary where it does not hold the runs.
void add_digests(const Condition& condition, Findings& found) {
  if (condition.members.empty()) {
    if (condition.state_digest.empty())
      found.without_digest.push_back(&condition);
    else
      add(found.digests, condition, condition.state_digest, {});
    return;
  }
  bool all = true;
  for (const summary::Member& member : condition.members) {
    const std::string digest = member.run->attribute("state_digest");
    if (digest.empty())
      all = false;
    else
      add(found.digests, condition, digest, member.facts);
  }
  if (!all) found.without_digest.push_back(&condition);
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

/// What decides or rounds, and differs between the classes.
std::vector<attribute::Difference> unlike(const std::vector<DigestClass>& classes) {
  std::vector<const attribute::Facts*> facts;
  for (const DigestClass& one : classes) facts.push_back(&one.facts);
  std::vector<attribute::Difference> all = attribute::differences(facts);
  std::erase_if(all, [](const auto& one) { return one.role == attribute::Role::layout; });
  return all;
}

/// The digests that classes share.
std::vector<DigestGroup> shared(const std::vector<DigestClass>& classes) {
  std::vector<DigestGroup> groups;
  for (const DigestClass& one : classes) {
    for (const DigestGroup& group : one.groups) {
      for (const Condition* const member : group.members) add(groups, *member, group.digest);
    }
  }
  std::erase_if(groups, [&](const DigestGroup& group) {
    return std::count_if(classes.begin(), classes.end(), [&](const DigestClass& one) {
             return std::any_of(one.groups.begin(), one.groups.end(),
                                [&](const DigestGroup& own) { return own.digest == group.digest; });
           }) < 2;
  });
  return groups;
}

/// Losses of a curve at a step, one for each time that it was logged.
std::vector<double> losses_at(const Condition& condition, std::int64_t step) {
  std::vector<double> all;
  const metric::Column* const steps = condition.curve ? condition.curve->find("step") : nullptr;
  const metric::Column* const losses = condition.curve ? condition.curve->find("loss") : nullptr;
  if (!steps || !losses || losses->type() != metric::Type::real || steps->type() != metric::Type::integer) return all;
  for (std::size_t row = 0; row < condition.curve->rows(); ++row) {
    if (steps->integers()[row] == step && !losses->absent(row)) all.push_back(losses->reals()[row]);
  }
  return all;
}

/// A pair of the table "divergence".
struct Pair {
  const Condition *a, *b;
  std::int64_t steps, missing, first, largest_at;
  double difference;
  std::string differs_in;  ///< "" where the summary does not say
};

std::vector<Pair> pairs(const metric::Table& table, const std::vector<const Condition*>& conditions) {
  const auto column = [&](const char* name, metric::Type type) {
    const metric::Column* const one = table.find(name);
    return one && one->type() == type ? one : nullptr;
  };
  const auto* const others = column("condition", metric::Type::text);
  const auto* const baselines = column("baseline", metric::Type::text);
  const auto* const steps = column("steps", metric::Type::integer);
  const auto* const missing = column("steps_missing", metric::Type::integer);
  const auto* const firsts = column("first_difference", metric::Type::integer);
  const auto* const largest_at = column("difference_step", metric::Type::integer);
  const auto* const differences = column("loss_difference", metric::Type::real);
  const auto* const whats = column("differs_in", metric::Type::text);
  if (!others || !baselines || !steps || !missing || !firsts || !largest_at || !differences) return {};
  const auto named = [&](const std::string& name) {
    const auto found =
        std::find_if(conditions.begin(), conditions.end(), [&](const auto* c) { return c->name == name; });
    return found == conditions.end() ? nullptr : *found;
  };
  std::vector<Pair> all;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const Pair pair = {named(baselines->texts()[row]), named(others->texts()[row]),     steps->integers()[row],
                       missing->integers()[row],       firsts->integers()[row],         largest_at->integers()[row],
                       differences->reals()[row],      whats ? whats->texts()[row] : ""};
    if (pair.a && pair.b) all.push_back(pair);
  }
  return all;
}

Losses::Largest largest(const Pair& pair) {
  Losses::Largest made{pair.a, pair.b, pair.largest_at, plot::kNone, plot::kNone, pair.difference, plot::kNone};
  const std::vector<double> a = losses_at(*pair.a, pair.largest_at), b = losses_at(*pair.b, pair.largest_at);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (difference != pair.difference && !(std::isnan(difference) && std::isnan(pair.difference))) continue;
    made.loss_a = a[i], made.loss_b = b[i];
    made.relative = difference / std::min(std::abs(a[i]), std::abs(b[i]));
    break;
  }
  return made;
}

/// A difference that is not finite is larger than any that is.
bool larger(double a, double b) { return std::isfinite(b) && !(a <= b); }

Losses losses(const metric::Store& store, const std::vector<const Condition*>& healthy, std::size_t conditions) {
  Losses made;
  const auto entry = store.tables.find("divergence");
  made.compared = entry != store.tables.end();
  made.with_first_alone = conditions > stat::kMostPaired;
  if (!made.compared) return made;
  made.equal = true;
  for (const Pair& pair : pairs(entry->second, healthy)) {
    if (pair.steps < 1) {
      ++made.apart;
      continue;
    }
    const auto steps = static_cast<std::size_t>(pair.steps);
    made.fewest_steps = made.pairs++ == 0 ? steps : std::min(made.fewest_steps, steps);
    // Where no step has the largest difference the curves are equal, and what differs is another column, or a run.
    const bool curves_equal = metric::is_absent(pair.largest_at);
    const bool other_column = curves_equal && !pair.differs_in.empty() && !pair.differs_in.starts_with("loss");
    made.equal = made.equal && pair.missing == 0 && (metric::is_absent(pair.first) || other_column);
    if (other_column && made.beside.empty()) made.beside = pair.differs_in + " from step " + to_text(pair.first);
    if (curves_equal) continue;
    made.first_step = std::min(made.first_step.value_or(pair.first), pair.first);
    if (!made.largest || larger(pair.difference, made.largest->difference)) made.largest = largest(pair);
  }
  made.equal = made.equal && made.pairs > 0 && made.apart == 0;
  return made;
}

/// What zs-aggregate found about pairs of conditions.
void read_divergence(const metric::Store& store, Findings& found) {
  const auto entry = store.tables.find("divergence");
  if (entry == store.tables.end()) return;
  const metric::Table& table = entry->second;
  const auto column = [&](const char* name, metric::Type type) {
    const metric::Column* const one = table.find(name);
    return one && one->type() == type ? one : nullptr;
  };
  const auto* const conditions = column("condition", metric::Type::text);
  const auto* const baselines = column("baseline", metric::Type::text);
  const auto* const envelopes = column("envelope", metric::Type::real);
  const auto* const steps = column("first_outside", metric::Type::integer);
  if (!conditions || !baselines || !envelopes || !steps) return;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!envelopes->absent(row) && !(envelopes->reals()[row] <= found.envelope.value_or(0)))
      found.envelope = envelopes->reals()[row];
    if (!steps->absent(row))
      found.outside.push_back({conditions->texts()[row], baselines->texts()[row], steps->integers()[row]});
  }
}

struct Reading {
  const Condition* condition;
  double value, low, high;
};

Best smallest(std::vector<Reading> readings) {
  Best best;
  best.compared = readings.size();
  if (readings.empty()) return best;
  std::stable_sort(readings.begin(), readings.end(),
                   [](const Reading& a, const Reading& b) { return a.value < b.value; });
  best.winner = readings[0].condition;
  if (readings.size() > 1) best.next = readings[1].condition;
  best.intervals = std::all_of(readings.begin(), readings.end(),
                               [](const Reading& one) { return std::isfinite(one.low) && std::isfinite(one.high); });
  for (std::size_t i = 1; i < readings.size(); ++i) {
    if (!(readings[0].high < readings[i].low)) best.level.push_back(readings[i].condition);
  }
  return best;
}

}  // namespace

bool DigestClass::known() const { return decides.count("model.name") + decides.count("model.parameters") > 0; }

bool Findings::digests_differ() const {
  return std::any_of(digests.begin(), digests.end(),
                     [](const DigestClass& one) { return one.known() && one.groups.size() > 1; });
}

bool Findings::digests_unjudged() const {
  return std::any_of(digests.begin(), digests.end(),
                     [](const DigestClass& one) { return !one.known() && one.groups.size() > 1; });
}

bool Findings::digests_compared() const {
  return std::any_of(digests.begin(), digests.end(), [](const DigestClass& one) { return one.runs > 1; });
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
    if (condition.status != "COMPLETE") found.unknown.push_back(&condition);
    add_digests(condition, found);
  }
  merge(found.digests);
  if (found.digests.size() > 1) found.unlike = unlike(found.digests), found.shared = shared(found.digests);
  found.losses = losses(store, found.healthy, found.conditions.size());
  found.unlike_work = summary::unlike_work(found.healthy);

  read_divergence(store, found);

  std::vector<Reading> times, memories, final_losses;
  for (const Condition* const one : found.healthy) {
    if (one->time_mean && std::isfinite(*one->time_mean) && *one->time_mean > 0) {
      times.push_back(
          {one, *one->time_mean, one->time_low.value_or(plot::kNone), one->time_high.value_or(plot::kNone)});
    }
    // A peak is counted, not sampled: within one percent two conditions are no reason to choose.
    if (one->peak_mem && *one->peak_mem > 0) {
      const auto peak = static_cast<double>(*one->peak_mem);
      memories.push_back({one, peak, 0.995 * peak, 1.005 * peak});
    }
  }
  for (const Condition* const one : found.healthy) {
    if (!one->final_loss || !std::isfinite(*one->final_loss)) continue;
    final_losses.push_back(
        {one, *one->final_loss, one->final_loss_low.value_or(plot::kNone), one->final_loss_high.value_or(plot::kNone)});
  }
  found.loss = smallest(std::move(final_losses));
  found.time = smallest(std::move(times));
  found.memory = smallest(std::move(memories));
  return found;
}

}  // namespace zs::report
