// SPDX-License-Identifier: Apache-2.0
// What came out: loss, time and memory, each with its table, its figure and the sentence that the data allow.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "plot/figures.hpp"
#include "report/batch.hpp"
#include "summary/unit.hpp"

namespace zs::report {
namespace {

Cell nothing() { return {Text("-")}; }
Cell status_cell(const Condition& condition) {
  return {condition.bad() ? Text(bad(condition.status)) : Text(condition.status)};
}
Cell name_cell(const Condition& condition, bool with_status = true) {
  Text text = code(condition.name);
  if (condition.bad() && with_status) text += Text(" ") + Text(bad(condition.status));
  return {std::move(text), static_cast<double>(condition.place)};
}

/// Builds tables column by column, leaving out those that no condition has a value for.
class GridMaker {
 public:
  GridMaker(const Findings& found, Tracer& tracer) : found_(found), tracer_(tracer) {
    grid_.header = {"condition"};
    grid_.numeric = {false};
    for (const Condition& condition : found.conditions) grid_.rows.push_back({name_cell(condition)});
  }

  template <typename CellOf>
  void column(const std::string& title, bool numeric, const CellOf& cell_of) {
    grid_.header.push_back(title);
    grid_.numeric.push_back(numeric);
    for (std::size_t i = 0; i < found_.conditions.size(); ++i) grid_.rows[i].push_back(cell_of(found_.conditions[i]));
  }

  /// A column of the summary, traced. `read` gives an optional; `print` turns a value into words.
  template <typename Read, typename Print>
  void number(const std::string& title, const std::string& column_name, const Read& read, const Print& print) {
    if (std::none_of(found_.conditions.begin(), found_.conditions.end(),
                     [&](const Condition& c) { return read(c).has_value(); }))
      return;
    column(title, true, [&](const Condition& condition) {
      const auto value = read(condition);
      if (!value) return nothing();
      const auto real = static_cast<double>(*value);
      return Cell{Text(tracer_.number(condition, column_name, real, print(real))), real};
    });
  }

  Grid take() { return std::move(grid_); }

 private:
  const Findings& found_;
  Tracer& tracer_;
  Grid grid_;
};

std::string whole(double value) { return to_text(static_cast<std::int64_t>(value)); }

/// The largest of a member over the conditions, for the unit of a column; 0 when none has it.
template <typename Member>
double largest(const Findings& found, Member member) {
  double result = 0;
  for (const Condition& condition : found.conditions) {
    if (condition.*member && std::isfinite(static_cast<double>(*(condition.*member)))) {
      result = std::max(result, static_cast<double>(*(condition.*member)));
    }
  }
  return result;
}

}  // namespace

Text loss_sentence(const Findings& found) {
  const Losses& all = found.losses;
  if (all.pairs == 0) return "Losses cannot be compared: no two conditions that did not fail share a step with a loss.";
  const std::string but = all.beside.empty() ? "." : "; what differs is " + all.beside + ".";
  if (all.equal)
    return "The loss curves are equal at all " + counted(all.fewest_steps, "logged step") + ", as logged" + but;
  if (!all.largest) return "The loss curves are equal at the steps that two of them share.";
  Text text = "The losses first differ at step " + to_text(*all.first_step) + "; ";
  const std::string step = to_text(all.largest->step);
  if (!std::isfinite(all.largest->difference)) return text += "at step " + step + " one of them is not finite.";
  return text += "the largest difference at one step is " + loss_text(all.largest->difference) + " nats/token (step " +
                 step + (std::isfinite(all.largest->relative) ? ", " + percent(all.largest->relative) : "") + ").";
}

Section loss_section(const Findings& found, Tracer& tracer) {
  Section section{"Loss", {}};
  section.blocks.emplace_back(Paragraph{loss_sentence(found)});
  GridMaker maker(found, tracer);
  maker.number(
      "points", "points", [](const Condition& c) { return c.points; }, whole);
  maker.number(
      "first", "first_loss", [](const Condition& c) { return c.first_loss; }, loss_text);
  maker.number(
      "final", "final_loss", [](const Condition& c) { return c.final_loss; }, loss_text);
  maker.number(
      "best", "best_loss", [](const Condition& c) { return c.best_loss; }, loss_text);
  maker.number(
      "mean", "mean_loss", [](const Condition& c) { return c.mean_loss; }, loss_text);
  maker.number(
      "validation", "valid_loss", [](const Condition& c) { return c.valid_loss; }, loss_text);
  section.blocks.emplace_back(maker.take());
  if (std::any_of(found.conditions.begin(), found.conditions.end(),
                  [](const Condition& c) { return c.curve != nullptr; })) {
    section.blocks.emplace_back(Picture{"loss_comparison", "training loss by step, one curve per condition",
                                        plot::loss_figure(found.conditions)});
  } else {
    section.blocks.emplace_back(Paragraph{"The summary has no loss curve."});
  }
  return section;
}

Text time_sentence(const Findings& found) {
  const Best& time = found.time;
  if (time.compared == 0) return "No condition that did not fail has an iteration time.";
  const summary::Unit unit = summary::time_unit(*time.winner->time_mean);
  Text mean = code(time.winner->name) + Text(" (" + unit.text(*time.winner->time_mean) + ")");
  if (time.compared == 1)
    return Text(found.bad.empty() ? "Only " : "Of the conditions that did not fail, only ") + mean +
           Text(" has an iteration time.");
  const double gain = 1 - *time.winner->time_mean / *time.next->time_mean;
  if (!time.intervals) {
    return mean + Text(
                      " has the smallest mean iteration time, but not every condition has an interval, so the data do "
                      "not show that it is fastest.");
  }
  if (time.level.empty()) {
    return mean + Text(found.unlike_work.empty() ? " is the fastest: " : " has the shortest steps: ") +
           Text(percent(gain)) + Text(" less time for a step than the next, ") + code(time.next->name) +
           Text(", and its 95 % interval lies below every other.");
  }
  return mean + Text(" has the smallest mean iteration time, but its 95 % interval overlaps that of ") +
         names(time.level) + Text(": the data do not show which is fastest.");
}

Section performance_section(const metric::Store& store, const Findings& found, Tracer& tracer) {
  Section section{"Performance", {}};
  section.blocks.emplace_back(Paragraph{time_sentence(found)});
  const double longest = largest(found, &Condition::time_mean);
  if (longest == 0) {
    section.blocks.emplace_back(Paragraph{"No record has an iteration time."});
    return section;
  }
  const summary::Unit unit = summary::time_unit(longest);
  const auto print = [&](double value) { return unit.number(value); };
  const std::string in = " (" + unit.name + ")";
  GridMaker maker(found, tracer);
  maker.number(
      "mean" + in, "time_mean", [](const Condition& c) { return c.time_mean; }, print);
  maker.column("95 % interval" + in, true, [&](const Condition& c) {
    if (!c.time_low || !c.time_high) return nothing();
    const Span low = tracer.number(c, "time_low", *c.time_low, print(*c.time_low));
    const Span high = tracer.number(c, "time_high", *c.time_high, print(*c.time_high));
    return Cell{Text(low) + Text(" to ") + Text(high), *c.time_low};
  });
  maker.number(
      "median" + in, "time_median", [](const Condition& c) { return c.time_median; }, print);
  maker.number(
      "deviation" + in, "time_std", [](const Condition& c) { return c.time_std; },
      [&](double value) { return unit.number(value, 2); });
  maker.number(
      "points", "time_points", [](const Condition& c) { return c.time_points; }, whole);
  if (found.time.winner) {
    const double fastest = *found.time.winner->time_mean;
    maker.column("over the fastest", true, [&](const Condition& c) {
      if (!c.time_mean) return nothing();
      const double ratio = *c.time_mean / fastest - 1;
      return Cell{Text(ratio == 0 ? "0 %" : (ratio > 0 ? "+" : "") + percent(ratio)), ratio};
    });
  }
  const summary::Unit rate = summary::rate_unit(largest(found, &Condition::tokens_per_second));
  maker.number(
      "tokens (" + rate.name + ")", "tokens_per_second", [](const Condition& c) { return c.tokens_per_second; },
      [&](double value) { return rate.number(value); });
  section.blocks.emplace_back(maker.take());
  const auto warmup = store.attributes.find("warmup");
  const std::string excluded = warmup == store.attributes.end() ? "" : warmup->second;
  plot::Options options;
  options.warmup = excluded;
  section.blocks.emplace_back(Picture{"iteration_time_comparison",
                                      "mean iteration time per condition with its 95 % interval",
                                      plot::time_figure(found.conditions, options)});
  const bool repeated = std::all_of(found.conditions.begin(), found.conditions.end(),
                                    [](const Condition& c) { return c.runs.value_or(1) > 1; });
  const bool single = std::none_of(found.conditions.begin(), found.conditions.end(),
                                   [](const Condition& c) { return c.runs.value_or(1) > 1; });
  std::string note = repeated ? "An interval is that of the mean over the runs of a condition"
                              : "An interval is that of the mean over the steps of a run";
  if (!repeated && !single) note += ", or over the runs where a condition has several";
  note += excluded.empty() ? "; the summary does not say how many warm-up points were left out."
                           : ", warm-up left out (" + excluded + ").";
  if (single) note += " Each condition ran once, so the difference from one run to the next is not in it.";
  section.blocks.emplace_back(Paragraph{note});
  return section;
}

Text memory_sentence(const Findings& found) {
  const Best& memory = found.memory;
  if (memory.compared == 0) return "No condition that did not fail has a peak memory.";
  const auto peak = [](const Condition& c) { return static_cast<double>(*c.peak_mem); };
  const Text winner = code(memory.winner->name) +
                      Text(" (" + summary::bytes_unit(peak(*memory.winner)).text(peak(*memory.winner)) + ")");
  if (memory.compared == 1)
    return Text(found.bad.empty() ? "Only " : "Of the conditions that did not fail, only ") + winner +
           Text(" has a peak memory.");
  if (memory.level.size() + 1 == memory.compared)
    return "All conditions that did not fail peak within one percent of the same memory: it gives no reason to choose.";
  if (!memory.level.empty())
    return winner + Text(" has the lowest peak memory, with ") + names(memory.level) +
           Text(" within one percent of it.");
  return winner + Text(" has the lowest peak memory: ") + Text(percent(1 - peak(*memory.winner) / peak(*memory.next))) +
         Text(" less than the next, ") + code(memory.next->name) + Text(".");
}

Section memory_section(const Findings& found, Tracer& tracer) {
  Section section{"Memory", {}};
  section.blocks.emplace_back(Paragraph{memory_sentence(found)});
  const double most = largest(found, &Condition::peak_mem);
  if (most == 0) {
    section.blocks.emplace_back(Paragraph{"No record has a peak memory."});
    return section;
  }
  const summary::Unit unit = summary::bytes_unit(most);
  const auto print = [&](double value) { return unit.number(value); };
  GridMaker maker(found, tracer);
  maker.number(
      "peak (" + unit.name + ")", "peak_mem", [](const Condition& c) { return c.peak_mem; }, print);
  maker.number(
      "allocated (" + unit.name + ")", "alloc_mem", [](const Condition& c) { return c.alloc_mem; }, print);
  maker.column("of the largest peak", true, [&](const Condition& c) {
    return c.peak_mem ? Cell{Text(percent(static_cast<double>(*c.peak_mem) / most)), static_cast<double>(*c.peak_mem)}
                      : nothing();
  });
  const summary::Unit sent = summary::bytes_unit(largest(found, &Condition::comm_bytes));
  maker.number(
      "sent by a rank in a step (" + sent.name + ")", "comm_bytes", [](const Condition& c) { return c.comm_bytes; },
      [&](double value) { return sent.number(value); });
  section.blocks.emplace_back(maker.take());
  section.blocks.emplace_back(
      Picture{"memory_usage_comparison", "peak memory of a rank per condition", plot::memory_figure(found.conditions)});
  return section;
}

/// How many conditions completed, and how many steps, where that is one number.
static Text completed(const Findings& found) {
  const auto steps = found.conditions.front().final_step;
  const bool same = steps && std::all_of(found.conditions.begin(), found.conditions.end(),
                                         [&](const Condition& c) { return c.final_step == steps; });
  return (found.conditions.size() == 1 ? "The condition" : "All " + counted(found.conditions.size(), "condition")) +
         " completed" +
         (same ? " " + counted(static_cast<std::size_t>(std::max<std::int64_t>(0, *steps)), "step") + "." : ".");
}

Section summary_section(const Findings& found) {
  Section section{"Executive summary", {}};
  List list;
  for (const Condition* const condition : found.bad) {
    list.items.push_back(code(condition->name) + Text(": ") + Text(bad(status_text(*condition))) + Text("."));
  }
  if (found.bad.empty() && found.unknown.empty()) list.items.push_back(Text(strong("Runs. ")) + completed(found));
  if (found.healthy.size() > 1) list.items.push_back(Text(strong("Loss. ")) + loss_sentence(found));
  if (found.healthy.size() > 1 && !found.unlike_work.empty()) {
    list.items.push_back(Text(strong("Work. ")) +
                         Text("The steps are not known to be the same work: " + found.unlike_work + "."));
  }
  list.items.push_back(Text(strong("Time. ")) + time_sentence(found));
  list.items.push_back(Text(strong("Memory. ")) + memory_sentence(found));
  section.blocks.emplace_back(std::move(list));
  const summary::Unit seconds = summary::time_unit(largest(found, &Condition::time_mean)),
                      bytes = summary::bytes_unit(largest(found, &Condition::peak_mem));
  Grid grid{
      "",
      {"condition", "status", "final loss", "mean time (" + seconds.name + ")", "peak memory (" + bytes.name + ")"},
      {false, false, true, true, true},
      {}};
  for (const Condition& c : found.conditions) {
    const auto cell = [](const auto& value, const auto& print) {
      return value ? Cell{Text(print(static_cast<double>(*value))), static_cast<double>(*value)} : nothing();
    };
    grid.rows.push_back({name_cell(c, false), status_cell(c), cell(c.final_loss, loss_text),
                         cell(c.time_mean, [&](double v) { return seconds.number(v); }),
                         cell(c.peak_mem, [&](double v) { return bytes.number(v); })});
  }
  section.blocks.emplace_back(std::move(grid));
  return section;
}

}  // namespace zs::report
