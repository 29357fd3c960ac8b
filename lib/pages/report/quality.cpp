// SPDX-License-Identifier: Apache-2.0
// How far the data can be trusted, what to do, and where every number came from.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/number.hpp"
#include "report/batch.hpp"
#include "summary/unit.hpp"

namespace zs::report {
namespace {

constexpr std::size_t kFewPoints = 10;  // fewer make a wide interval, and one outlier moves the mean

/// Remarks, each once, with all that it is about.
class Remarks {
 public:
  void add(const Condition& condition, const std::string& sentence) {
    const auto found = std::ranges::find_if(all_, [&](const auto& one) { return one.first == sentence; });
    auto& about = (found == all_.end() ? all_.insert(found, {sentence, {}}) : found)->second;
    if (about.empty() || about.back() != &condition) about.push_back(&condition);
  }
  std::vector<Text> texts() const {
    std::vector<Text> made;
    for (const auto& [sentence, about] : all_) made.push_back(say("{}: {}", names(about), sentence));
    return made;
  }

 private:
  std::vector<std::pair<std::string, std::vector<const Condition*>>> all_;
};

/// Checks the records of one condition.
void examine(const Condition& condition, Remarks& remarks) {
  for (const summary::Member& member : condition.members) {
    const stat::Series& series = member.series();
    const std::size_t timed =
        member.count("time_given") - std::min(member.count("warmup_points"), member.count("time_given"));
    const std::string which = condition.members.size() > 1 ? "run " + member.run->name + ": " : "";
    const auto remark = [&](const std::string& text) { remarks.add(condition, which + text); };
    std::size_t not_finite = 0, silent = 0, impossible = 0;
    std::int64_t last = metric::kAbsentInteger;
    std::vector<std::int64_t> strides;
    for (const stat::Point& point : series.points) {
      if (metric::is_absent(point.loss))
        ++silent;
      else
        not_finite += !std::isfinite(point.loss);
      impossible += !metric::is_absent(point.time) && !(point.time > 0 && std::isfinite(point.time));
      if (metric::is_absent(point.step)) continue;
      if (!metric::is_absent(last)) strides.push_back(point.step - last);
      last = point.step;
    }
    // The usual distance is the middle one: the first and the last step are often logged out of turn.
    std::ranges::sort(strides);
    const std::int64_t stride = strides.empty() ? 0 : strides[strides.size() / 2];
    const auto gaps =
        static_cast<std::size_t>(strides.end() - std::upper_bound(strides.begin(), strides.end(), stride));
    const std::string of_points = " of " + std::to_string(series.points.size());
    if (not_finite > 0) remark(counted(not_finite, "loss value") + of_points + " not finite.");
    if (impossible > 0)
      remark(counted(impossible, "iteration time") + of_points + " not a time: not above 0, or not finite.");
    if (const auto peak = member["peak_mem"]; peak && !(*peak > 0))
      remark("the peak memory is " + to_text(*peak) + " bytes.");
    if (silent > 0 && silent < series.points.size())
      remark(counted(silent, "logged step") + of_points + " without a loss.");
    if (silent > 0 && silent == series.points.size()) remark("no loss at any logged step.");
    if (gaps > 0)
      remark(counted(gaps, "gap") + " between logged steps, which are otherwise " + to_text(stride) + " apart.");
    if (const std::size_t replaced = member.count("replaced_points"); replaced > 0)
      remark(counted(replaced, "point") + " logged again after a restart; the later ones count.");
    if (const std::size_t outliers = member.count("time_outliers"); outliers > 0) {
      const std::size_t removed = member.count("time_removed");
      remark(counted(outliers, "iteration time") + " of " + std::to_string(timed) + (outliers == 1 ? " lies" : " lie") +
             " further than 3.5 scaled median deviations from the median" +
             (removed > 0 ? "; " + std::to_string(removed) + " left out." : "."));
    }
    for (const auto& [key, value] : member.run->attributes) {
      if (key.find("fault") != std::string::npos && value != "0")
        remark("the parser noted " + key + " = " + value + ".");
    }
    if (!condition.bad() && member.count("time_given") > 0 && timed < kFewPoints) {
      remark("only " + counted(timed, "iteration time") + " after warm-up: its interval is weak.");
    }
  }
}

/// The checksum of a run's log, after its name, from zs-parse; a small log has SHA-256, a large one XXH128.
std::pair<std::string, std::string> checksum(const metric::Run& run) {
  const std::string sha = run.attribute("source_sha256");
  return sha.empty() ? std::pair{std::string("XXH128 "), run.attribute("source_xxh128")}
                     : std::pair{std::string("SHA-256 "), sha};
}

}  // namespace

std::string failed_count(const Findings& found) {
  return std::to_string(found.bad.size()) + " of " + counted(found.conditions.size(), "condition") +
         " did not complete: ";
}

std::string all_counted(std::size_t count, const std::string& noun) {
  if (count == 1) return "The one " + noun;
  if (count == 2) return "Both " + noun + "s";
  return "All " + counted(count, noun);
}

Section quality_section(const metric::Store& store, const Findings& found) {
  Section section{"Data quality", {}};
  List list;
  for (const Condition* const condition : found.bad)
    list.items.push_back(
        say("{}: {}{}", code(condition->name), bad(status_text(*condition)),
            condition->count("points") == 0 ? "; it has no values." : "; what it logged is shown but not compared."));
  if (!found.unknown.empty())
    list.items.push_back(say("{}: {} or may not be complete; the records do not say how many steps were expected.",
                             names(found.unknown), found.unknown.size() == 1 ? "it may" : "they may"));
  Remarks remarks;
  for (const Condition& condition : found.conditions) examine(condition, remarks);
  for (Text& text : remarks.texts()) list.items.push_back(std::move(text));
  std::map<std::string, std::vector<std::string>> hosts;
  std::size_t unsourced = 0, records = 0;
  for (const metric::Run& run : store.runs) {
    if (!run.attribute("host").empty()) hosts[run.attribute("host")].push_back(run.name);
    unsourced += checksum(run).second.empty();
    records += run.records.rows();
  }
  const auto remark = [&](const Text& text) { list.items.push_back(text); };
  if (hosts.size() > 1)
    remark(say("The runs were on {}: differences in time may be differences between hosts.",
               counted(hosts.size(), "host")));
  if (!store.runs.empty() && store.tables.count("runs") == 0)
    remark(
        "The summary does not say what its runs come to (another zs-aggregate made it): make it again from the "
        "records.");
  if (store.runs.empty())
    remark("The summary does not hold the runs it was made from: its numbers cannot be traced.");
  else if (unsourced > 0)
    remark(say("For {} of {} no checksum of the log was kept.", counted(unsourced, "run"),
               std::to_string(store.runs.size())));
  if (!found.without_digest.empty() && found.without_digest.size() < found.healthy.size())
    remark(say("Without a state digest: {}.", names(found.without_digest)));
  const std::string size = counted(records, "record") + " in " + counted(store.runs.size(), "run");
  if (list.items.empty()) {
    section.blocks.emplace_back(
        Paragraph{say("Nothing is wrong with the data: {}, every loss finite, steps in order without gaps, no outlying "
                      "iteration time.",
                      size)});
  } else {
    section.blocks.emplace_back(Paragraph{say("{} on {}:", counted(list.items.size(), "remark"), size)});
    section.blocks.emplace_back(std::move(list));
  }
  return section;
}

namespace {

/// The condition to choose for its time, if the data decide it.
Text time_advice(const Findings& found) {
  const Best& time = found.time;
  if (!time.intervals)
    return "none; a difference between single runs is not a reason to choose. Repeat each condition to get an "
           "interval.";
  if (!time.level.empty())
    return say("none; the intervals do not support a choice between {} and {}. More repeated runs would narrow them.",
               code(time.winner->name), names(time.level));
  return say("{}. The intervals support it.", code(time.winner->name));
}

Text memory_advice(const Best& memory) {
  if (memory.level.empty()) return say("{}.", code(memory.winner->name));
  if (memory.level.size() + 1 == memory.compared) return "none; all are within one percent.";
  return say("{} or {}, which are within one percent.", code(memory.winner->name), names(memory.level));
}

Text loss_advice(const Findings& found) {
  const Best& loss = found.loss;
  if (found.losses.equal) return "none is better; the losses are equal.";
  if (!found.unlike_work.empty()) return say("none; {}.", found.unlike_work);
  if (!loss.intervals)
    return "none; a difference between single runs is not a reason to choose. Repeat each condition with other seeds "
           "to "
           "get an interval.";
  if (loss.compared < 2) return {};
  if (loss.level.empty())
    return say("{}. The 95 % interval of its final loss over its runs lies below every other.",
               code(loss.winner->name));
  return say("none; the intervals of the final loss over runs overlap between {} and {}.", code(loss.winner->name),
             names(loss.level));
}

}  // namespace

Section recommendation_section(const Findings& found) {
  Section section{"Recommendations", {}};
  List list;
  const auto advise = [&](const char* what, const Text& text) {
    if (!text.empty()) list.items.push_back(say("{}{}", strong(what), text));
  };
  if (!found.bad.empty())
    list.items.push_back(say(
        "Find out why {} did not complete before using this comparison; the exit code and the end of the log are the "
        "place to start.",
        names(found.bad)));
  if (found.digests_differ())
    list.items.push_back(say(
        "Do not choose by speed before the difference in bits is explained: run {} on the first two conditions that "
        "differ.",
        code("zs-verify")));
  const bool fair = found.unlike_work.empty();
  if (!fair && found.time.compared + found.memory.compared > 2)
    advise("For time and memory: ",
           say("none; the conditions are not known to do the same work: {}.", found.unlike_work));
  if (fair && found.time.compared > 1) advise("For time: ", time_advice(found));
  if (fair && found.memory.compared > 1) advise("For memory: ", memory_advice(found.memory));
  if (found.healthy.size() > 1 && found.losses.pairs > 0) advise("For loss: ", loss_advice(found));
  if (!found.without_digest.empty() && found.healthy.size() > 1)
    list.items.push_back(
        say("Train with {}, or log a state digest, to learn whether the conditions compute the same bits.",
            code("zs-train")));
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
  const bool wandb =
      std::ranges::any_of(store.runs, [](const metric::Run& run) { return !run.attribute("wandb_run").empty(); });
  if (wandb) logs.header.push_back("W&B run"), logs.numeric.push_back(false);
  for (const metric::Run& run : store.runs) {
    const auto cell = [&](const std::string& value, const std::string& kind = "") {
      return Cell{value.empty() ? Text("-") : say("{}{}", kind, code(value))};
    };
    const auto [kind, sum] = checksum(run);
    logs.rows.push_back({{Text(code(run.name))},
                         cell(run.attribute("source")),
                         cell(sum, kind),
                         cell(run.attribute("exit_code")),
                         cell(run.attribute("state_digest"))});
    if (wandb) logs.rows.back().push_back(cell(run.attribute("wandb_run")));
  }
  logs.folded = true;
  if (!logs.rows.empty()) section.blocks.emplace_back(std::move(logs));
  Grid commands{"Commands", {"run", "command"}, {false, false}, {}};
  for (const metric::Run& run : store.runs) {
    if (!run.attribute("command").empty())
      commands.rows.push_back({{Text(code(run.name))}, {Text(code(run.attribute("command")))}});
  }
  commands.folded = true;
  if (!commands.rows.empty()) section.blocks.emplace_back(std::move(commands));
  Grid about{"This summary", {"what", "value"}, {false, false}, {}};
  about.rows.push_back({{Text("input")}, {Text(code(source))}});
  for (const auto& [key, value] : store.attributes) {
    if (!value.empty()) about.rows.push_back({{Text(key)}, {Text(value)}});
  }
  about.rows.push_back({{Text("conditions")}, {Text(std::to_string(found.conditions.size()))}});
  about.folded = true;
  section.blocks.emplace_back(std::move(about));
  return section;
}

}  // namespace zs::report
