// SPDX-License-Identifier: Apache-2.0
// The results: loss, time and memory, each with its table, its figure and the sentence that the data allow.
#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>

#include "base/number.hpp"
#include "base/words.hpp"
#include "plot/figures.hpp"
#include "report/batch.hpp"
#include "report/grid_maker.hpp"
#include "summary/condition.hpp"
#include "summary/unit.hpp"

namespace zs::report {
namespace {

/// A curve can be drawn over the time of its steps, or there is none.
bool has_times(const Condition& condition) {
  const metric::Column* const times = condition.curve ? condition.curve->find("iteration_time") : nullptr;
  for (std::size_t row = 0; times && row < times->size(); ++row) {
    if (!times->absent(row) && times->real(row) > 0) return true;
  }
  return !condition.curve;
}

/// The columns of this kind that a report shows.
std::vector<Condition::Column> shown(stat::Kind kind) {
  std::vector<Condition::Column> columns;
  for (std::size_t at = 0; at < stat::kSummaryColumns.size(); ++at) {
    const stat::SummaryColumn& row = stat::kSummaryColumns[at];
    if (row.kind == kind && !row.report.empty()) columns.emplace_back(at);
  }
  return columns;
}

bool any_fact(const Findings& found, const char* name) {
  return std::ranges::any_of(found.conditions,
                             [&](const Condition& one) { return std::isfinite(summary::mean_fact(one, {name})); });
}

/// The unit in powers of 1024, as nvidia-smi and the sizes of cards have it: GB becomes GiB; bytes stay.
summary::Unit binary(const summary::Unit& unit) {
  const auto power = static_cast<std::size_t>(std::lround(std::log(unit.factor) / std::log(1000.0)));
  if (power == 0) return unit;
  return {std::pow(1024.0, static_cast<double>(power)), std::string(1, " KMGTPE"[power]) + "iB"};
}

}  // namespace

/// Says that failed conditions are left out, if there are some.
static std::string healthy(const Findings& found) { return found.bad.empty() ? "" : " that did not fail"; }

Text loss_sentence(const Findings& found) {
  const summary::Losses& losses = found.losses;
  if (found.conditions.size() == 1) {
    const Condition& one = found.conditions[0];
    const auto first = one["first_loss"], final = one["final_loss"];
    if (!first || !final) return "No loss was logged.";
    Text text = say("The loss goes from {} to {}{}", loss_text(*first), strong(loss_text(*final)),
                    one.loss_unit.empty() ? "" : " " + one.loss_unit);
    if (const auto best = one["best_loss"]) text += say("; the lowest is {}", loss_text(*best));
    if (const auto valid = one["valid_loss"]) text += say("; the validation loss is {}", loss_text(*valid));
    return text += ".";
  }
  if (losses.pairs == 0)
    return "Losses cannot be compared: no two conditions" + healthy(found) + " share a step with a loss.";
  const std::string but = losses.beside.empty() ? "." : "; what differs is " + losses.beside + ".";
  if (losses.equal)
    return "The loss curves are equal at all " + counted(losses.fewest_steps, "logged step") + ", as logged" + but;
  if (!losses.first_step) return "The loss curves are equal at the steps that two of them share.";
  const std::string first = to_text(*losses.first_step);
  if (!losses.largest)
    return say("The mean losses are equal, but single values differ from step {} on ({}).", first, losses.first_in);
  if (losses.printed)
    return say(
        "The losses are equal as printed, to one unit of the last of {} (the first that is not the same: step {}).",
        counted(static_cast<std::size_t>(*losses.printed), "decimal"), first);
  const std::string step = to_text(losses.largest->step);
  const std::string what =
      !std::isfinite(losses.largest->difference)
          ? "at step " + step + " one of them is not finite."
          : "the largest difference at one step is " +
                loss_text(losses.largest->difference, losses.largest->a->loss_unit) + " (step " + step +
                (std::isfinite(losses.largest->relative) ? ", " + percent(losses.largest->relative) : "") + ").";
  return say("The losses first differ at step {}; {}", first, what);
}

namespace {

/// Results of evaluations besides the loss, by their names in records.
constexpr std::array kEvaluated = {std::pair{"perplexity", "final_valid_perplexity"},
                                   std::pair{"accuracy", "final_valid_accuracy"},
                                   std::pair{"accuracy, best five", "final_valid_accuracy_top5"},
                                   std::pair{"test loss", "test_loss"},
                                   std::pair{"test perplexity", "test_perplexity"},
                                   std::pair{"test accuracy", "test_accuracy"},
                                   std::pair{"test accuracy, best five", "test_accuracy_top5"}};

bool somewhere(const Findings& found, const std::string& name) {
  return std::ranges::any_of(found.conditions, [&](const Condition& c) { return !c.attribute(name).empty(); });
}

}  // namespace

Section loss_section(const Findings& found, Tracer& tracer) {
  Section section{"Loss", {}};
  if (!found.mixed()) section.blocks.emplace_back(Paragraph{loss_sentence(found)});
  GridMaker maker(found, tracer);
  maker.number("points");
  for (const Condition::Column column : shown(stat::Kind::loss)) {
    maker.number(column);
    if (column.row().name == "final_loss" && found.unlike_work.empty()) maker.mark_least("final");
  }
  for (const auto& [title, name] : kEvaluated) {
    if (somewhere(found, name))
      maker.column(title, [&, name = name](std::size_t i) { return fact_cell(found.conditions[i], name); });
  }
  const bool marked = maker.marked();
  section.blocks.emplace_back(maker.take());
  if (marked)
    section.blocks.emplace_back(Paragraph{"In bold: the lowest final loss of the conditions" + healthy(found) +
                                          ". Where no intervals lie apart it is no reason to choose."});
  for (const auto& [beginning, title] :
       {std::pair{"train_loss_epoch.", "mean loss of epoch"}, {"class_accuracy.", "accuracy of class"}}) {
    if (auto grid = fact_grid(found, beginning, title)) section.blocks.emplace_back(*std::move(grid));
  }
  return section;
}

/// Runs of several kinds are not ranked: each is beside its own kind.
static Text unranked(const Findings& found, const char* what) {
  return say(
      "The runs are of {}, which do other work: they are not ranked by {}. What stands out among like runs is in "
      "the summary.",
      counted(found.kinds.size(), "kind"), what);
}

Text time_sentence(const Findings& found) {
  const Best& time = found.time;
  if (found.conditions.size() == 1) {
    const Condition& one = found.conditions[0];
    const auto mean = one["time_mean"];
    if (!mean) return "No iteration time was logged.";
    const double half = one["time_high"].value_or(figure::kNone) - *mean;
    return say("A step takes {} on average.", summary::time_unit(*mean).measured(*mean, half));
  }
  if (time.compared == 0) return "No condition" + healthy(found) + " has an iteration time.";
  if (found.mixed()) return unranked(found, "time");
  const double best = *(*time.winner)["time_mean"];
  const Text mean = say("{} ({})", code(time.winner->name), summary::time_unit(best).text(best));
  const char* const only = found.bad.empty() ? "Only" : "Of the conditions that did not fail, only";
  if (time.compared == 1) return say("{} {} has an iteration time.", only, mean);
  if (!time.intervals) {
    const bool single = std::ranges::all_of(found.healthy, [](const Condition* one) { return one->timed_runs() <= 1; });
    const double more = 1 - best / *(*time.next)["time_mean"];
    return say("{} has the smallest mean iteration time, {}{}; {}, so the data do not show which is fastest.", mean,
               more > 0 ? percent(more) + " less than the next, " : "the same as the next, ", code(time.next->name),
               single ? "one run of each cannot tell" : "not every condition ran twice");
  }
  if (!time.level.empty())
    return say(
        "{} has the smallest mean iteration time, but its 95 % interval overlaps that of {}: the data do not show "
        "which "
        "is fastest.",
        mean, names(time.level));
  return say("{} {} {} less time for a step than the next, {}, and its 95 % interval lies below every other.", mean,
             found.unlike_work.empty() ? "is the fastest:" : "has the shortest steps:",
             percent(1 - best / *(*time.next)["time_mean"]), code(time.next->name));
}

namespace {

/// The total time of all steps of a run, and, if it was recorded, of its whole process.
void time_columns(const Findings& found, GridMaker& maker) {
  const auto column = [&](const std::string& title, const std::vector<double>& seconds) {
    const double longest = largest(seconds);
    if (longest == 0) return;
    const summary::Unit unit = summary::time_unit(longest);
    maker.column(title + " (" + unit.name + ")", [&](std::size_t i) {
      return std::isfinite(seconds[i]) ? Cell{Text(unit.number(seconds[i])), seconds[i]} : nothing();
    });
  };
  std::vector<double> steps, whole;
  for (const Condition& condition : found.conditions) {
    steps.push_back(condition["time_total"].value_or(figure::kNone));
    whole.push_back(summary::mean_fact(condition, {"wall_time", "seconds"}));
  }
  column("all steps", steps);
  column("whole run", whole);
}

}  // namespace

Section performance_section(const metric::Store& store, const Findings& found, Tracer& tracer) {
  Section section{"Performance", {}};
  section.blocks.emplace_back(Paragraph{time_sentence(found)});
  const double longest = largest(values(found, "time_mean"));
  if (longest == 0 && !has(found, "tokens_per_second") && !any_fact(found, "samples_per_second")) return section;
  const summary::Unit unit = summary::time_unit(longest);
  GridMaker maker(found, tracer);
  for (const Condition::Column column : shown(stat::Kind::seconds)) {
    maker.number(column, unit);
    if (column.row().name == "time_mean") maker.interval("95 % interval", "time_low", "time_high", unit);
  }
  maker.number("time_points");
  if (found.time.compared > 1 && !found.mixed()) {
    maker.column("over the fastest", [&](std::size_t i) {
      const auto mean = found.conditions[i]["time_mean"];
      if (!mean) return nothing();
      const double ratio = *mean / *(*found.time.winner)["time_mean"] - 1;
      return Cell{Text(ratio == 0 ? "0 %" : (ratio > 0 ? "+" : "") + percent(ratio)), ratio};
    });
  }
  time_columns(found, maker);
  for (const Condition::Column column : shown(stat::Kind::rate))
    maker.number(column, summary::rate_unit(largest(values(found, column))));
  // For images the column before has them.
  if (!summary::on_images(found.conditions)) maker.mean("samples", "samples_per_second", summary::rate_unit);
  maker.mean("an epoch", "epoch_time", summary::time_unit);
  section.blocks.emplace_back(maker.take());
  const auto warmup = store.attributes.find("warmup");
  const std::string excluded = warmup == store.attributes.end() ? "" : warmup->second;
  const auto several = [](const Condition& c) { return c["runs"].value_or(1) > 1; };
  const bool repeated = std::ranges::all_of(found.conditions, several);
  const bool single = std::ranges::none_of(found.conditions, several);
  section.blocks.emplace_back(Paragraph{
      say("Each interval is of the mean over the {}{}{}{}", repeated ? "runs of a condition" : "steps of a run",
          !repeated && !single ? ", or over the runs where a condition has several" : "",
          excluded.empty() ? "; the summary does not say how many warm-up points were left out."
                           : ", without warm-up (" + excluded + ").",
          single ? " Each condition ran once: the interval does not include the difference from one run to the next."
                 : "")});
  return section;
}

Text memory_sentence(const Findings& found) {
  const Best& memory = found.memory;
  if (found.conditions.size() == 1) {
    const auto bytes = found.conditions[0]["peak_mem"];
    if (!bytes) return "No peak memory was logged.";
    return say("A rank takes {} of memory at its peak.", summary::bytes_unit(*bytes).text(*bytes));
  }
  if (memory.compared == 0) return "No condition" + healthy(found) + " has a peak memory.";
  if (found.mixed()) return unranked(found, "memory");
  const auto peak = [](const Condition& c) { return *c["peak_mem"]; };
  const double least = peak(*memory.winner);
  const Text winner = say("{} ({})", code(memory.winner->name), summary::bytes_unit(least).text(least));
  const char* const only = found.bad.empty() ? "Only" : "Of the conditions that did not fail, only";
  if (memory.compared == 1) return say("{} {} has a peak memory.", only, winner);
  if (memory.level.size() + 1 == memory.compared)
    return say("{}{} peak within one percent of the same memory: it gives no reason to choose.",
               all_counted(memory.compared, "condition"),
               memory.compared == found.conditions.size() ? "" : " of known memory");
  if (!memory.level.empty())
    return say("{} has the lowest peak memory, with {} within one percent of it.", winner, names(memory.level));
  return say("{} has the lowest peak memory: {} less than the next, {}.", winner,
             percent(1 - least / peak(*memory.next)), code(memory.next->name));
}

Section memory_section(const Findings& found, Tracer& tracer) {
  Section section{"Memory", {}};
  section.blocks.emplace_back(Paragraph{memory_sentence(found)});
  const double most = largest(values(found, "peak_mem"));
  if (most == 0) return section;
  const summary::Unit unit = summary::bytes_unit(most);
  GridMaker maker(found, tracer);
  maker.number("peak_mem", unit);
  if (const summary::Unit other = binary(unit); other.name != unit.name) maker.number("peak_mem", other);
  maker.number("alloc_mem", unit);
  if (found.memory.compared > 1 && !found.mixed())
    maker.column("of the largest peak", [&](std::size_t i) {
      const auto peak = found.conditions[i]["peak_mem"];
      return peak ? Cell{Text(percent(*peak / most)), *peak} : nothing();
    });
  maker.number("comm_bytes", summary::bytes_unit(largest(values(found, "comm_bytes"))));
  section.blocks.emplace_back(maker.take());
  return section;
}

/// The pictures that answer first: loss by step and over time, time and memory.
void overview(const metric::Store& store, const Findings& found, Section& section) {
  plot::Options options;
  const auto warmup = store.attributes.find("warmup");
  if (warmup != store.attributes.end()) options.warmup = warmup->second;
  const auto add = [&](const char* name, const char* caption, const auto& figure) {
    section.blocks.emplace_back(Picture{name, caption, figure(found.conditions, options), true});
  };
  const bool losses = has(found, "final_loss") &&
                      std::ranges::any_of(found.conditions, [](const Condition& c) { return c.curve != nullptr; });
  if (losses) add("loss_comparison", "training loss by step, one curve per condition", plot::loss_figure);
  const bool several = found.conditions.size() > 1;  // one bar shows nothing
  if (several && largest(values(found, "time_mean")) > 0) {
    add("iteration_time_comparison", "mean iteration time per condition with its 95 % interval", plot::time_figure);
  } else if (several && any_fact(found, "samples_per_second")) {  // the results of methods
    add("throughput_comparison", "samples per second of each condition", plot::throughput_figure);
    if (any_fact(found, "epoch_time")) add("duration_comparison", "time of an epoch", plot::duration_figure);
  }
  if (losses && plot::nearly_equal(found.conditions))
    add("loss_difference", "loss minus that of the first condition, at the same step", plot::difference_figure);
  if (losses && std::ranges::all_of(found.conditions, has_times)) {
    options.x_axis = "time";
    add("loss_over_time", "training loss over the time of the steps", plot::loss_figure);
  }
  if (several && largest(values(found, "peak_mem")) > 0)
    add("memory_usage_comparison", "peak memory of a rank per condition", plot::memory_figure);
  if (section.blocks.size() == 1) std::get<Picture>(section.blocks[0]).half = false;
}

/// How busy the machine was before each run, in the order in which they ran, if that may explain a difference in time.
static Text load_sentence(const Findings& found) {
  constexpr double kMuch = 1;  // processes: less changes no time
  constexpr std::size_t kMost = 12;
  std::vector<std::pair<std::int64_t, double>> loads;
  bool once = true;
  for (const Condition& condition : found.conditions) {
    once = once && condition.members.size() == 1;
    for (const summary::Member& member : condition.members) {
      const auto load = parse_real(member.run->attribute("load_before"));
      if (load) loads.emplace_back(parse_int(member.run->attribute("order")).value_or(0), *load);
    }
  }
  std::ranges::stable_sort(loads, [](const auto& a, const auto& b) { return a.first < b.first; });
  if (loads.size() < 2 || loads.size() > kMost) return {};
  const auto [least, most] = std::ranges::minmax(loads | std::views::values);
  if (!(most - least > kMuch)) return {};
  const bool in_turn = loads.front().first < loads.back().first;
  return say("{}{} the load of the machine before them was {}: a part of the differences in time may be due to it.",
             once ? "Each ran once" : "They ran", in_turn ? ", one after another;" : ";",
             zs::joined(loads, ", ", [](const auto& one) { return to_rounded_text(one.second, 2); }));
}

/// The number of completed conditions, and the number of steps, if all have the same.
static Text completed(const Findings& found) {
  const Condition& first = found.conditions.front();
  const bool same = first["final_step"] && std::ranges::all_of(found.conditions, [&](const Condition& c) {
                      return c["final_step"] == first["final_step"];
                    });
  return (found.conditions.size() == 1 ? found.conditions[0].name : all_counted(found.conditions.size(), "condition")) +
         " completed" + (same ? " " + counted(first.count("final_step"), "step") + "." : ".");
}

Section summary_section(const metric::Store& store, const Findings& found) {
  Section section{"Executive summary", {}};
  overview(store, found, section);
  List list;
  for (const Condition* const condition : found.bad)
    list.items.push_back(say("{}: {}.", code(condition->name), bad(status_text(*condition))));
  if (found.bad.empty() && found.unknown.empty()) list.items.push_back(say("{}{}", strong("Runs. "), completed(found)));
  const bool single = found.conditions.size() == 1;
  if (!found.mixed() && (single || found.healthy.size() > 1))
    list.items.push_back(say("{}{}", strong("Loss. "), loss_sentence(found)));
  if (found.healthy.size() > 1 && !found.unlike_work.empty())
    list.items.push_back(
        say("{}The steps are not known to be the same work: {}.", strong("Work. "), found.unlike_work));
  if (!found.mixed()) {
    const Text load = found.time.compared > 1 ? load_sentence(found) : Text();
    list.items.push_back(say("{}{}{}{}", strong("Time. "), time_sentence(found), load.empty() ? "" : " ", load));
    list.items.push_back(say("{}{}", strong("Memory. "), memory_sentence(found)));
  }
  // For a single run the verdict has each of these sentences already.
  if (!single || !found.bad.empty()) section.blocks.emplace_back(std::move(list));
  if (auto grid = outlier_grid(store)) section.blocks.emplace_back(*std::move(grid));
  const summary::Unit seconds = summary::time_unit(largest(values(found, "time_mean"))),
                      bytes = summary::bytes_unit(largest(values(found, "peak_mem")));
  Grid grid{"", {"condition", "status"}, {false, false}, {}};
  for (const Condition& c : found.conditions) grid.rows.push_back({name_cell(c, false), status_cell(c)});
  const auto add = [&](const std::string& title, Condition::Column column, double factor) {
    if (!has(found, column)) return;
    grid.header.push_back(title), grid.numeric.push_back(true);
    std::vector<double> scaled = values(found, column);
    for (double& value : scaled) value /= factor;
    const std::vector<std::string> texts = summary::column(scaled, column.row().digits);
    for (std::size_t i = 0; i < scaled.size(); ++i)
      grid.rows[i].push_back(found.conditions[i][column] ? Cell{Text(texts[i]), scaled[i]} : nothing());
  };
  add("final loss", "final_loss", 1);
  add("mean time (" + seconds.name + ")", "time_mean", seconds.factor);
  add("peak memory (" + bytes.name + ")", "peak_mem", bytes.factor);
  section.blocks.emplace_back(std::move(grid));
  return section;
}

}  // namespace zs::report
