// SPDX-License-Identifier: Apache-2.0
#include "stat/run_table.hpp"

#include <algorithm>

#include "stat/row.hpp"

namespace zs::stat {
namespace {

double final_loss(const Series& series) {
  const auto last = std::find_if(series.points.rbegin(), series.points.rend(),
                                 [](const Point& point) { return !metric::is_absent(point.loss); });
  return last == series.points.rend() ? metric::absent_real() : last->loss;
}

}  // namespace

metric::Table run_table(const std::vector<Condition>& conditions) {
  metric::Table table;
  RowWriter row(table);
  for (const Condition& condition : conditions) {
    for (const Member& member : condition.members) {
      const Timing& timing = member.timing;
      const Sample& seconds = timing.seconds;
      const auto time = [&](const char* column, double value) {
        row.real(column, seconds.empty() ? metric::absent_real() : value, "s");
      };
      row.text("condition", condition.name);
      row.text("run", member.run->name);
      row.text("status", std::string(name(member.judgement.status)));
      row.text("reason", member.judgement.reason);
      row.count("points", member.series.points.size());
      row.count("replaced_points", member.series.replaced);
      row.real("final_loss", final_loss(member.series), kLossUnit);
      row.rounded("peak_mem", member.series.peak_mem, "bytes");
      row.count("time_given", timing.given);
      row.count("warmup_points", timing.warmup);
      row.count("time_outliers", timing.marked);
      row.count("time_removed", timing.removed);
      row.count("time_points", seconds.size());
      time("time_mean", mean(seconds));
      time("time_median", median(seconds));
      time("time_min", quantile(seconds, 0));
      time("time_max", quantile(seconds, 1));
    }
  }
  return table;
}

}  // namespace zs::stat
