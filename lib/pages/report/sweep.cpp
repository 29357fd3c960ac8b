// SPDX-License-Identifier: Apache-2.0
#include "report/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "figure/axis.hpp"
#include "report/batch.hpp"
#include "summary/difference.hpp"
#include "summary/result.hpp"
#include "summary/unit.hpp"

namespace zs::report {
namespace {

constexpr std::size_t kCurves = 8;  // more would hide one another, and the palette has this number of colours

/// Conditions that did not fail and have the result, best first.
std::vector<const Condition*> ranked(const Findings& found, const summary::Result& result) {
  std::vector<const Condition*> best_first;
  for (const Condition* const condition : found.healthy) {
    if (std::isfinite(result.of(*condition))) best_first.push_back(condition);
  }
  std::ranges::stable_sort(
      best_first, [&](const Condition* a, const Condition* b) { return result.better(result.of(*a), result.of(*b)); });
  return best_first;
}

/// A number as axes have it: 0.0001, whatever the log had.
std::string shown(const std::string& value) { return figure::labels(std::vector<std::string>{value}).front(); }

/// "learning_rate 0.001, weight_decay 0.1", or the condition's name if no parameter is known to differ.
Text setting(const Condition& condition, const std::vector<std::string>& keys) {
  std::vector<Text> settings;
  for (const std::string& key : keys) {
    const std::string value = condition.attribute(key);
    if (!value.empty()) settings.push_back(say("{} {}", std::string(attribute::label(key)), strong(shown(value))));
  }
  return settings.empty() ? Text(code(condition.name)) : joined(settings, ", ", ", ");
}

/// The result of each run; nothing where the summary has it of the condition alone.
stat::Sample of_runs(const Condition& condition, const summary::Result& result) {
  const auto column = std::ranges::find(stat::kRunColumns, result.name, [](const auto& row) { return row.name; });
  if (column == stat::kRunColumns.end()) return {};
  return condition.values(summary::Member::Column(column - stat::kRunColumns.begin()));
}

/// Whether the runs of the best two show their order.
std::string order_sentence(const Condition& best, const Condition& next, const summary::Result& result) {
  const stat::Sample a = of_runs(best, result), b = of_runs(next, result);
  if (a.size() < 2 || b.size() < 2)
    return best["runs"].value_or(1) <= 1 ? " Each ran once, so whether the difference is more than noise is not known."
                                         : "";
  const stat::Interval one = stat::mean_interval(a), other = stat::mean_interval(b);
  return one.high < other.low || other.high < one.low
             ? " The 95 % intervals of their means lie apart."
             : " The 95 % intervals of their means overlap: these runs do not show which is better.";
}

/// The mean result at each level of each parameter: what a parameter does on average over the others.
void effects(const Findings& found, const summary::Result& result, const std::vector<std::string>& keys,
             Section& section) {
  for (const std::string& key : keys) {
    const std::vector<std::string> levels = summary::levels(found.conditions, key);
    if (levels.size() < 2 || levels.size() > found.healthy.size()) continue;
    const std::string label(attribute::label(key));
    Grid grid{
        label, {label, "conditions", "failed", "mean " + result.label, "best"}, {false, true, true, true, true}, {}};
    for (const std::string& level : levels) {
      double sum = 0, best = figure::kNone;
      std::size_t count = 0, members = 0, failed = 0;
      for (const Condition& condition : found.conditions) {
        const std::string value = condition.attribute(key);
        if ((value.empty() ? "-" : value) != level) continue;
        ++members;
        failed += condition.bad();
        const double one = result.of(condition);
        if (condition.bad() || !std::isfinite(one)) continue;
        sum += one, ++count;
        if (result.better(one, best)) best = one;
      }
      const auto cell = [&](double value) { return count ? Cell{Text(result.text(value)), value} : Cell{Text("-")}; };
      const auto whole = [](std::size_t value) {
        return Cell{Text(std::to_string(value)), static_cast<double>(value)};
      };
      const auto number = parse_real(level);
      grid.rows.push_back({{Text(shown(level)), number ? *number : figure::kNone},
                           whole(members),
                           whole(failed),
                           cell(sum / static_cast<double>(count)),
                           cell(best)});
    }
    section.blocks.emplace_back(std::move(grid));
  }
}

Section table_of(const Findings& found, const summary::Result& result, const std::vector<std::string>& keys,
                 Tracer& tracer) {
  Section section{"All conditions", {}};
  double longest = 0, most = 0;
  for (const Condition& c : found.conditions) {
    longest = std::fmax(longest, c["time_mean"].value_or(0));
    most = std::fmax(most, c["peak_mem"].value_or(0));
  }
  const summary::Unit seconds = summary::time_unit(longest), bytes = summary::bytes_unit(most);
  Grid grid{"", {"condition", "status"}, {false, false}, {}};
  for (const std::string& key : keys) grid.header.emplace_back(attribute::label(key)), grid.numeric.push_back(true);
  for (const std::string& title : {result.label, "time (" + seconds.name + ")", "memory (" + bytes.name + ")"}) {
    grid.header.push_back(title), grid.numeric.push_back(true);
  }
  for (const Condition& c : found.conditions) {
    std::vector<Cell> row = {{Text(code(c.name)), static_cast<double>(c.place)},
                             {c.bad() ? Text(bad(c.status)) : Text(c.status)}};
    for (const std::string& key : keys) {
      const auto number = parse_real(c.attribute(key));
      row.push_back({Text(c.attribute(key).empty() ? "-" : shown(c.attribute(key))), number ? *number : figure::kNone});
    }
    const double value = result.of(c);
    row.push_back(std::isnan(value) ? Cell{Text("-")}
                                    : Cell{Text(tracer.number(c, result.column, with_spread(c, result))), value});
    const auto add = [&](Condition::Column column, const summary::Unit& unit) {
      const auto one = c[column];
      row.push_back(one ? Cell{Text(tracer.number(c, column, unit.number(*one))), *one} : Cell{Text("-")});
    };
    add("time_mean", seconds);
    add("peak_mem", bytes);
    grid.rows.push_back(std::move(row));
  }
  section.blocks.emplace_back(std::move(grid));
  return section;
}

}  // namespace

std::string with_spread(const Condition& condition, const summary::Result& result) {
  const std::string text = result.text(result.of(condition));
  const stat::Sample values = of_runs(condition, result);
  if (values.size() < 2) return text;
  const double deviation = stat::deviation(values);
  const std::string spread =
      result.column.row().kind == stat::Kind::loss ? to_rounded_text(deviation, 2) : result.text(deviation);
  return fmt::format("{} ± {} ({} runs)", text, spread, values.size());
}

namespace {

/// How many conditions have the result, if not all that did not fail do; and that a validation loss was passed over.
std::string coverage(const Findings& found, const summary::Result& result, bool asked) {
  const auto have = [&](Condition::Column column) {
    return static_cast<std::size_t>(std::ranges::count_if(
        found.healthy, [&](const Condition* one) { return std::isfinite((*one)[column].value_or(figure::kNone)); }));
  };
  const auto some = [&](std::size_t count, Condition::Column column) {
    return " " + std::to_string(count) + " of " + counted(found.healthy.size(), "condition") +
           (found.bad.empty() ? "" : " that did not fail") + (count == 1 ? " has" : " have") + " a " +
           std::string(column.row().label);
  };
  const std::size_t valid = have("valid_loss"), with = have(result.column);
  std::string text;
  if (!asked && result.name == "final_loss" && valid > 0)
    text += some(valid, "valid_loss") + ", so the final loss counts.";
  if (with < found.healthy.size()) text += some(with, result.column) + ".";
  return text;
}

/// The verdict, its label, and the sentences behind it.
void conclude(const Findings& found, const summary::Result& result, const std::vector<const Condition*>& order,
              const std::vector<std::string>& keys, bool asked, Document& document) {
  const bool fault = found.digests_differ();
  document.verdict = fault || !found.bad.empty()               ? Verdict::bad
                     : order.empty() || !found.unknown.empty() ? Verdict::open
                                                               : Verdict::good;
  document.label = fault                               ? "Different bits"
                   : !found.bad.empty()                ? "Not all complete"
                   : document.verdict == Verdict::good ? "Complete"
                                                       : "Not known to be complete";
  Text& text = document.verdict_text;
  if (!found.bad.empty()) text += say("{}{}. ", bad(failed_count(found)), names(found.bad));
  if (fault) text += say("{} ", bits_sentence(found));
  if (order.empty()) {
    text += say("No condition has a {}.", result.name);
    return;
  }
  text += say("{}{}, with a {} of {}.", strong("Best: "), setting(*order[0], keys), result.label,
              strong(with_spread(*order[0], result)));
  const std::string some = coverage(found, result, asked);
  if (order.size() == 1) {
    text += some;
    return;
  }
  const bool level = result.of(*order[0]) == result.of(*order[1]);
  text += level ? say(" {} gives the same result.", setting(*order[1], keys))
                : say(" The next is {}, with {}.", setting(*order[1], keys), with_spread(*order[1], result));
  text += order_sentence(*order[0], *order[1], result) + some;
}

Section executive_summary(const Findings& found, const summary::Result& result,
                          const std::vector<const Condition*>& order, const std::vector<std::string>& keys,
                          const plot::Options& options) {
  Section section{"Executive summary", {}};
  if (!order.empty()) {
    section.blocks.emplace_back(
        Picture{"sweep", result.label + " over the parameters", plot::sweep_figure(found.conditions, options)});
    Grid best{"The best", {"condition", "setting", result.label}, {false, false, true}, {}};
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 5); ++i) {
      best.rows.push_back({{Text(code(order[i]->name))},
                           {setting(*order[i], keys)},
                           {Text(with_spread(*order[i], result)), result.of(*order[i])}});
    }
    section.blocks.emplace_back(std::move(best));
  }
  if (!found.digests_differ() && found.digests_compared()) section.blocks.emplace_back(Paragraph{bits_sentence(found)});
  return section;
}

/// The curves of the best conditions; without a block if none has one.
Section curves_section(const std::vector<const Condition*>& order, const std::vector<std::string>& keys) {
  Section section{"Loss curves", {}};
  std::vector<Condition> curves;
  for (const Condition* const condition : order) {
    if (curves.size() < kCurves && condition->curve) curves.push_back(*condition);
  }
  if (curves.empty()) return section;
  // In the order of the runs, as zs-plot draws them: the same curve has the same colour.
  std::ranges::sort(curves, {}, &Condition::place);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    curves[i].place = i;
    if (!keys.empty()) curves[i].name = setting(curves[i], keys).plain();
  }
  const bool some = curves.size() < order.size();
  if (some) section.blocks.emplace_back(Paragraph{"The best " + counted(curves.size(), "condition") + ":"});
  section.blocks.emplace_back(Picture{"sweep_loss",
                                      some ? "training loss of the best conditions" : "training loss of each condition",
                                      plot::loss_figure(curves)});
  return section;
}

}  // namespace

Document sweep(const metric::Store& store, const Findings& found, const std::string& source, const std::string& folder,
               const plot::Options& options) {
  const summary::Result result = summary::result(options.value, found.conditions);
  const std::vector<std::string> keys = summary::parameters(found.conditions);
  const std::vector<const Condition*> order = ranked(found, result);
  Document document;
  document.title = "Sweep of " + counted(found.conditions.size(), "condition");
  conclude(found, result, order, keys, !options.value.empty(), document);
  Tracer tracer(document, folder);
  document.sections.push_back(executive_summary(found, result, order, keys, options));
  document.sections.push_back(setup_section(found, false));
  Section parameters{"What each parameter does", {}};
  parameters.blocks.emplace_back(Paragraph{
      keys.empty()
          ? Text("The runs do not say what differs between them.")
          : Text(
                "Means over the conditions of each level that did not fail; the other parameters are averaged over.")});
  effects(found, result, keys, parameters);
  // Of one parameter the table of all conditions says it.
  if (keys.empty() || parameters.blocks.size() > 1) document.sections.push_back(std::move(parameters));
  document.sections.push_back(table_of(found, result, keys, tracer));
  if (Section curves = curves_section(order, keys); !curves.blocks.empty())
    document.sections.push_back(std::move(curves));
  document.sections.push_back(quality_section(store, found));
  document.sections.push_back(appendix_section(store, found, source));
  return document;
}

}  // namespace zs::report
