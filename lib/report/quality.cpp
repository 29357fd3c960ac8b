// SPDX-License-Identifier: Apache-2.0
// How far the data can be trusted, what to do, and where every number came from.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/number.hpp"
#include "report/batch.hpp"
#include "summary/unit.hpp"

namespace zs::report {
namespace {

constexpr std::size_t kFewPoints = 10;  // fewer make a wide interval, and one outlier moves the mean

Text about(const Condition& condition, const std::string& sentence) {
  return code(condition.name) + Text(": " + sentence);
}

/// What is wrong with the records of one condition.
void examine(const Condition& condition, std::vector<Text>& remarks) {
  for (const summary::Member& member : condition.members) {
    const stat::Series& series = member.series;
    const std::size_t timed = member.time_given - std::min(member.warmup_points, member.time_given);
    const std::string which = condition.members.size() > 1 ? "run " + member.run->name + ": " : "";
    const auto remark = [&](const std::string& text) { remarks.push_back(about(condition, which + text)); };
    std::size_t wild = 0, silent = 0, impossible = 0;
    std::int64_t last = metric::kAbsentInteger;
    std::vector<std::int64_t> strides;
    for (const stat::Point& point : series.points) {
      if (metric::is_absent(point.loss))
        ++silent;
      else
        wild += !std::isfinite(point.loss);
      impossible += !metric::is_absent(point.time) && !(point.time > 0 && std::isfinite(point.time));
      if (metric::is_absent(point.step)) continue;
      if (!metric::is_absent(last)) strides.push_back(point.step - last);
      last = point.step;
    }
    // The usual distance is the middle one: the first and the last step are often logged out of turn.
    std::sort(strides.begin(), strides.end());
    const std::int64_t stride = strides.empty() ? 0 : strides[strides.size() / 2];
    const auto gaps =
        static_cast<std::size_t>(strides.end() - std::upper_bound(strides.begin(), strides.end(), stride));
    const std::string of = " of " + std::to_string(series.points.size());
    if (wild > 0) remark(counted(wild, "loss value") + of + " not finite.");
    if (impossible > 0) remark(counted(impossible, "iteration time") + of + " not a time: not above 0, or not finite.");
    if (member.peak_mem && !(*member.peak_mem > 0))
      remark("the peak memory is " + to_text(*member.peak_mem) + " bytes.");
    if (silent > 0 && silent < series.points.size()) remark(counted(silent, "logged step") + of + " without a loss.");
    if (silent > 0 && silent == series.points.size()) remark("no loss at any logged step.");
    if (gaps > 0)
      remark(counted(gaps, "gap") + " between logged steps, which are otherwise " + to_text(stride) + " apart.");
    if (series.replaced > 0)
      remark(counted(series.replaced, "point") + " logged again after a restart; the later ones count.");
    if (member.time_outliers > 0) {
      remark(counted(member.time_outliers, "iteration time") + " of " + std::to_string(timed) +
             (member.time_outliers == 1 ? " lies" : " lie") +
             " further than 3.5 scaled median deviations from the median" +
             (member.time_removed > 0 ? "; " + std::to_string(member.time_removed) + " left out." : "."));
    }
    for (const auto& [key, value] : member.run->attributes) {
      if (key.find("fault") != std::string::npos && value != "0")
        remark("the parser noted " + key + " = " + value + ".");
    }
    if (!condition.bad() && member.time_given > 0 && timed < kFewPoints) {
      remark("only " + counted(timed, "iteration time") + " after warm-up: its interval is weak.");
    }
  }
}

/// The checksum of a run's log, behind its name, as zs-parse gives it; a small log has SHA-256, a large one XXH128.
std::pair<std::string, std::string> checksum(const metric::Run& run) {
  const std::string sha = run.attribute("source_sha256");
  return sha.empty() ? std::pair{std::string("XXH128 "), run.attribute("source_xxh128")}
                     : std::pair{std::string("SHA-256 "), sha};
}

}  // namespace

Section quality_section(const metric::Store& store, const Findings& found) {
  Section section{"Data quality", {}};
  List list;
  for (const Condition* const condition : found.bad) {
    list.items.push_back(code(condition->name) + Text(": ") + Text(bad(status_text(*condition))) +
                         Text(condition->points.value_or(0) == 0 ? "; it has no values."
                                                                 : "; what it logged is shown but not compared."));
  }
  if (!found.unknown.empty()) {
    list.items.push_back(names(found.unknown) +
                         Text(": whether " + std::string(found.unknown.size() == 1 ? "it is" : "they are") +
                              " complete cannot be told; the records do not say how many steps were expected."));
  }
  for (const Condition& condition : found.conditions) examine(condition, list.items);
  std::map<std::string, std::vector<std::string>> hosts;
  std::size_t unsourced = 0, records = 0;
  for (const metric::Run& run : store.runs) {
    if (!run.attribute("host").empty()) hosts[run.attribute("host")].push_back(run.name);
    unsourced += checksum(run).second.empty();
    records += run.records.rows();
  }
  if (hosts.size() > 1) {
    list.items.push_back(Text("The runs were on " + counted(hosts.size(), "host") +
                              ": differences in time may be differences between hosts."));
  }
  if (!store.runs.empty() && store.tables.count("runs") == 0) {
    list.items.emplace_back(
        "The summary does not say what its runs come to (another zs-aggregate made it): make it again from the "
        "records.");
  }
  if (store.runs.empty())
    list.items.emplace_back("The summary does not hold the runs it was made from: its numbers cannot be traced.");
  else if (unsourced > 0)
    list.items.push_back(Text("For " + counted(unsourced, "run") + " of " + std::to_string(store.runs.size()) +
                              " no checksum of the log was kept."));
  if (!found.without_digest.empty() && found.without_digest.size() < found.healthy.size()) {
    list.items.push_back(Text("Without a state digest: ") + names(found.without_digest) + Text("."));
  }
  if (list.items.empty()) {
    section.blocks.emplace_back(Paragraph{Text(
        "Nothing is wrong with the data: " + counted(records, "record") + " in " + counted(store.runs.size(), "run") +
        ", every loss finite, steps in order without gaps, no outlying iteration time.")});
  } else {
    section.blocks.emplace_back(
        Paragraph{Text(counted(list.items.size(), "remark") + " on " + counted(records, "record") + " in " +
                       counted(store.runs.size(), "run") + ":")});
    section.blocks.emplace_back(std::move(list));
  }
  return section;
}

Section recommendation_section(const Findings& found) {
  Section section{"Recommendations", {}};
  List list;
  if (!found.bad.empty())
    list.items.push_back(Text("Find out why ") + names(found.bad) +
                         Text(" did not complete before using this comparison; the exit code and the end of the log "
                              "are the place to start."));
  if (found.digests_differ())
    list.items.push_back(Text("Do not choose by speed before the difference in bits is explained: run ") +
                         Text(code("zs-verify")) + Text(" on the first two conditions that differ."));
  const Best& time = found.time;
  const Best& memory = found.memory;
  const bool fair = found.unlike_work.empty();
  if (!fair && time.compared + memory.compared > 2) {
    list.items.push_back(Text(strong("For time and memory: ")) +
                         Text("none; the conditions are not known to do the same work: " + found.unlike_work + "."));
  }
  if (fair && time.compared > 1 && time.intervals && time.level.empty()) {
    std::int64_t fewest = time.winner->time_points.value_or(0);
    for (const Condition* const one : found.healthy) {
      if (one->time_mean) fewest = std::min(fewest, one->time_points.value_or(fewest));
    }
    const bool few = fewest < static_cast<std::int64_t>(kFewPoints) && time.winner->runs.value_or(1) == 1;
    list.items.push_back(Text(strong("For time: ")) + code(time.winner->name) + Text(". The intervals support it") +
                         Text(few ? ", though they come from as few as " +
                                        counted(static_cast<std::size_t>(std::max<std::int64_t>(0, fewest)), "step") +
                                        "."
                                  : ".") +
                         Text(time.winner->runs.value_or(1) == 1
                                  ? " Each condition ran once: on a busy machine a repeat may differ by more."
                                  : ""));
  } else if (fair && time.compared > 1) {
    list.items.push_back(Text(strong("For time: ")) + Text("none; the intervals do not support a choice") +
                         (time.level.empty()
                              ? Text()
                              : Text(" between ") + code(time.winner->name) + Text(" and ") + names(time.level)) +
                         Text(". More steps, or repeated runs, would narrow them."));
  }
  if (fair && memory.compared > 1 && memory.level.empty())
    list.items.push_back(Text(strong("For memory: ")) + code(memory.winner->name) + Text("."));
  else if (fair && memory.compared > 1 && memory.level.size() + 1 < memory.compared) {
    list.items.push_back(Text(strong("For memory: ")) + code(memory.winner->name) + Text(" or ") + names(memory.level) +
                         Text(", which are within one percent."));
  } else if (fair && memory.compared > 1) {
    list.items.push_back(Text(strong("For memory: ")) + Text("none; all are within one percent."));
  }
  if (found.healthy.size() > 1 && found.losses.pairs > 0) {
    const Best& loss = found.loss;
    if (found.losses.equal) {
      list.items.push_back(Text(strong("For loss: ")) + Text("none is better; the losses are equal."));
    } else if (!fair) {
      list.items.push_back(Text(strong("For loss: ")) + Text("none; " + found.unlike_work + "."));
    } else if (!loss.intervals) {
      list.items.push_back(Text(strong("For loss: ")) +
                           Text("none; a difference between single runs is not a reason to choose. Repeat each "
                                "condition with other seeds to get an interval."));
    } else if (loss.compared > 1 && loss.level.empty()) {
      list.items.push_back(Text(strong("For loss: ")) + code(loss.winner->name) +
                           Text(". The 95 % interval of its final loss over its runs lies below every other."));
    } else if (loss.compared > 1) {
      list.items.push_back(Text(strong("For loss: ")) +
                           Text("none; the intervals of the final loss over runs overlap between ") +
                           code(loss.winner->name) + Text(" and ") + names(loss.level) + Text("."));
    }
  }
  if (!found.without_digest.empty() && found.healthy.size() > 1) {
    list.items.push_back(Text("Train with ") + Text(code("zs-train")) +
                         Text(", or log a state digest, to learn whether the conditions compute the same bits."));
  }
  if (list.items.empty())
    section.blocks.emplace_back(Paragraph{"The data support no recommendation."});
  else
    section.blocks.emplace_back(std::move(list));
  return section;
}

Section appendix_section(const metric::Store& store, const Findings& found, const std::string& source) {
  Section section{"Appendix", {}};
  Grid logs{"Runs and their logs",
            {"run", "log", "checksum of the log", "exit code", "state digest"},
            {false, false, false, false, false},
            {}};
  for (const metric::Run& run : store.runs) {
    const auto cell = [&](const std::string& value, const std::string& kind = "") {
      return Cell{value.empty() ? Text("-") : Text(kind) + Text(code(value))};
    };
    const auto [kind, sum] = checksum(run);
    logs.rows.push_back({{Text(code(run.name))},
                         cell(run.attribute("source")),
                         cell(sum, kind),
                         cell(run.attribute("exit_code")),
                         cell(run.attribute("state_digest"))});
  }
  if (!logs.rows.empty()) section.blocks.emplace_back(std::move(logs));
  Grid commands{"Commands", {"run", "command"}, {false, false}, {}};
  for (const metric::Run& run : store.runs) {
    if (!run.attribute("command").empty())
      commands.rows.push_back({{Text(code(run.name))}, {Text(code(run.attribute("command")))}});
  }
  if (!commands.rows.empty()) section.blocks.emplace_back(std::move(commands));
  Grid about{"This summary", {"what", "value"}, {false, false}, {}};
  about.rows.push_back({{Text("input")}, {Text(code(source))}});
  for (const auto& [key, value] : store.attributes) {
    if (!value.empty()) about.rows.push_back({{Text(key)}, {Text(value)}});
  }
  about.rows.push_back({{Text("conditions")}, {Text(std::to_string(found.conditions.size()))}});
  section.blocks.emplace_back(std::move(about));
  return section;
}

}  // namespace zs::report
