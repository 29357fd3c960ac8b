// SPDX-License-Identifier: Apache-2.0
#include "stat/summary.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"
#include "stat/columns.hpp"
#include "stat/curve.hpp"
#include "stat/divergence.hpp"
#include "stat/outlier.hpp"
#include "stat/row.hpp"
#include "stat/run_table.hpp"

namespace zs::stat {
namespace {

using metric::absent_real;
using metric::is_absent;

double or_absent(const Sample& values, double value) { return values.empty() ? absent_real() : value; }

/// What the losses of a condition come to. With several runs first and final are means over the runs.
void write_losses(RowWriter& row, const Condition& condition) {
  Sample firsts, finals, valids, all;
  std::int64_t last = metric::kAbsentInteger;
  for (const Member& member : condition.members) {
    Sample losses;
    double valid = absent_real();
    for (const Point& point : member.series.points) {
      if (!is_absent(point.loss)) losses.push_back(point.loss);
      if (!is_absent(point.valid_loss)) valid = point.valid_loss;
    }
    last = std::max(last, last_step(*member.run, member.series));
    if (!is_absent(valid)) valids.push_back(valid);
    if (losses.empty()) continue;
    firsts.push_back(losses.front());
    finals.push_back(losses.back());
    all.insert(all.end(), losses.begin(), losses.end());
  }
  double best = absent_real();
  for (const double loss : all) {
    if (is_absent(best) || std::isnan(best) || loss < best) best = loss;
  }
  row.real("first_loss", or_absent(firsts, mean(firsts)), kLossUnit);
  row.real("final_loss", or_absent(finals, mean(finals)), kLossUnit);
  row.real("best_loss", best, kLossUnit);
  row.real("mean_loss", or_absent(all, mean(all)), kLossUnit);
  row.integer("final_step", last);
  row.real("valid_loss", or_absent(valids, mean(valids)), kLossUnit);
}

/// With several runs the mean is that of the runs' means, and its interval comes from their spread: points of one run
/// are not independent repetitions.
void write_times(RowWriter& row, const Condition& condition, Deviation kind) {
  Sample all, means;
  for (const Member& member : condition.members) {
    const Sample& seconds = member.timing.seconds;
    all.insert(all.end(), seconds.begin(), seconds.end());
    if (!seconds.empty()) means.push_back(mean(seconds));
  }
  const Sample& units = means.size() > 1 ? means : all;
  const Interval interval = mean_interval(units);
  row.count("time_points", all.size());
  row.real("time_mean", or_absent(units, mean(units)), "s");
  row.real("time_median", or_absent(all, median(all)), "s");
  row.real("time_std", all.size() < 2 ? absent_real() : deviation(all, kind), "s");
  row.real("time_low", finite_or_absent(interval.low), "s");
  row.real("time_high", finite_or_absent(interval.high), "s");
}

double largest(const Condition& condition, double Series::*member) {
  double found = absent_real();
  for (const Member& one : condition.members) {
    const double value = one.series.*member;
    if (!is_absent(value) && (is_absent(found) || value > found)) found = value;
  }
  return found;
}

/// Tokens in a second, or images: of the runs that count them.
double rate(const Condition& condition, bool images) {
  double count = 0, seconds = 0;
  for (const Member& member : condition.members) {
    if (member.series.images != images) continue;
    count += member.timing.tokens;
    seconds += member.timing.token_seconds;
  }
  return seconds > 0 ? count / seconds : absent_real();
}

bool counts_images(const std::vector<Condition>& conditions) {
  return std::any_of(conditions.begin(), conditions.end(), [](const Condition& condition) {
    return std::any_of(condition.members.begin(), condition.members.end(),
                       [](const Member& member) { return member.series.images; });
  });
}

/// Writes the losses of a summary in the unit of its runs.
void name_loss_unit(metric::Store& store, const std::string& unit) {
  const auto name = [&](metric::Table& table) {
    for (metric::Column& column : table.columns) {
      if (column.unit == kLossUnit) column.unit = unit;
    }
  };
  name(*store.summary);
  for (auto* const tables : {&store.curves, &store.tables}) {
    for (auto& [key, table] : *tables) name(table);
  }
}

/// Bytes that a rank sends in a step: the median over the points, since a step that evaluates or saves sends more.
double comm_bytes(const Condition& condition) {
  Sample bytes;
  for (const Member& member : condition.members) {
    for (const Point& point : member.series.points) {
      if (!is_absent(point.comm_bytes)) bytes.push_back(point.comm_bytes);
    }
  }
  return or_absent(bytes, median(bytes));
}

/// The digest that all runs ended with, or "" where they differ or one has none.
std::string digest(const Condition& condition) {
  const std::string first = condition.members.front().run->attribute("state_digest");
  const bool same = std::all_of(condition.members.begin(), condition.members.end(),
                                [&](const Member& member) { return member.run->attribute("state_digest") == first; });
  return same ? first : "";
}

const Member& worst(const Condition& condition) {
  return *std::max_element(condition.members.begin(), condition.members.end(),
                           [](const Member& a, const Member& b) { return a.judgement.status < b.judgement.status; });
}

std::string reason(const Condition& condition) {
  const Member& member = worst(condition);
  const bool several = condition.members.size() > 1 && !member.judgement.reason.empty();
  return (several ? member.run->name + ": " : "") + member.judgement.reason;
}

void write_row(RowWriter& row, const Condition& condition, const SummaryRule& rule, bool images) {
  std::size_t points = 0;
  for (const Member& member : condition.members) points += member.series.points.size();
  row.text("condition", condition.name);
  row.count("runs", condition.members.size());
  row.count("points", points);
  row.text("status", std::string(name(worst(condition).judgement.status)));
  write_losses(row, condition);
  write_times(row, condition, rule.deviation);
  row.rounded("peak_mem", largest(condition, &Series::peak_mem), "bytes");
  row.rounded("alloc_mem", largest(condition, &Series::alloc_mem), "bytes");
  row.real("tokens_per_second", rate(condition, false), "1/s");
  if (images) row.real("images_per_second", rate(condition, true), "1/s");
  row.rounded("comm_bytes", comm_bytes(condition), "bytes");
  row.text("state_digest", digest(condition));
  row.text("reason", reason(condition));
  write_details(row, condition, rule.detail);
  write_columns(row, condition, rule.columns);
}

/// What was left out at the start, in words, and a warning for every run that had fewer points than asked.
std::string warmup_note(const std::vector<Condition>& conditions, const TimingRule& rule,
                        std::vector<std::string>& warnings) {
  const std::size_t usual = rule.warmup.value_or(kWarmup);
  const std::string asked = rule.find_warmup ? "auto" : std::to_string(usual);
  std::string used;
  for (const Condition& condition : conditions) {
    for (const Member& member : condition.members) {
      const Timing& timing = member.timing;
      if (timing.given == 0 || (!rule.find_warmup && timing.warmup == usual)) continue;
      const std::string counts = std::to_string(timing.warmup) + " of " + std::to_string(timing.given);
      used += (used.empty() ? "" : ", ") + member.run->name + " " + counts;
      if (timing.asked == timing.warmup) continue;
      warnings.push_back("run '" + member.run->name + "' has only " + std::to_string(timing.given) +
                         " timed points: warm-up of " + std::to_string(timing.asked) + " cut to " +
                         std::to_string(timing.warmup));
    }
  }
  const bool own = !rule.warmup && !rule.find_warmup && !used.empty();
  return asked + (used.empty() ? "" : (own ? " or the runs' own; used: " : " asked; used: ") + used);
}

/// Which timings were left out, in words, and a warning where there were any.
std::string removed_note(const std::vector<Condition>& conditions, const TimingRule& rule,
                         std::vector<std::string>& warnings) {
  std::size_t removed = 0, given = 0;
  for (const Condition& condition : conditions) {
    for (const Member& member : condition.members) {
      removed += member.timing.removed;
      given += member.timing.given - member.timing.warmup;
    }
  }
  const std::string counts = std::to_string(removed) + " of " + std::to_string(given);
  if (removed > 0) warnings.push_back(counts + " timings left out as outliers");
  return (rule.outliers == Outliers::above_p99 ? "p99: " : "mad: ") + counts + " timings left out";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

}  // namespace

Summary summarize(metric::Store store, const SummaryRule& rule) {
  if (store.runs.empty()) throw Error("no runs in the input: nothing to aggregate");
  std::vector<const metric::Run*> runs;
  for (const metric::Run& run : store.runs) runs.push_back(&run);
  for (const std::string& name : rule.columns) require_column(runs, name);
  const std::vector<Condition> all = conditions(store, rule.by, rule.timing);
  Summary made;
  metric::Table table;
  RowWriter row(table);
  const bool images = counts_images(all);
  for (const Condition& condition : all) {
    write_row(row, condition, rule, images);
    metric::Table course = curve(condition);
    row.real("loss_spread", spread(course), kLossUnit);
    made.store.curves[condition.name] = std::move(course);
  }
  add_scaling(table, all);
  made.store.tables["runs"] = run_table(all);
  made.store.tables["divergence"] = divergence(all, made.store.curves);
  if (metric::Table unlike = outliers(all); unlike.rows() > 0) made.store.tables["outliers"] = std::move(unlike);
  if (!rule.by.empty()) made.store.attributes["by"] = joined(rule.by);
  if (!rule.columns.empty()) made.store.attributes["columns"] = joined(rule.columns);
  if (rule.timing.outliers != Outliers::keep)
    made.store.attributes["outliers"] = removed_note(all, rule.timing, made.warnings);
  if (rule.detail.target) made.store.attributes["target"] = to_text(*rule.detail.target);
  made.store.attributes["seed"] = to_text(static_cast<std::int64_t>(rule.detail.seed));
  made.store.attributes["warmup"] = warmup_note(all, rule.timing, made.warnings);
  made.store.summary = std::move(table);
  name_loss_unit(made.store, loss_unit(all));
  made.store.runs = std::move(store.runs);
  return made;
}

}  // namespace zs::stat
