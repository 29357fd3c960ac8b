// SPDX-License-Identifier: Apache-2.0
// The figures that put results against what differs: ranks, revisions, the parameters of a sweep.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "plot/bars.hpp"
#include "plot/curve.hpp"
#include "plot/unit.hpp"

namespace zs::plot {
namespace {

/// Attributes that say where or when a run was, not how it was configured.
bool describes_configuration(const std::string& key) {
  static const std::set<std::string> kNot = {"source", "source_sha256", "exit_code", "exit_state", "command", "state_digest", "run_name", "run_id",
                                             "output_dir", "date", "experiment_date", "host", "log", "compile_time", "extra_opts", "master_port"};
  return kNot.count(key) == 0 && !key.starts_with("summary.") && !key.starts_with("wandb");
}

const std::map<std::string, std::string>& results() {
  static const std::map<std::string, std::string> all = {
      {"final_loss", "final loss (nats/token)"}, {"valid_loss", "validation loss (nats/token)"}, {"best_loss", "best loss (nats/token)"},
      {"mean_loss", "mean loss (nats/token)"},   {"time_mean", "mean iteration time (s)"},       {"peak_mem", "peak memory of a rank (bytes)"},
      {"tokens_per_second", "tokens (1/s)"}};
  return all;
}

double result(const Condition& condition, const std::string& name) {
  const auto real = [](const auto& value) { return value ? static_cast<double>(*value) : kNone; };
  if (name == "final_loss") return real(condition.final_loss);
  if (name == "valid_loss") return real(condition.valid_loss);
  if (name == "best_loss") return real(condition.best_loss);
  if (name == "mean_loss") return real(condition.mean_loss);
  if (name == "time_mean") return real(condition.time_mean);
  if (name == "peak_mem") return real(condition.peak_mem);
  return real(condition.tokens_per_second);
}

std::string result_text(double value, const std::string& name) {
  if (!std::isfinite(value)) return zs::to_text(value);
  if (name == "time_mean") return time_unit(value).text(value);
  if (name == "peak_mem") return bytes_unit(value).text(value);
  if (name == "tokens_per_second") return rate_unit(value).text(value);
  return to_rounded_text(value, 5);
}

/// Numbers by value, then words by letter.
bool before(const std::string& a, const std::string& b) {
  const auto x = parse_real(a), y = parse_real(b);
  if (x && y) return *x != *y ? *x < *y : a < b;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

/// The different values of an attribute, in order; a condition without it counts as "-".
std::vector<std::string> levels(const std::vector<Condition>& conditions, const std::string& key) {
  std::vector<std::string> all;
  for (const Condition& condition : conditions) {
    const std::string value = condition.attribute(key).empty() ? "-" : condition.attribute(key);
    if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
  }
  std::sort(all.begin(), all.end(), before);
  return all;
}

/// Checks that a key the user named is one of the runs' attributes.
void require_attribute(const std::vector<Condition>& conditions, const std::string& key) {
  std::set<std::string> known;
  for (const Condition& condition : conditions) {
    for (const stat::Member& member : condition.members) {
      for (const auto& [name, value] : member.run->attributes) known.insert(name);
    }
  }
  if (known.count(key) == 0) throw UsageError("no run has the attribute '" + key + "'" + did_you_mean(key, {known.begin(), known.end()}));
}

}  // namespace

std::vector<std::string> differing_attributes(const std::vector<Condition>& conditions) {
  std::set<std::string> keys, differing;
  for (const Condition& condition : conditions) {
    for (const stat::Member& member : condition.members) {
      for (const auto& [key, value] : member.run->attributes) keys.insert(key);
    }
  }
  for (const std::string& key : keys) {
    std::set<std::string> values;
    for (const Condition& condition : conditions) values.insert(condition.attribute(key));
    if (values.size() > 1 && describes_configuration(key)) differing.insert(key);
  }
  return {differing.begin(), differing.end()};
}

Figure scaling_figure(const std::vector<Condition>& conditions, const Options&) {
  struct Point {
    double ranks, rate;
  };
  // What a scaling study changes together with the ranks is not a reason for another curve.
  static const std::set<std::string> kScaled = {"world_size", "num_nodes", "gpus_per_node", "gradient_accumulation_steps", "batch_size", "expected_steps", "cpu_binding"};
  std::vector<std::string> keys;
  for (const std::string& key : differing_attributes(conditions)) {
    if (kScaled.count(key) == 0) keys.push_back(key);
  }
  std::vector<std::pair<std::string, std::vector<Point>>> curves;
  std::size_t without = 0;
  for (const Condition& condition : conditions) {
    const auto ranks = parse_real(condition.attribute("world_size"));
    if (!ranks || !condition.tokens_per_second || !std::isfinite(*condition.tokens_per_second) || condition.bad()) {
      ++without;
      continue;
    }
    std::string name;
    for (const std::string& key : keys) {
      const std::string value = condition.attribute(key);
      if (!value.empty()) name += (name.empty() ? "" : ", ") + key + " " + value;
    }
    if (name.empty()) name = "measured";
    const auto found = std::find_if(curves.begin(), curves.end(), [&](const auto& one) { return one.first == name; });
    (found != curves.end() ? found : curves.insert(curves.end(), {name, {}}))->second.push_back({*ranks, *condition.tokens_per_second});
  }
  std::set<double> counts;
  for (const auto& [name, points] : curves) {
    for (const Point& point : points) counts.insert(point.ranks);
  }
  if (counts.size() < 2) throw Error("scaling needs conditions with tokens per second at two numbers of ranks (attribute world_size) or more");
  Panel rate, share;
  rate.title = "Throughput", share.title = "Efficiency";
  rate.x_label = share.x_label = "ranks";
  rate.log_x = share.log_x = true;
  rate.x_ticks.assign(counts.begin(), counts.end());
  share.x_ticks = rate.x_ticks;
  rate.log_y = true;
  share.from_zero = true;
  rate.y_label = "tokens (1/s)";
  share.y_label = "throughput of a rank, of that at the fewest ranks (%)";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    auto& points = curves[i].second;
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.ranks < b.ranks; });
    Series rates, shares;
    rates.name = shares.name = curves[i].first;
    rates.colour = shares.colour = i;
    const double each = points.front().rate / points.front().ranks;
    for (const Point& point : points) {
      rates.x.push_back(point.ranks), rates.y.push_back(point.rate);
      shares.x.push_back(point.ranks), shares.y.push_back(100 * point.rate / point.ranks / each);
    }
    rate.series.push_back(std::move(rates));
    share.series.push_back(std::move(shares));
  }
  Series ideal;
  ideal.name = "ideal: 100 %";
  ideal.colour = 6;
  ideal.x = {*counts.begin(), *counts.rbegin()};
  ideal.y = {100, 100};
  share.series.push_back(std::move(ideal));
  if (without > 0) share.notes.push_back(counted(without, "condition") + " left out: failed, or without ranks or tokens");
  return {"Scaling", {std::move(rate), std::move(share)}, 2};
}

Figure revision_figure(const std::vector<Condition>& conditions, const Options& options) {
  Panel curves = loss_figure(conditions, options).panels.front();
  Panel loss = final_loss_panel(conditions), time = time_panel(conditions, options), memory = memory_panel(conditions);
  loss.title = "Final loss", time.title = "Iteration time", memory.title = "Peak memory", curves.title = "Training loss";
  return {"Comparison of revisions", {std::move(loss), std::move(time), std::move(memory), std::move(curves)}, 2};
}

Figure sweep_figure(const std::vector<Condition>& conditions, const Options& options) {
  std::string value = options.value;
  if (value.empty()) {
    value = std::any_of(conditions.begin(), conditions.end(), [](const Condition& c) { return c.valid_loss.has_value(); }) ? "valid_loss" : "final_loss";
  }
  const auto known = results().find(value);
  if (known == results().end()) {
    std::vector<std::string> names;
    for (const auto& [name, label] : results()) names.push_back(name);
    throw UsageError("a sweep cannot show '" + value + "'" + did_you_mean(value, names));
  }
  const bool high_is_best = value == "tokens_per_second";
  std::vector<std::string> keys = differing_attributes(conditions);
  for (const std::string& named : {options.rows, options.columns}) {
    if (!named.empty()) require_attribute(conditions, named);
    keys.erase(std::remove(keys.begin(), keys.end(), named), keys.end());
  }
  const auto next = [&](const std::string& named) {
    if (!named.empty() || keys.empty()) return named;
    const std::string key = keys.front();
    keys.erase(keys.begin());
    return key;
  };
  const std::string rows = next(options.rows), columns = next(options.columns);
  const auto better = [&](double a, double b) { return !std::isfinite(b) ? std::isfinite(a) : high_is_best ? a > b : a < b; };
  const Condition* best = nullptr;
  for (const Condition& condition : conditions) {
    const double now = result(condition, value);
    if (!condition.bad() && std::isfinite(now) && (!best || better(now, result(*best, value)))) best = &condition;
  }
  if (!best) throw Error("no condition that did not fail has a " + value);

  Panel panel;
  if (columns.empty()) {  // one parameter, or none that is known: a bar for each condition
    panel.x_label = known->second;
    for (const Condition& condition : conditions) {
      Bar bar;
      bar.name = rows.empty() ? condition.name : rows + " " + condition.attribute(rows);
      bar.colour = &condition == best ? 0 : 6;
      bar.failed = condition.bad();
      bar.value = result(condition, value);
      bar.label = condition.bad() ? condition.status : std::isfinite(bar.value) ? result_text(bar.value, value) : "no " + value;
      if (&condition == best) bar.label += "  best";
      panel.bars.push_back(std::move(bar));
    }
    return {"Sweep: " + known->second, {std::move(panel)}};
  }
  panel.rows = levels(conditions, rows);
  panel.columns = levels(conditions, columns);
  panel.x_label = columns, panel.y_label = rows;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<const Condition*>> cells;
  const auto index = [](const std::vector<std::string>& all, std::string one) {
    if (one.empty()) one = "-";
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), one) - all.begin());
  };
  bool several = false;
  for (const Condition& condition : conditions) {
    auto& cell = cells[{index(panel.rows, condition.attribute(rows)), index(panel.columns, condition.attribute(columns))}];
    cell.push_back(&condition);
    several = several || cell.size() > 1;
  }
  for (const auto& [place, members] : cells) {
    Cell cell;
    cell.row = place.first, cell.column = place.second;
    std::string failed;
    for (const Condition* const condition : members) {
      if (condition->bad()) failed = condition->status;
      else if (better(result(*condition, value), cell.value)) cell.value = result(*condition, value);
      cell.best = cell.best || condition == best;
    }
    cell.label = std::isfinite(cell.value) ? result_text(cell.value, value) : failed.empty() ? "-" : failed;
    panel.cells.push_back(std::move(cell));
  }
  panel.notes.push_back("best: " + best->name + " (" + result_text(result(*best, value), value) + ")");
  if (several) {
    std::string others;
    for (const std::string& key : keys) others += (others.empty() ? "" : ", ") + key;
    panel.notes.push_back("each cell: the best over " + (others.empty() ? "its conditions" : others));
  }
  return {"Sweep: " + known->second, {std::move(panel)}};
}

}  // namespace zs::plot
