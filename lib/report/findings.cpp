// SPDX-License-Identifier: Apache-2.0
#include "report/findings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::report {
namespace {

/// What must be equal for two runs to train the same thing. Stage, ranks, compiled schedule and offload may differ:
/// they must not change a bit. The number of ranks times micro-batch times accumulation counts as a product.
constexpr std::array kTrained = {"model.name", "dataset", "dataset_percentage", "num_layers", "dtype", "seq_length", "seed",
                                 "learning_rate", "max_grad_norm", "compile", "expected_steps"};

std::string global_batch(const Condition& condition) {
  std::int64_t product = 1;
  for (const char* key : {"world_size", "batch_size", "gradient_accumulation_steps"}) {
    const auto value = parse_int(condition.attribute(key));
    if (!value) return "";
    product *= *value;
  }
  return to_text(product);
}

std::vector<std::string> unlike(const std::vector<const Condition*>& conditions) {
  std::vector<std::string> keys;
  const auto differs = [&](const auto& get) {
    std::string seen;
    for (const Condition* const condition : conditions) {
      const std::string value = get(*condition);
      if (value.empty()) continue;
      if (!seen.empty() && seen != value) return true;
      seen = value;
    }
    return false;
  };
  for (const char* const key : kTrained) {
    if (differs([&](const Condition& c) { return c.attribute(key); })) keys.emplace_back(key);
  }
  if (differs(global_batch)) keys.emplace_back("global batch");
  return keys;
}

using Curve = std::map<std::int64_t, double>;

Curve curve(const Condition& condition) {
  Curve result;
  const metric::Column* const steps = condition.curve ? condition.curve->find("step") : nullptr;
  const metric::Column* const losses = condition.curve ? condition.curve->find("loss") : nullptr;
  if (!steps || !losses || losses->type() != metric::Type::real || steps->type() != metric::Type::integer) return result;
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
    const bool shared = std::all_of(curves.begin(), curves.end(), [s = step](const auto& one) { return one.second.count(s) > 0; });
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
        const bool larger = std::isfinite(relative) ? std::isfinite(gap.relative) && relative > gap.relative : std::isfinite(gap.relative);
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

struct Reading {
  const Condition* condition;
  double value, low, high;
};

Best smallest(std::vector<Reading> readings) {
  Best best;
  best.compared = readings.size();
  if (readings.empty()) return best;
  std::stable_sort(readings.begin(), readings.end(), [](const Reading& a, const Reading& b) { return a.value < b.value; });
  best.winner = readings[0].condition;
  if (readings.size() > 1) best.next = readings[1].condition;
  best.intervals = std::all_of(readings.begin(), readings.end(), [](const Reading& one) { return std::isfinite(one.low) && std::isfinite(one.high); });
  for (std::size_t i = 1; i < readings.size(); ++i) {
    if (!(readings[0].high < readings[i].low)) best.level.push_back(readings[i].condition);
  }
  return best;
}

}  // namespace

Findings findings(const metric::Store& store, const std::string& source) {
  Findings found;
  found.conditions = plot::conditions(store, source);
  if (found.conditions.empty()) throw Error(source, 0, "the summary has no condition");
  std::vector<const Condition*> with_digest;
  for (const Condition& condition : found.conditions) {
    if (condition.bad()) {
      found.bad.push_back(&condition);
      continue;
    }
    found.healthy.push_back(&condition);
    if (condition.status != "COMPLETE") found.unknown.push_back(&condition);
    if (condition.state_digest.empty()) {
      found.without_digest.push_back(&condition);
      continue;
    }
    with_digest.push_back(&condition);
    const auto group = std::find_if(found.digests.begin(), found.digests.end(),
                                    [&](const DigestGroup& one) { return one.digest == condition.state_digest; });
    if (group != found.digests.end()) group->members.push_back(&condition);
    else found.digests.push_back({condition.state_digest, {&condition}});
  }
  if (found.digests.size() > 1) found.unlike = unlike(with_digest);
  found.gap = largest_gap(found.healthy, found.equal_losses);

  std::vector<Reading> times, memories;
  for (const Condition* const one : found.healthy) {
    if (one->time_mean && std::isfinite(*one->time_mean)) {
      times.push_back({one, *one->time_mean, one->time_low.value_or(plot::kNone), one->time_high.value_or(plot::kNone)});
    }
    // A peak is counted, not sampled: within one percent two conditions are no reason to choose.
    if (one->peak_mem) {
      const auto peak = static_cast<double>(*one->peak_mem);
      memories.push_back({one, peak, 0.995 * peak, 1.005 * peak});
    }
  }
  found.time = smallest(std::move(times));
  found.memory = smallest(std::move(memories));
  return found;
}

}  // namespace zs::report
