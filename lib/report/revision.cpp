// SPDX-License-Identifier: Apache-2.0
#include "report/revision.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "plot/figures.hpp"
#include "plot/unit.hpp"
#include "report/batch.hpp"
#include "report/ratio.hpp"

namespace zs::report {
namespace {

/// What is known of one question about one revision.
struct Answer {
  Verdict verdict = Verdict::open;
  Text text;
};

/// One revision beside the baseline.
struct Comparison {
  const Condition* other = nullptr;
  Answer numerics, time, memory;
  Ratio time_ratio{}, memory_ratio{};
};

/// One value a run: its mean iteration time.
stat::Sample times(const Condition& condition) {
  stat::Sample result;
  for (const stat::Member& member : condition.members) {
    if (!member.timing.seconds.empty()) result.push_back(stat::mean(member.timing.seconds));
  }
  return result;
}
stat::Sample peaks(const Condition& condition) {
  stat::Sample result;
  for (const stat::Member& member : condition.members) {
    if (!metric::is_absent(member.series.peak_mem)) result.push_back(member.series.peak_mem);
  }
  return result;
}

/// A row of the table "divergence" that holds the pair, in either order; -1 without one.
long pair_row(const metric::Table& table, const std::string& a, const std::string& b) {
  const metric::Column* const one = table.find("condition");
  const metric::Column* const two = table.find("baseline");
  if (!one || !two || one->type() != metric::Type::text || two->type() != metric::Type::text) return -1;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string &x = one->texts()[row], &y = two->texts()[row];
    if ((x == a && y == b) || (x == b && y == a)) return static_cast<long>(row);
  }
  return -1;
}

std::string cell(const metric::Table& table, const char* column, long row) {
  const metric::Column* const found = table.find(column);
  return found ? found->text(static_cast<std::size_t>(row)) : "";
}

Answer numerics(const metric::Store& store, const Condition& baseline, const Condition& other) {
  if (!baseline.state_digest.empty() && baseline.state_digest == other.state_digest) {
    return {Verdict::good,
            Text(strong("identical bits")) + Text(" (state digest ") + code(other.state_digest) + Text(")")};
  }
  const auto entry = store.tables.find("divergence");
  const long row = entry == store.tables.end() ? -1 : pair_row(entry->second, baseline.name, other.name);
  if (row < 0) return {Verdict::open, "not known: the summary has no comparison of the two"};
  const metric::Table& table = entry->second;
  const std::string verdict = cell(table, "verdict", row), first = cell(table, "first_difference", row),
                    digest = cell(table, "digest", row);
  const std::string steps = cell(table, "steps", row), largest = cell(table, "loss_difference", row);
  const auto distance = parse_real(largest);
  const std::string at_most = distance ? loss_text(*distance) : "an unknown amount";
  // Without repeats nothing says how far two runs of one revision part; different digests of the same seed say enough.
  if (verdict == "inside") {
    return {Verdict::good, Text(strong("within the envelope")) + Text(" of repeated runs: losses differ by at most " +
                                                                      at_most + " nats/token, from step " + first)};
  }
  if (verdict == "identical" && digest == "different")
    return {Verdict::bad,
            Text(bad("different bits")) + Text(", though the losses are equal at all " + steps + " logged steps")};
  if (verdict == "identical")
    return {Verdict::good, Text(strong("identical losses")) +
                               Text(" at all " + steps +
                                    " logged steps; without state digests the parameters are not shown to be equal")};
  if (verdict == "different") {
    const std::string outside = cell(table, "first_outside", row);
    const std::string step = outside.empty() ? first : outside;
    return {Verdict::bad, Text(bad("different from step " + step)) +
                              Text(": losses differ by up to " + at_most + " nats/token") +
                              Text(outside.empty() ? "" : ", more than repeated runs do")};
  }
  if (verdict == "incomplete")
    return {Verdict::open, "equal losses at the " + steps + " steps that both logged; " +
                               cell(table, "steps_missing", row) + " are in one alone"};
  return {Verdict::open, "not known: no step in common"};
}

/// "0.97 (0.95 to 0.99)".
std::string printed(const Ratio& ratio) {
  if (!std::isfinite(ratio.value)) return "-";
  const std::string value = to_rounded_text(ratio.value, 4);
  if (ratio.exact || !ratio.known()) return value;
  return value + " (" + to_rounded_text(ratio.low, 4) + " to " + to_rounded_text(ratio.high, 4) + ")";
}

/// `more` and `less` are the words for a ratio above and below 1: "slower", "faster".
Answer judged(const Ratio& ratio, double gate, const std::string& more, const std::string& less) {
  if (!std::isfinite(ratio.value)) return {Verdict::open, "not known: not every run has a value"};
  const std::string change =
      ratio.value == 1 ? "no change" : percent(std::abs(ratio.value - 1)) + " " + (ratio.value > 1 ? more : less);
  if (!ratio.known())
    return {Verdict::open, Text(change + ", from a single run of at least one: no interval, so nothing is shown")};
  const std::string found = ratio.exact ? ", the same in every run"
                                        : "; the smallest change that so many runs find is " + percent(ratio.smallest);
  if (ratio.low > 1 + gate)
    return {Verdict::bad, Text(bad(change)) + Text(", beyond the " + percent(gate) + " allowed")};
  if (ratio.high > 1 + gate) {
    return {Verdict::open,
            Text(ratio.differs() ? change : "no difference shown (" + change + ")") +
                Text("; that it is within the " + percent(gate) + " allowed is not shown either" + found)};
  }
  if (ratio.differs())
    return {Verdict::good, Text(strong(change)) +
                               Text(ratio.value > 1 ? ", within the " + percent(gate) + " allowed" : "") + Text(found)};
  return {Verdict::good, Text("no difference shown (" + change + ")" + found)};
}

Verdict worst(Verdict a, Verdict b) {
  if (a == Verdict::bad || b == Verdict::bad) return Verdict::bad;
  return a == Verdict::open || b == Verdict::open ? Verdict::open : Verdict::good;
}

Section runs_section(const Condition& baseline, const std::vector<Comparison>& comparisons) {
  Section section{"Runs", {}};
  std::vector<const Condition*> all = {&baseline};
  for (const Comparison& one : comparisons) all.push_back(one.other);
  Grid grid{"",
            {"revision", "run", "status", "final loss", "mean time", "peak memory", "state digest"},
            {false, false, false, true, true, true, false},
            {}};
  for (const Condition* const condition : all) {
    for (const stat::Member& member : condition->members) {
      const auto& points = member.series.points;
      const auto last = std::find_if(points.rbegin(), points.rend(),
                                     [](const stat::Point& point) { return !metric::is_absent(point.loss); });
      const double time = member.timing.seconds.empty() ? plot::kNone : stat::mean(member.timing.seconds),
                   peak = member.series.peak_mem;
      const std::string status(stat::name(member.judgement.status)), digest = member.run->attribute("state_digest");
      const bool failed = member.judgement.status > stat::RunStatus::unknown;
      grid.rows.push_back(
          {{Text(code(condition->name))},
           {Text(code(member.run->name))},
           {failed ? Text(bad(status)) : Text(status)},
           last == points.rend() ? Cell{Text("-")} : Cell{Text(loss_text(last->loss)), last->loss},
           std::isfinite(time) ? Cell{Text(plot::time_unit(time).text(time)), time} : Cell{Text("-")},
           metric::is_absent(peak) ? Cell{Text("-")} : Cell{Text(plot::bytes_unit(peak).text(peak)), peak},
           {digest.empty() ? Text("-") : Text(code(digest))}});
    }
  }
  section.blocks.emplace_back(std::move(grid));
  return section;
}

/// Load, clocks and nodes: what else may have differed.
Text conditions_of_measurement(const Findings& found) {
  std::set<std::string> hosts;
  for (const Condition& condition : found.conditions) {
    for (const stat::Member& member : condition.members) {
      if (!member.run->attribute("host").empty()) hosts.insert(member.run->attribute("host"));
    }
  }
  if (hosts.empty()) return "The records do not say on which host the runs were.";
  if (hosts.size() == 1) return Text("All runs were on ") + Text(code(*hosts.begin())) + Text(".");
  return Text("The runs were on " + counted(hosts.size(), "host") + ": a difference in time may be one between hosts.");
}

const Condition& chosen(const Findings& found, const std::string& name) {
  if (name.empty()) return found.conditions.front();
  std::vector<std::string> all;
  for (const Condition& condition : found.conditions) {
    if (condition.name == name) return condition;
    all.push_back(condition.name);
  }
  throw UsageError("no condition '" + name + "' to be the baseline" + did_you_mean(name, all));
}

}  // namespace

Document revision(const metric::Store& store, const Findings& found, const std::string& source,
                  const std::string& folder, const Gate& gate) {
  if (found.conditions.size() < 2)
    throw Error(source, 0, "a comparison of revisions needs two conditions (zs-aggregate --by revision)");
  const Condition& baseline = chosen(found, gate.baseline);
  std::vector<Comparison> comparisons;
  for (const Condition& condition : found.conditions) {
    if (&condition == &baseline) continue;
    Comparison one;
    one.other = &condition;
    const std::vector<Ratio> ratios = holm({{times(baseline), times(condition)}, {peaks(baseline), peaks(condition)}});
    one.time_ratio = ratios[0], one.memory_ratio = ratios[1];
    one.numerics = numerics(store, baseline, condition);
    one.time = judged(ratios[0], gate.max_slowdown, "slower", "faster");
    one.memory = judged(ratios[1], gate.max_slowdown, "more memory", "less memory");
    comparisons.push_back(std::move(one));
  }
  Document document;
  document.title = comparisons.size() == 1
                       ? "Comparison of " + comparisons[0].other->name + " with " + baseline.name
                       : "Comparison of " + counted(comparisons.size(), "revision") + " with " + baseline.name;
  document.verdict = found.bad.empty() ? Verdict::good : Verdict::bad;
  for (const Condition* const failed : found.bad) {
    document.verdict_text += code(failed->name) + Text(" ") + Text(bad(status_text(*failed))) + Text(". ");
  }
  for (const Comparison& one : comparisons) {
    document.verdict_text += code(one.other->name) + Text(" against ") + code(baseline.name) + Text(": ") +
                             one.numerics.text + Text(". Time: ") + one.time.text + Text(". Memory: ") +
                             one.memory.text + Text(". ");
    for (const Answer* const answer : {&one.numerics, &one.time, &one.memory})
      document.verdict = worst(document.verdict, answer->verdict);
  }
  document.label = document.verdict == Verdict::good  ? "Same or better"
                   : document.verdict == Verdict::bad ? "Worse or different"
                                                      : "Inconclusive";

  Tracer tracer(document, folder);
  Section summary{"Executive summary", {}};
  Grid grid{"",
            {"revision", "numerics", "time, ratio (interval)", "memory, ratio (interval)"},
            {false, false, true, true},
            {}};
  for (const Comparison& one : comparisons) {
    grid.rows.push_back({{Text(code(one.other->name))},
                         {one.numerics.text},
                         {Text(printed(one.time_ratio)), one.time_ratio.value},
                         {Text(printed(one.memory_ratio)), one.memory_ratio.value}});
  }
  summary.blocks.emplace_back(std::move(grid));
  summary.blocks.emplace_back(Paragraph{
      Text("A ratio above 1 is slower, or more memory, than ") + code(baseline.name) +
      Text(". Intervals are over runs, 95 % together for time and memory (Holm), from Welch's test on logarithms of "
           "the runs' means; a change is found in four cases of five if it is as large as the smallest one named.")});
  if (std::any_of(found.conditions.begin(), found.conditions.end(),
                  [](const Condition& c) { return c.curve != nullptr; })) {
    plot::Options options;
    const auto warmup = store.attributes.find("warmup");
    if (warmup != store.attributes.end()) options.warmup = warmup->second;
    try {
      summary.blocks.emplace_back(Picture{"revision_comparison", "final loss, iteration time, memory and loss curves",
                                          plot::revision_figure(found.conditions, options)});
    } catch (const Error& missing) {
      summary.blocks.emplace_back(Paragraph{Text("There is no figure: ") + Text(missing.what()) + Text(".")});
    }
  }
  document.sections.push_back(std::move(summary));
  document.sections.push_back(setup_section(found));
  document.sections.push_back(runs_section(baseline, comparisons));
  document.sections.push_back(loss_section(found, tracer));
  document.sections.push_back(performance_section(store, found, tracer));
  document.sections.push_back(memory_section(found, tracer));
  Section quality = quality_section(store, found);
  quality.blocks.emplace_back(Paragraph{conditions_of_measurement(found)});
  document.sections.push_back(std::move(quality));
  document.sections.push_back(appendix_section(store, found, source));
  return document;
}

}  // namespace zs::report
