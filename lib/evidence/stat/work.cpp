// SPDX-License-Identifier: Apache-2.0
#include "stat/work.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "attribute/difference.hpp"
#include "base/number.hpp"
#include "metric/table.hpp"
#include "stat/condition.hpp"
#include "stat/row.hpp"
#include "stat/sample.hpp"
#include "stat/series.hpp"
#include "stat/steps.hpp"

namespace zs::stat {
namespace {

// The curves of a condition over its steps, for lines with a band.

using metric::absent_real;
using metric::is_absent;

struct Step {
  Sample losses, valid_losses, times;
  std::int64_t runs = 0;
};

void collect(Sample& into, double value) {
  if (!is_absent(value)) into.push_back(value);
}

/// The minimum (or maximum) of values; nan if any is nan.
double extreme(const Sample& values, bool largest) {
  if (values.empty()) return metric::absent_real();
  double found = values.front();
  for (const double value : values) {
    if (std::isnan(value)) return value;
    found = largest ? std::max(found, value) : std::min(found, value);
  }
  return found;
}

/// One row per step that any run of the condition logged, in order. Columns: step, loss (mean over the runs that have
/// the step), loss_min, loss_max, iteration_time (mean), valid_loss (mean), runs, loss_smooth. Points without a step
/// are numbered from 1.
metric::Table curve(const Condition& condition) {
  std::map<std::pair<std::int64_t, std::int64_t>, Step> steps;
  for (const Member& member : condition.members) {
    std::int64_t count = 0;
    for (const Point& point : member.series.points) {
      Step& step = steps[place_of(point, ++count)];
      collect(step.losses, point.loss);
      collect(step.valid_losses, point.valid_loss);
      collect(step.times, point.time);
      ++step.runs;
    }
  }
  using metric::Type;
  metric::Table table;
  table.columns = {{"step", "", Type::integer},         {"loss", kLossUnit, Type::real},
                   {"loss_min", kLossUnit, Type::real}, {"loss_max", kLossUnit, Type::real},
                   {"iteration_time", "s", Type::real}, {"valid_loss", kLossUnit, Type::real},
                   {"runs", "", Type::integer},         {"loss_smooth", kLossUnit, Type::real}};
  for (const auto& [place, step] : steps) {
    table.columns[0].integers().push_back(place.second);
    table.columns[1].reals().push_back(mean_of(step.losses));
    table.columns[2].reals().push_back(extreme(step.losses, false));
    table.columns[3].reals().push_back(extreme(step.losses, true));
    table.columns[4].reals().push_back(mean_of(step.times));
    table.columns[5].reals().push_back(mean_of(step.valid_losses));
    table.columns[6].integers().push_back(step.runs);
  }
  Sample losses;
  for (const double loss : table.columns[1].reals()) collect(losses, loss);
  const Sample smooth = smoothed(losses);
  auto next = smooth.begin();
  for (const double loss : table.columns[1].reals()) {
    table.columns[7].reals().push_back(is_absent(loss) ? metric::absent_real() : *next++);
  }
  return table;
}

struct Spreads {
  Interval mean, median;
};

/// The intervals of mean and median by the bootstrap, over the runs if there are several: of the mean over their means,
/// as time_mean has it, of the median over their points. Of one group of very many values they are what the bootstrap
/// comes to (Efron and Tibshirani 1993, sections 5.3 and 13.3), and no rounds are drawn: of the mean the normal
/// interval, of the median the order statistics half a normal interval of ranks away from it.
Spreads spreads(const std::vector<Sample>& groups, const Sample& means, std::uint64_t seed) {
  constexpr std::size_t kMany = 50'000;
  const bool many = groups.size() == 1 && groups[0].size() >= kMany;
  if (!many || std::ranges::any_of(groups[0], [](double value) { return !std::isfinite(value); }))
    return {bootstrap({means}, mean, seed), bootstrap(groups, median_in_place, seed)};
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

/// The facts that must be equal for two conditions to be the same work on different numbers of ranks: everything that
/// determines a step's computation, except what scales with the ranks.
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

Work::Work(const Condition& condition, const SummaryRule& rule)
    : condition(condition), rule(rule), curve(stat::curve(condition)) {
  std::vector<Sample> groups;
  for (const Member& member : condition.members) {
    const std::vector<Point>& recorded = member.series.points;
    points += recorded.size();
    last_step = std::max(last_step, stat::last_step(*member.run, member.series));
    if (!member.timing.seconds.empty()) groups.push_back(member.timing.seconds);
    if (const double all_steps = time_of_all_steps(member.series); !is_absent(all_steps))
      durations.push_back(all_steps);
    Sample series_losses;
    std::vector<std::int64_t> steps;
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      if (recorded[i].timed && !is_absent(recorded[i].tokens) && !member.series.images)
        rates.push_back(recorded[i].tokens / recorded[i].time);
      if (is_absent(recorded[i].loss)) continue;
      series_losses.push_back(recorded[i].loss);
      steps.push_back(is_absent(recorded[i].step) ? static_cast<std::int64_t>(i + 1) : recorded[i].step);
    }
    if (const double valid = last_of(member.series, &Point::valid_loss); !is_absent(valid)) valids.push_back(valid);
    if (series_losses.empty()) continue;
    firsts.push_back(series_losses.front());
    finals.push_back(series_losses.back());
    smoothed.push_back(stat::smoothed(series_losses).back());
    heights.push_back(mean_height(steps, series_losses));
    const auto step = rule.target ? first_at_most(steps, series_losses, *rule.target) : std::nullopt;
    if (step) reached.push_back(static_cast<double>(*step));
    losses.insert(losses.end(), series_losses.begin(), series_losses.end());
  }
  for (const Sample& group : groups) {
    times.insert(times.end(), group.begin(), group.end());
    means.push_back(mean(group));
  }
  if (groups.size() == 1) means = times;
  const Spreads rounds = spreads(groups, means, rule.seed);
  mean_rounds = rounds.mean, median_rounds = rounds.median;
}

const Member& Work::worst() const {
  return *std::ranges::max_element(
      condition.members, [](const Member& a, const Member& b) { return a.judgement.status < b.judgement.status; });
}

void find_efficiencies(std::vector<Work>& works) {
  struct Scale {
    double speed;
    std::int64_t ranks;
    attribute::Facts setup;
  };
  std::vector<Scale> scales;
  for (const Work& work : works) {
    const double tokens = rate(work.condition, false);
    const std::int64_t ranks = shared_integer(work.condition, "world_size");
    scales.push_back(
        {is_absent(tokens) ? rate(work.condition, true) : tokens, is_absent(ranks) ? 0 : ranks, setup(work.condition)});
  }
  const auto per_rank = [](const Scale& one) { return one.speed / static_cast<double>(one.ranks); };
  for (std::size_t i = 0; i < works.size(); ++i) {
    const Scale& scale = scales[i];
    const Scale* base = &scale;
    bool several = false;
    for (const Scale& other : scales) {
      const bool comparable = !is_absent(scale.speed) && !is_absent(other.speed) && scale.ranks > 0 && other.ranks > 0;
      if (!comparable || other.setup != scale.setup) continue;
      several = several || other.ranks != scale.ranks;
      if (other.ranks < base->ranks) base = &other;
    }
    if (several) works[i].efficiency = per_rank(scale) / per_rank(*base);
  }
}

double or_absent(const Sample& values, double value) { return values.empty() ? absent_real() : value; }

double finite_or_absent(double value) { return std::isnan(value) ? absent_real() : value; }

double mean_of(const Sample& values, std::size_t fewest) {
  return values.empty() || values.size() < fewest ? absent_real() : mean(values);
}

std::int64_t rounded(double value) { return is_absent(value) ? metric::kAbsentInteger : std::llround(value); }

double largest(const Condition& condition, double Series::*member) {
  double found = absent_real();
  for (const Member& one : condition.members) {
    const double value = one.series.*member;
    if (!is_absent(value) && (is_absent(found) || value > found)) found = value;
  }
  return found;
}

double rate(const Condition& condition, bool images) {
  double count = 0, seconds = 0;
  Sample logged;  // what a run says itself
  for (const Member& member : condition.members) {
    if (const double value = images ? kNan : logged_rate(*member.run, true); std::isfinite(value))
      logged.push_back(value);
  }
  if (!logged.empty() && logged.size() == condition.members.size()) return mean_of(logged);
  for (const Member& member : condition.members) {
    if (member.series.images != images) continue;
    count += member.timing.tokens;
    seconds += member.timing.token_seconds;
  }
  return seconds > 0 ? count / seconds : mean_of(logged);
}

double logged_rate(const metric::Run& run, bool tokens) {
  for (const char* const name : {"samples_per_second", "summary.train_samples_per_second"}) {
    const auto value = tokens ? std::nullopt : parse_real(run.attribute(name));
    if (value) return *value;
  }
  Sample rates;
  const metric::Column* column = run.records.find(tokens ? "tokens_per_second" : "samples_per_second");
  double ranks = 1;
  if (tokens && !column) {
    column = run.records.find("tokens_per_second_per_rank");
    ranks = parse_real(run.attribute("world_size")).value_or(kNan);
  }
  for (std::size_t row = 0; column && column->type() != metric::Type::text && row < column->size(); ++row) {
    if (!column->absent(row) && std::isfinite(column->real(row))) rates.push_back(column->real(row));
  }
  return rates.empty() ? kNan : median(rates) * ranks;
}

double comm_bytes(const Condition& condition) {
  Sample bytes;
  for (const Member& member : condition.members) {
    for (const Point& point : member.series.points) {
      if (!is_absent(point.comm_bytes)) bytes.push_back(point.comm_bytes);
    }
  }
  return or_absent(bytes, median(bytes));
}

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

std::string state_digest(const Condition& condition) {
  const std::string first = condition.members.front().run->attribute("state_digest");
  const bool same = std::ranges::all_of(
      condition.members, [&](const Member& member) { return member.run->attribute("state_digest") == first; });
  return same ? first : "";
}

std::string reason(const Work& work) {
  const Member& member = work.worst();
  const bool several = work.condition.members.size() > 1 && !member.judgement.reason.empty();
  return (several ? member.run->name + ": " : "") + member.judgement.reason;
}

std::int64_t shared_integer(const Condition& condition, const std::string& key) {
  const auto first = parse_int(condition.members.front().run->attribute(key));
  for (const Member& member : condition.members) {
    if (parse_int(member.run->attribute(key)) != first) return metric::kAbsentInteger;
  }
  return first.value_or(metric::kAbsentInteger);
}

double last_of(const Series& series, double Point::*value) {
  const auto last = std::find_if(series.points.rbegin(), series.points.rend(),
                                 [&](const Point& point) { return !is_absent(point.*value); });
  return last == series.points.rend() ? absent_real() : (*last).*value;
}

}  // namespace zs::stat
