// SPDX-License-Identifier: Apache-2.0
#include "stat/detail.hpp"

#include <algorithm>
#include <cmath>

#include "attribute/difference.hpp"
#include "base/number.hpp"
#include "stat/columns.hpp"
#include "stat/loss.hpp"
#include "stat/memory.hpp"

namespace zs::stat {
namespace {

using metric::absent_real;
using metric::is_absent;

/// A loss curve without its gaps.
struct MemberLosses {
  std::vector<std::int64_t> steps;
  Sample values;
};

MemberLosses losses(const Member& member) {
  MemberLosses found;
  std::int64_t count = 0;
  for (const Point& point : member.series.points) {
    ++count;
    if (is_absent(point.loss)) continue;
    found.steps.push_back(is_absent(point.step) ? count : point.step);
    found.values.push_back(point.loss);
  }
  return found;
}

struct Spreads {
  Interval mean, median;
};

/// The intervals of mean and median by the bootstrap. Of one group of very many values they are what the bootstrap
/// comes to (Efron and Tibshirani 1993, sections 5.3 and 13.3), and no rounds are drawn: of the mean the normal
/// interval, of the median the order statistics half a normal interval of ranks away from it.
Spreads spreads(const std::vector<Sample>& groups, std::uint64_t seed) {
  constexpr std::size_t kMany = 50'000;
  const bool many = groups.size() == 1 && groups[0].size() >= kMany;
  if (!many || std::any_of(groups[0].begin(), groups[0].end(), [](double value) { return !std::isfinite(value); }))
    return {bootstrap(groups, mean, seed), bootstrap(groups, median_in_place, seed)};
  constexpr double kNormal = 1.959964;  // the quantile at 0.975
  Sample values = groups[0];
  const double root = std::sqrt(static_cast<double>(values.size())), centre = mean(values);
  const double half = kNormal * deviation(values, Deviation::population) / root;
  const auto away = static_cast<std::ptrdiff_t>(std::lround(kNormal * root / 2));
  const auto at = [&](std::ptrdiff_t rank) {
    std::nth_element(values.begin(), values.begin() + rank, values.end());
    return values[static_cast<std::size_t>(rank)];
  };
  const auto last = static_cast<std::ptrdiff_t>(values.size() - 1);
  return {{centre - half, centre + half}, {at(last / 2 - away), at(last - last / 2 + away)}};
}

void write_spread_of_times(RowWriter& row, const Condition& condition, std::uint64_t seed) {
  Sample all;
  std::vector<Sample> groups;
  for (const Member& member : condition.members) {
    const Sample& seconds = member.timing.seconds;
    all.insert(all.end(), seconds.begin(), seconds.end());
    if (!seconds.empty()) groups.push_back(seconds);
  }
  const auto real = [&](const char* name, double value) { row.real(name, finite_or_absent(value), "s"); };
  const auto [of_mean, of_median] = spreads(groups, seed);
  real("time_mean_low", of_mean.low);
  real("time_mean_high", of_mean.high);
  real("time_median_low", of_median.low);
  real("time_median_high", of_median.high);
  real("time_mad", mad(all));
  real("time_min", quantile(all, 0));
  real("time_q10", quantile(all, 0.1));
  real("time_q90", quantile(all, 0.9));
  real("time_q99", quantile(all, 0.99));
  real("time_max", quantile(all, 1));
}

void write_counts(RowWriter& row, const Condition& condition) {
  std::size_t warmup = 0, marked = 0, removed = 0, replaced = 0;
  for (const Member& member : condition.members) {
    warmup += member.timing.warmup;
    marked += member.timing.marked;
    removed += member.timing.removed;
    replaced += member.series.replaced;
  }
  row.count("warmup_points", warmup);
  row.count("time_outliers", marked);
  row.count("time_removed", removed);
  row.count("replaced_points", replaced);
}

/// The mean over the runs, where every run that has points has a value.
double mean_of(const Sample& values, std::size_t runs) {
  return values.empty() || values.size() < runs ? absent_real() : mean(values);
}

void write_course(RowWriter& row, const Condition& condition, const DetailRule& rule) {
  Sample smooth, heights, finals, reached;
  for (const Member& member : condition.members) {
    const MemberLosses curve = losses(member);
    if (curve.values.empty()) continue;
    smooth.push_back(smoothed(curve.values).back());
    heights.push_back(mean_height(curve.steps, curve.values));
    finals.push_back(curve.values.back());
    const auto step = rule.target ? first_at_most(curve.steps, curve.values, *rule.target) : std::nullopt;
    if (step) reached.push_back(static_cast<double>(*step));
  }
  row.real("smoothed_loss", mean_of(smooth, 1), kLossUnit);
  row.real("loss_area", mean_of(heights, 1), kLossUnit);
  row.real("steps_to_target", mean_of(reached, finals.size()));
  row.real("final_loss_std", finals.size() < 2 ? absent_real() : deviation(finals), kLossUnit);
  const Interval interval = mean_interval(finals);
  row.real("final_loss_low", finite_or_absent(interval.low), kLossUnit);
  row.real("final_loss_high", finite_or_absent(interval.high), kLossUnit);
}

/// Tokens of one step, where all points agree on them.
double tokens_per_step(const Condition& condition) {
  double found = absent_real();
  for (const Member& member : condition.members) {
    for (const Point& point : member.series.points) {
      if (is_absent(point.tokens) || member.series.images) continue;
      if (!is_absent(found) && point.tokens != found) return absent_real();
      found = point.tokens;
    }
  }
  return found;
}

/// An attribute that all runs share as a number.
std::int64_t shared_integer(const Condition& condition, const std::string& key) {
  const auto first = parse_int(condition.members.front().run->attribute(key));
  for (const Member& member : condition.members) {
    if (parse_int(member.run->attribute(key)) != first) return metric::kAbsentInteger;
  }
  return first.value_or(metric::kAbsentInteger);
}

/// What must be alike for two conditions to be the same work on different numbers of ranks: all that sets how a step
/// computes, but what scales with the ranks.
attribute::Facts setup(const Condition& condition) {
  attribute::Facts facts = attribute::named(condition.members.front().run->attributes);
  std::erase_if(facts, [](const auto& fact) {
    const attribute::Attribute* const row = attribute::find(fact.first);
    if (!row || row->scaled || row->found) return true;
    return !row->work && row->role != attribute::Role::arithmetic && row->role != attribute::Role::layout;
  });
  return facts;
}

}  // namespace

void write_details(RowWriter& row, const Condition& condition, const DetailRule& rule) {
  write_spread_of_times(row, condition, rule.seed);
  write_counts(row, condition);
  write_course(row, condition, rule);
  row.rounded("tokens_per_step", tokens_per_step(condition), "");
  row.integer("world_size", shared_integer(condition, "world_size"));
  row.rounded("ideal_mem", ideal_state_bytes(*condition.members.front().run), "bytes");
}

void add_scaling(metric::Table& summary, const std::vector<Condition>& conditions) {
  std::vector<double> speeds = summary.find("tokens_per_second")->reals();
  if (const metric::Column* const images = summary.find("images_per_second")) {
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      if (is_absent(speeds[i])) speeds[i] = images->reals()[i];
    }
  }
  const std::vector<std::int64_t> ranks = summary.find("world_size")->integers();
  metric::Column efficiency("scaling_efficiency", "", metric::Type::real);
  const auto comparable = [&](std::size_t i) { return !is_absent(speeds[i]) && !is_absent(ranks[i]) && ranks[i] > 0; };
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    std::size_t base = i;
    bool several = false;
    for (std::size_t other = 0; other < conditions.size(); ++other) {
      if (!comparable(i) || !comparable(other) || setup(conditions[other]) != setup(conditions[i])) continue;
      several = several || ranks[other] != ranks[i];
      if (ranks[other] < ranks[base]) base = other;
    }
    const auto per_rank = [&](std::size_t which) { return speeds[which] / static_cast<double>(ranks[which]); };
    efficiency.reals().push_back(several ? per_rank(i) / per_rank(base) : absent_real());
  }
  summary.columns.push_back(std::move(efficiency));
}

}  // namespace zs::stat
