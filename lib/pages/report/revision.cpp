// SPDX-License-Identifier: Apache-2.0
#include "report/pages.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "plot/figures.hpp"
#include "report/batch.hpp"
#include "stat/columns.hpp"
#include "stat/sample.hpp"
#include "summary/unit.hpp"

namespace zs::report {
namespace {

constexpr std::size_t kCommitShown = 12;
constexpr double kIdle = 0.1;  // processors: less is the machine's own housekeeping

Text method(const Condition& baseline, const std::vector<Comparison>& comparisons) {
  const bool paired = std::ranges::any_of(comparisons, [](const auto& one) { return one.ratios.pairs > 0; });
  const bool coarse = std::ranges::any_of(
      comparisons, [](const auto& one) { return one.ratios.time.coarse + one.ratios.memory.coarse > 0; });
  return say(
      "A ratio above 1 is slower, or more memory, than {}. Intervals are 95 % together for time and memory (Holm), "
      "from {}; "
      "a change as large as the least named is found in four cases of five.{}",
      code(baseline.name),
      paired ? "the ratios of mean iteration times in pairs of runs that were next to each other: the trimmed mean of "
               "their "
               "logarithms, where of six pairs or more a fifth at either end count as the next ones"
             : "Welch's test on logarithms of the runs' mean iteration times",
      coarse
          ? " Where the print hides how far runs differ, their deviation is taken as that of the rounding, a unit of "
            "the last digit divided by root 12; where all runs of a revision have one value, a difference of one unit "
            "is none."
          : "");
}

/// "no difference shown", "1.2 % slower".
std::string change(const summary::Ratio& ratio, const char* more, const char* less) {
  if (!std::isfinite(ratio.value)) return "-";
  if (ratio.exact && ratio.value == 1) return "the same in every run";
  if (!ratio.known()) return "not known";
  return ratio.differs() ? percent(std::abs(ratio.value - 1)) + " " + (ratio.value > 1 ? more : less)
                         : "no difference shown";
}

Grid answers(const Comparison& one, const Condition& baseline) {
  Grid grid{one.other->name + " against " + baseline.name,
            {"what", "found", "ratio", "interval", "least found"},
            {false, false, true, true, true},
            {}};
  const std::string step = one.numerics.from_step ? " from step " + to_text(*one.numerics.from_step) : "";
  grid.rows.push_back({{Text("numerics")}, {Text(one.numerics.found + step)}, {}, {}, {}});
  const stat::Sample now = one.other->values("final_loss"), then = baseline.values("final_loss");
  if (!now.empty() && !then.empty()) {
    const summary::Result loss = summary::result("final_loss", {});
    const double ratio = stat::mean(now) / stat::mean(then), change = std::abs(ratio - 1);
    const std::string words =
        !std::isfinite(ratio) || ratio == 1 ? "" : ", " + percent(change) + (ratio > 1 ? " above" : " below");
    grid.rows.push_back({{Text("final loss")},
                         {Text(with_spread(*one.other, loss) + words + (words.empty() ? " against " : " ") +
                               with_spread(baseline, loss))},
                         {Text(std::isfinite(ratio) ? to_rounded_text(ratio, 6) : "-"), ratio},
                         {},
                         {}});
  }
  const auto row = [&](const char* what, const summary::Ratio& ratio, const char* more, const char* less) {
    const bool interval = ratio.low < ratio.high;
    grid.rows.push_back(
        {{Text(what)},
         {Text(change(ratio, more, less))},
         {Text(std::isfinite(ratio.value) ? to_rounded_text(ratio.value, 4) : "-"), ratio.value},
         {Text(interval ? to_rounded_text(ratio.low, 4) + " to " + to_rounded_text(ratio.high, 4) : "")},
         {Text(!interval         ? ""
               : ratio.too_few() ? "too few runs"
                                 : percent(ratio.smallest))}});
  };
  row("time", one.ratios.time, "slower", "faster");
  row("memory", one.ratios.memory, "more", "less");
  return grid;
}

/// The section with the result of the comparison; it replaces conclusions from intervals of single conditions.
Section says(Section section, const std::vector<Comparison>& comparisons, const Answer Comparison::*answer) {
  List list;
  for (const Comparison& one : comparisons)
    list.items.push_back(say("{}: {}.", code(one.other->name), (one.*answer).text));
  section.blocks.front() = std::move(list);
  return section;
}

Section runs_section(const Condition& baseline, const std::vector<Comparison>& comparisons) {
  Section section{"Runs", {}};
  std::vector<const Condition*> revisions = {&baseline};
  for (const Comparison& one : comparisons) revisions.push_back(one.other);
  Grid grid{"",
            {"revision", "run", "status", "final loss", "mean time", "peak memory", "state digest"},
            {false, false, false, true, true, true, false},
            {}};
  for (const Condition* const condition : revisions) {
    for (const summary::Member& member : condition->members) {
      const std::string digest = member.run->attribute("state_digest");
      const auto loss = member["final_loss"];
      const auto cell = [](const std::optional<double>& value, const auto& print) {
        return value && std::isfinite(*value) ? Cell{Text(print(*value)), *value} : Cell{Text("-")};
      };
      grid.rows.push_back(
          {{Text(code(condition->name))},
           {Text(code(member.run->name))},
           {member.bad() ? Text(bad(member.status)) : Text(member.status)},
           loss ? Cell{Text(loss_text(*loss)), *loss} : Cell{Text("-")},
           cell(member["time_mean"], [](double value) { return summary::time_unit(value).text(value); }),
           cell(member["peak_mem"], [](double value) { return summary::bytes_unit(value).text(value); }),
           {digest.empty() ? Text("-") : Text(code(digest))}});
    }
  }
  section.blocks.emplace_back(std::move(grid));
  return section;
}

/// The commit of each revision, if the records have it.
std::optional<Grid> commits(const Findings& found) {
  Grid grid{"", {"revision", "commit", "subject", "runs"}, {false, false, false, true}, {}};
  bool any = false;
  for (const Condition& condition : found.conditions) {
    const std::string commit = condition.attribute("commit");
    any = any || !commit.empty();
    const auto runs = static_cast<double>(condition.members.size());
    grid.rows.push_back({{Text(code(condition.name))},
                         {commit.empty() ? Text("-") : Text(code(commit.substr(0, kCommitShown)))},
                         {Text(condition.attribute("commit_subject"))},
                         {Text(to_text(runs)), runs}});
  }
  return any ? std::optional(std::move(grid)) : std::nullopt;
}

/// Load, clocks and nodes: what else may have differed, run by run in the order in which they ran.
Section measurement_section(const Findings& found) {
  std::vector<const metric::Run*> runs;
  std::set<std::string> hosts;
  for (const Condition& condition : found.conditions) {
    for (const summary::Member& member : condition.members) {
      runs.push_back(member.run);
      if (!member.run->attribute("host").empty()) hosts.insert(member.run->attribute("host"));
    }
  }
  const auto order = [](const metric::Run* run) { return parse_int(run->attribute("order")).value_or(0); };
  std::ranges::stable_sort(runs, [&](const auto* a, const auto* b) { return order(a) < order(b); });
  Section section{"Measurement", {}};
  if (hosts.empty())
    section.blocks.emplace_back(Paragraph{"The records do not say on which host the runs were."});
  else if (hosts.size() == 1)
    section.blocks.emplace_back(Paragraph{say("All runs were on {}.", code(*hosts.begin()))});
  else
    section.blocks.emplace_back(Paragraph{"The runs were on " + counted(hosts.size(), "host") +
                                          ": a difference in time may be one between hosts."});
  double least = HUGE_VAL, most = 0;
  for (const metric::Run* const run : runs) {
    const double load = parse_real(run->attribute("other_load")).value_or(0);
    least = std::min(least, load), most = std::max(most, load);
  }
  if (most > kIdle) {
    section.blocks.emplace_back(Paragraph{
        say("Other programs used {} to {} processors during the runs: times are worth more on an idle machine.",
            to_rounded_text(least, 2), to_rounded_text(most, 2))});
  }
  Grid grid{"", {"run"}, {false}, {}};
  for (const metric::Run* const run : runs) grid.rows.push_back({{Text(code(run->name))}});
  for (const attribute::Attribute* const row : attribute::filtered([](const auto& one) { return one.circumstance; })) {
    const std::string key(row->name);
    if (std::ranges::all_of(runs, [&](const auto* run) { return run->attribute(key).empty(); })) continue;
    grid.header.push_back(titled(*row));
    grid.numeric.push_back(row->type != attribute::Type::text);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::string value = runs[i]->attribute(key);
      grid.rows[i].push_back({Text(value.empty() ? "-" : value), parse_real(value).value_or(figure::kNone)});
    }
  }
  if (grid.header.size() > 1) section.blocks.emplace_back(std::move(grid));
  return section;
}

}  // namespace

Document revision(const metric::Store& store, const Findings& found, const std::string& source,
                  const std::string& folder, const Gate& gate) {
  Comparisons compared = compare(store, found, source, gate);
  const Condition& baseline = *compared.baseline;
  const std::vector<Comparison>& comparisons = compared.others;
  Document document;
  document.title = comparisons.size() == 1
                       ? "Comparison of " + comparisons[0].other->name + " with " + baseline.name
                       : "Comparison of " + counted(comparisons.size(), "revision") + " with " + baseline.name;
  document.verdict = compared.verdict;
  document.label = compared.label;
  document.data = to_json(compared, found, gate);
  document.verdict_text = std::move(compared.text);

  Tracer tracer(document, folder);
  Section summary{"Executive summary", {}};
  plot::Options options;
  options.baseline = baseline.name, options.gate = gate.max_slowdown;
  try {
    summary.blocks.emplace_back(Picture{"revision_comparison", "ratios of time and memory, and the loss curves",
                                        plot::revision_figure(found.conditions, options)});
  } catch (const Error& missing) {
    summary.blocks.emplace_back(Paragraph{say("There is no figure: {}.", missing.what())});
  }
  for (const Comparison& one : comparisons) {
    if (one.compared) summary.blocks.emplace_back(answers(one, baseline));
  }
  if (std::optional<Grid> table = commits(found)) summary.blocks.emplace_back(std::move(*table));
  if (std::ranges::any_of(store.runs,
                          [](const metric::Run& run) { return !run.attribute("uncommitted_changes").empty(); }))
    summary.blocks.emplace_back(Paragraph{"The repository had uncommitted changes; they are in neither revision."});
  if (std::ranges::any_of(comparisons, [](const auto& one) { return one.compared; }))
    summary.blocks.emplace_back(Paragraph{method(baseline, comparisons)});
  document.sections.push_back(std::move(summary));
  document.sections.push_back(setup_section(found));
  document.sections.push_back(runs_section(baseline, comparisons));
  document.sections.push_back(loss_section(found, tracer));
  document.sections.push_back(says(performance_section(store, found, tracer), comparisons, &Comparison::time));
  document.sections.push_back(says(memory_section(found, tracer), comparisons, &Comparison::memory));
  document.sections.push_back(measurement_section(found));
  document.sections.push_back(quality_section(store, found));
  document.sections.push_back(appendix_section(store, found, source));
  return document;
}

// A comparison of revisions for programs.

namespace {

using Json = nlohmann::ordered_json;

const char* name(Verdict verdict) {
  return verdict == Verdict::good ? "good" : verdict == Verdict::bad ? "bad" : "open";
}

Json finite_number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

template <typename Value>
Json known(const std::optional<Value>& value) {
  return value ? finite_number(static_cast<double>(*value)) : Json();
}

Json json(const Answer& answer) { return {{"verdict", name(answer.verdict)}, {"text", answer.text.plain()}}; }

Json json(const Answer& answer, const summary::Ratio& ratio) {
  Json made = json(answer);
  made["ratio"] = finite_number(ratio.value);
  made["low"] = finite_number(ratio.low);
  made["high"] = finite_number(ratio.high);
  made["confidence"] = finite_number(ratio.confidence);
  made["p"] = finite_number(ratio.p);
  made["smallest_effect"] = finite_number(ratio.smallest);
  made["differs"] = ratio.differs();
  return made;
}

Json json(const Comparison& one) {
  Json numerics = json(one.numerics);
  numerics["found"] = one.numerics.found;
  numerics["from_step"] = one.numerics.from_step ? Json(*one.numerics.from_step) : Json();
  numerics["loss_difference"] = known(one.numerics.loss_difference);
  numerics["envelope"] = known(one.numerics.envelope);
  return {{"revision", one.other->name},
          {"pairs", one.ratios.pairs},
          {"numerics", std::move(numerics)},
          {"time", json(one.time, one.ratios.time)},
          {"memory", json(one.memory, one.ratios.memory)}};
}

Json json(const summary::Member& member) {
  Json made = {{"run", member.run->name},
               {"status", member.status},
               {"reason", member.reason},
               {"points", member.count("time_points")},
               {"time_mean", known(member["time_mean"])},
               {"time_median", known(member["time_median"])},
               {"peak_mem", known(member["peak_mem"])}};
  made["final_loss"] = known(member["final_loss"]);
  made["steps"] = made["losses"] = made["iteration_times"] = Json::array();
  for (const stat::Point& point : member.series().points) {
    made["steps"].push_back(metric::is_absent(point.step) ? Json() : Json(point.step));
    made["losses"].push_back(finite_number(point.loss));
    made["iteration_times"].push_back(finite_number(point.time));
  }
  made["peak_mems"] = Json::array();
  for (const stat::ColumnPoint& point : stat::column_points(*member.run, "peak_mem"))
    made["peak_mems"].push_back(finite_number(point.value));
  made["attributes"] = member.run->attributes;
  return made;
}

/// Mean and standard deviation over the runs of a condition that have the value.
Json over_runs(const Condition& condition, summary::Member::Column column) {
  const stat::Sample values = condition.values(column);
  return {{"runs", values.size()},
          {"mean", values.empty() ? Json() : finite_number(stat::mean(values))},
          {"std", finite_number(stat::deviation(values))}};
}

}  // namespace

std::string to_json(const Comparisons& comparisons, const Findings& found, const Gate& gate) {
  Json made = {{"verdict", name(comparisons.verdict)},
               {"label", comparisons.label},
               {"text", comparisons.text.plain()},
               {"probe", comparisons.probe.sentence.empty()
                             ? Json()
                             : Json{{"verdict", comparisons.probe.verdict}, {"headline", comparisons.probe.sentence}}},
               {"baseline", comparisons.baseline->name},
               {"max_slowdown", gate.max_slowdown}};
  for (const Comparison& one : comparisons.others) made["comparisons"].push_back(json(one));
  for (const Condition& condition : found.conditions) {
    Json revision = {{"revision", condition.name}, {"status", condition.status}};
    revision["final_loss"] = over_runs(condition, "final_loss");
    revision["iteration_time"] = over_runs(condition, "time_mean");
    revision["peak_mem"] = over_runs(condition, "peak_mem");
    revision["runs"] = Json::array();
    for (const summary::Member& member : condition.members) revision["runs"].push_back(json(member));
    made["revisions"].push_back(std::move(revision));
  }
  return made.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zs::report
