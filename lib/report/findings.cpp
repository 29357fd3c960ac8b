// SPDX-License-Identifier: Apache-2.0
#include "report/findings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "stat/sample.hpp"

namespace zs::report {
namespace {

/// What must be equal for two runs to train the same thing. Stage, ranks, compiled schedule and offload may differ:
/// they must not change a bit. The number of ranks times micro-batch times accumulation counts as a product.
constexpr std::array kTrained = {"model.name",    "dataset", "dataset_percentage", "num_layers",    "dtype",
                                 "seq_length",    "seed",    "learning_rate",      "max_grad_norm", "compile",
                                 "expected_steps"};

/// What a run trained: the attributes above that it has, and the global batch where it can be known.
std::map<std::string, std::string> trained(const metric::Run& run) {
  std::map<std::string, std::string> result;
  for (const char* const key : kTrained) {
    if (!run.attribute(key).empty()) result[key] = run.attribute(key);
  }
  std::int64_t product = 1;
  for (const char* const key : {"world_size", "batch_size", "gradient_accumulation_steps"}) {
    const auto value = parse_int(run.attribute(key));
    if (!value || __builtin_mul_overflow(product, *value, &product)) return result;
  }
  result["global batch"] = to_text(product);
  return result;
}

void add(std::vector<DigestClass>& classes, const Condition& condition, const std::string& digest,
         const std::map<std::string, std::string>& what) {
  auto found =
      std::find_if(classes.begin(), classes.end(), [&](const DigestClass& one) { return one.trained == what; });
  if (found == classes.end()) found = classes.insert(found, {what, 0, {}});
  ++found->runs;
  auto group = std::find_if(found->groups.begin(), found->groups.end(),
                            [&](const DigestGroup& one) { return one.digest == digest; });
  if (group == found->groups.end()) group = found->groups.insert(group, {digest, {}});
  if (group->members.empty() || group->members.back() != &condition) group->members.push_back(&condition);
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
  for (const stat::Member& member : condition.members) {
    const std::string digest = member.run->attribute("state_digest");
    if (digest.empty())
      all = false;
    else
      add(found.digests, condition, digest, trained(*member.run));
  }
  if (!all) found.without_digest.push_back(&condition);
}

/// The attributes on which the classes differ.
std::vector<std::string> unlike(const std::vector<DigestClass>& classes) {
  std::map<std::string, std::set<std::string>> values;
  for (const DigestClass& one : classes) {
    for (const auto& [key, value] : one.trained) values[key].insert(value);
  }
  std::vector<std::string> keys;
  for (const auto& [key, all] : values) {
    const bool everywhere = std::all_of(classes.begin(), classes.end(),
                                        [k = key](const DigestClass& one) { return one.trained.count(k) > 0; });
    if (all.size() > 1 || !everywhere) keys.push_back(key);
  }
  return keys;
}

using Curve = std::map<std::int64_t, double>;

Curve curve(const Condition& condition) {
  Curve result;
  const metric::Column* const steps = condition.curve ? condition.curve->find("step") : nullptr;
  const metric::Column* const losses = condition.curve ? condition.curve->find("loss") : nullptr;
  if (!steps || !losses || losses->type() != metric::Type::real || steps->type() != metric::Type::integer)
    return result;
  for (std::size_t row = 0; row < condition.curve->rows(); ++row) {
    if (!steps->absent(row) && !losses->absent(row)) result[steps->integers()[row]] = losses->reals()[row];
  }
  return result;
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

std::optional<Gap> largest_gap(const std::vector<const Condition*>& conditions, bool& equal) {
  std::vector<std::pair<const Condition*, Curve>> curves;
  for (const Condition* const condition : conditions) {
    Curve one = curve(*condition);
    if (!one.empty()) curves.emplace_back(condition, std::move(one));
  }
  equal = curves.size() >= 2;
  if (curves.size() < 2) return {};
  Gap gap;
  gap.relative = -1;
  bool parted = false;
  for (std::size_t i = 1; i < curves.size(); ++i) equal = equal && curves[i].second.size() == curves[0].second.size();
  for (const auto& [step, unused] : curves.front().second) {
    const bool shared =
        std::all_of(curves.begin(), curves.end(), [s = step](const auto& one) { return one.second.count(s) > 0; });
    if (!shared) {
      equal = false;
      continue;
    }
    ++gap.shared_steps;
    for (std::size_t i = 0; i < curves.size(); ++i) {
      for (std::size_t j = i + 1; j < curves.size(); ++j) {
        const double a = curves[i].second.at(step), b = curves[j].second.at(step);
        if (same_bits(a, b)) continue;
        equal = false;
        if (!parted) gap.first_step = step, parted = true;
        const double relative = std::abs(a - b) / std::min(std::abs(a), std::abs(b));
        // A difference that is not finite is larger than any that is.
        const bool larger = std::isfinite(relative) ? std::isfinite(gap.relative) && relative > gap.relative
                                                    : std::isfinite(gap.relative);
        if (larger) {
          const auto shared_steps = gap.shared_steps;
          const auto first = gap.first_step;
          gap = {curves[i].first, curves[j].first, step, a, b, relative, first, shared_steps};
        }
      }
    }
  }
  if (gap.shared_steps == 0) return {};
  if (!parted) gap.relative = 0;
  return gap;
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

bool Findings::digests_differ() const {
  return std::any_of(digests.begin(), digests.end(), [](const DigestClass& one) { return one.groups.size() > 1; });
}

bool Findings::digests_compared() const {
  return std::any_of(digests.begin(), digests.end(), [](const DigestClass& one) { return one.runs > 1; });
}

Findings findings(const metric::Store& store, const std::string& source) {
  Findings found;
  found.conditions = plot::conditions(store, source);
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
  if (found.digests.size() > 1) found.unlike = unlike(found.digests);
  found.gap = largest_gap(found.healthy, found.equal_losses);

  read_divergence(store, found);

  std::vector<Reading> times, memories, losses;
  for (const Condition* const one : found.healthy) {
    if (one->time_mean && std::isfinite(*one->time_mean)) {
      times.push_back(
          {one, *one->time_mean, one->time_low.value_or(plot::kNone), one->time_high.value_or(plot::kNone)});
    }
    // A peak is counted, not sampled: within one percent two conditions are no reason to choose.
    if (one->peak_mem) {
      const auto peak = static_cast<double>(*one->peak_mem);
      memories.push_back({one, peak, 0.995 * peak, 1.005 * peak});
    }
  }
  for (const Condition* const one : found.healthy) {
    if (!one->final_loss || !std::isfinite(*one->final_loss)) continue;
    stat::Sample finals;
    for (const stat::Member& member : one->members) {
      const auto& points = member.series.points;
      const auto last = std::find_if(points.rbegin(), points.rend(),
                                     [](const stat::Point& point) { return !metric::is_absent(point.loss); });
      if (last != points.rend()) finals.push_back(last->loss);
    }
    const stat::Interval interval =
        finals.size() > 1 ? stat::mean_interval(finals) : stat::Interval{plot::kNone, plot::kNone};
    losses.push_back({one, *one->final_loss, interval.low, interval.high});
  }
  found.loss = smallest(std::move(losses));
  found.time = smallest(std::move(times));
  found.memory = smallest(std::move(memories));
  return found;
}

}  // namespace zs::report
