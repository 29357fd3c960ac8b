// SPDX-License-Identifier: Apache-2.0
#include "comparison/two_runs.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "attribute/difference.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoints/folders.hpp"
#include "compare/ledger.hpp"
#include "compare/measure.hpp"
#include "compare/records.hpp"
#include "input/source.hpp"
#include "metric/file.hpp"
#include "stat/status.hpp"
#include "stat/steps.hpp"

namespace zs::comparison {
namespace {

using compare::Settled;
using compare::Verdict;

/// Whether one is a copy of the other: the same run, timed the same.
bool copies(const metric::Run& a, const metric::Run& b) {
  const std::string id = a.attribute("run_id");
  const metric::Column *const x = a.records.find("iteration_time"), *const y = b.records.find("iteration_time");
  return !id.empty() && id == b.attribute("run_id") && x && y && x->type() == metric::Type::real &&
         y->type() == metric::Type::real && x->reals() == y->reals();
}

class Comparison {
 public:
  Comparison(const Recorded& a, const Recorded& b, const compare::Tolerance& tolerance)
      : a_(a), b_(b), tolerance_(tolerance) {}

  Answer run(const std::vector<std::string>& columns) {
    records(columns);
    if (columns.empty()) {
      digests();
      checkpoints();
    }
    health();
    roles();
    verdict();
    return std::move(answer_);
  }

 private:
  const Recorded& a_;
  const Recorded& b_;
  const compare::Tolerance& tolerance_;
  Answer answer_, notes_;
  std::vector<std::string> failures_, doubts_;
  std::string because_;  // the reason, if an attribute of the runs is one
  bool digests_differ_ = false, not_finite_ = false;
  compare::Holdings held_a_, held_b_;                   // records, state_digest, checkpoints and their files
  std::vector<std::pair<std::string, Verdict>> found_;  // the verdict for each of these
  Verdict least_ = Verdict::exact;

  void note(const std::string& key, const std::string& value) { notes_.lines.emplace_back(key, value); }

  void holds(const std::string& thing) { held_a_.add(thing), held_b_.add(thing); }

  void join(Verdict verdict) { least_ = std::max(least_, verdict); }

  Settled settled() const {
    compare::Ledger ledger(held_a_, held_b_);
    for (const auto& [thing, verdict] : found_) ledger.compared(thing, verdict);
    ledger.at_least(least_);
    return ledger.settle();
  }

  void records(const std::vector<std::string>& columns) {
    const auto side = [](const Recorded& one) {
      const std::int64_t stride = stat::log_interval(one.run, stat::series(one.run));
      return compare::Side{one.path, &one.run.records, one.precision, metric::is_absent(stride) ? 0 : stride};
    };
    const auto found = compare::records(side(a_), side(b_), tolerance_, columns);
    holds("records");
    found_.emplace_back("records", found.verdict);
    for (const compare::Reason& reason : found.reasons) {
      failures_.push_back(reason.text);
      not_finite_ = not_finite_ || reason.not_finite;
    }
    if (found.first) first(*found.first);
    note("rows", to_text(found.rows));
    for (const auto& [alone, with, without] : {std::tuple(found.alone_a, &a_, &b_), {found.alone_b, &b_, &a_}}) {
      if (alone == 0) continue;
      note("rows_alone", to_text(alone) + " in " + with->path + ", which " + without->path +
                             " leaves out: it has every " +
                             to_text(stat::log_interval(without->run, stat::series(without->run))) + " steps");
    }
    const auto guessed = [](const Recorded& one) {
      return one.run.attribute("log_interval").empty() && stat::series(one.run).points.size() < 3;
    };
    if (found.alone_a > 0 && found.alone_b > 0 && (guessed(a_) || guessed(b_)))
      doubts_.emplace_back("each has rows that the other lacks, and two rows do not show an interval: log more steps");
    std::vector<std::string> compared, only;
    std::int64_t values = 0, differing = 0;
    for (const auto& column : found.columns) {
      compared.push_back(column.name);
      values += column.compared, differing += column.differing;
      if (column.name == "state_digest") digests_differ_ = column.differing > 0;
    }
    note("compared", compared.empty() ? "nothing" : joined(compared));
    note("values", differing == 0 ? "no difference in " + to_text(values)
                                  : to_text(differing) + " of " + to_text(values) + " differ");
    for (const auto& name : found.only_a) only.push_back(name + " is only in " + a_.path);
    for (const auto& name : found.only_b) only.push_back(name + " is only in " + b_.path);
    if (!only.empty()) {
      note("not compared", joined(only));
      doubts_.push_back(joined(only) + ": --columns compares what you name");
    }
    if (found.without_loss > 0) {
      doubts_.push_back("neither has a loss in " + to_text(found.without_loss) + " of " + to_text(found.rows) +
                        " rows, the first at " + to_text(found.first_without_loss));
    }
    if (found.repeated_a + found.repeated_b > 0) {
      note("restarts", "rows that a later attempt gave again, compared too: " + to_text(found.repeated_a) + " in " +
                           a_.path + ", " + to_text(found.repeated_b) + " in " + b_.path);
    }
    table(found);
  }

  void table(const compare::Records& found) {
    using metric::Type;
    metric::Table& table = answer_.columns;
    table.columns = {{"column", "", Type::text},  {"rows", "", Type::integer}, {"differing", "", Type::integer},
                     {"abs", "", Type::real},     {"rel", "", Type::real},     {"ulp", "ulp", Type::integer},
                     {"known_to", "", Type::text}};
    for (const auto& column : found.columns) {
      table.find("column")->texts().push_back(column.name);
      table.find("rows")->integers().push_back(column.compared);
      table.find("differing")->integers().push_back(column.differing);
      table.find("abs")->reals().push_back(column.largest.absolute);
      table.find("rel")->reals().push_back(column.largest.relative);
      table.find("ulp")->integers().push_back(column.largest.ulp);
      table.find("known_to")->texts().push_back(column.known_to);
    }
  }

  void first(const compare::Pair& pair) {
    const auto add = [&](const std::string& key, const std::string& value) { answer_.lines.emplace_back(key, value); };
    const compare::Place& place = pair.place;
    if (!metric::is_absent(place.epoch)) add("epoch", to_text(place.epoch));
    add(metric::is_absent(place.step) ? "row" : "step",
        to_text(metric::is_absent(place.step) ? place.count : place.step));
    if (place.rank != 0) add("rank", to_text(place.rank));
    if (place.attempt != 1) add("attempt", to_text(place.attempt));
    add("what", pair.column);
    add(a_.path, pair.a);
    add(b_.path, pair.b);
    if (!pair.values) return;
    const auto [x, y] = *pair.values;
    add(a_.path + "_hex", compare::hexadecimal(x));
    add(b_.path + "_hex", compare::hexadecimal(y));
    add("difference", to_text(std::fabs(x - y)));
    if (const auto units = pair.decimals ? std::round(std::fabs(x - y) * std::pow(10.0, *pair.decimals)) : 0;
        units >= 1 && units < 1e15) {  // the bits behind the printed digits are not known
      const auto count = static_cast<std::int64_t>(units);
      add("last_digit", to_text(count) + (count == 1 ? " unit" : " units") + " of the last digit printed, " +
                            to_text(std::pow(10.0, -*pair.decimals)));
      return;
    }
    const auto [ulp, narrow] = compare::ulps(x, y);
    add("ulp", to_text(ulp) + (narrow ? " (float32)" : " (float64)"));
  }

  void digests() {
    const std::string left = a_.run.attribute("state_digest"), right = b_.run.attribute("state_digest");
    if (!left.empty()) held_a_.add("state_digest");
    if (!right.empty()) held_b_.add("state_digest");
    if (!left.empty() && !right.empty())
      found_.emplace_back("state_digest", left == right        ? Verdict::exact
                                          : tolerance_.exact() ? Verdict::different
                                                               : Verdict::within);
    if (left.empty() != right.empty()) {
      note("state_digest", "only in " + (left.empty() ? b_ : a_).path);
      doubts_.push_back("only " + (left.empty() ? b_ : a_).path + " has a state digest: the parameters of the other " +
                        "are not known");
    } else if (left.empty()) {
      note("state_digest", "in neither: nothing is known of the parameters");
    } else if (left == right) {
      note("state_digest", "equal: all parameters after the last step are the same bits");
    } else {
      digests_differ_ = true;
      if (answer_.lines.empty() && tolerance_.exact())
        answer_.lines = {{"what", "state_digest"}, {a_.path, left}, {b_.path, right}};
      note("state_digest",
           tolerance_.exact() ? "different: " + left + " and " + right : "different: a digest knows no tolerance");
    }
  }

  void checkpoints() {
    if (a_.folder.empty() || b_.folder.empty()) {  // a metric file or a log was named, and no run
      if (!a_.folder.empty() || !b_.folder.empty())
        note("checkpoints", "not compared: " + (a_.folder.empty() ? a_ : b_).path + " is one file");
      return;
    }
    const auto left = a_.checkpoints(), right = b_.checkpoints();
    const auto only = [&](const std::string& name, const Recorded& side, compare::Holdings& holdings) {
      note(name, "only in " + side.path);
      doubts_.push_back(name + " is only in " + side.path);
      holdings.add(name);
    };
    bool parameters = false;
    for (const std::string& name : left) {
      if (std::ranges::find(right, name) == right.end()) {
        only(name, a_, held_a_);
        continue;
      }
      const Answer found =
          compare_states(a_.folder + "/" + name, b_.folder + "/" + name, tolerance_, {}, state::Extent::whole);
      holds(name), found_.emplace_back(name, found.verdict);
      add(compare::equal(found.verdict) ? notes_ : answer_, name, found);
      const auto reason = std::ranges::find(found.lines, "reason", [](const auto& line) { return line.first; });
      const std::string why = reason == found.lines.end() ? "not finite" : reason->second;
      if (found.verdict == Verdict::failed) failures_.push_back(name + ": " + why);
      if (found.verdict == Verdict::inconclusive) doubts_.push_back(name + ": " + why);
      parameters = true;
    }
    for (const std::string& name : right) {
      if (std::ranges::find(left, name) == left.end()) only(name, b_, held_b_);
    }
    if (digests_differ_ && !parameters)
      note("tensors", "no checkpoint that both have tells which parameter differs: train with --save_steps");
  }

  /// A run that is broken proves nothing, however equal it is to another.
  void health() {
    for (const Recorded* side : {&a_, &b_}) {
      const stat::Series series = stat::series(side->run);
      const stat::Judgement judgement = stat::judge(side->run, series);
      using stat::RunState;
      const bool found_already = judgement.status == RunState::diverged && not_finite_;
      if (!attribute::believable(judgement.status) && !found_already)
        failures_.push_back(side->path + " is " + std::string(attribute::name(judgement.status)) + ": " +
                            judgement.reason);
      // If the expected number of steps is unknown, they were not checked elsewhere.
      const stat::MissingSteps gap = stat::missing_steps(side->run, series);
      if (judgement.status == RunState::unknown && gap.count > 0)
        doubts_.push_back(to_text(gap.count) + " logged " + (gap.count == 1 ? "step is" : "steps are") +
                          " missing in " + side->path + ", the first is " + to_text(gap.first));
      if (!side->faults.empty())
        failures_.push_back(std::to_string(side->faults.size()) + " faults in " + side->path + ": " +
                            side->faults.front());
    }
    if (copies(a_.run, b_.run))
      failures_.push_back("both are the run " + a_.run.attribute("run_id") +
                          ", with the same times: one is a copy of the other");
  }

  /// The effect of the runs' attributes on differing bits. An attribute of only one run is unknown for the other: it
  /// explains other bits, and leaves equal ones equal.
  void roles() {
    if (a_.run.attributes.empty() || b_.run.attributes.empty()) return;
    auto differences = attribute::differences({&a_.run.attributes, &b_.run.attributes});
    const auto alone = std::ranges::stable_partition(
        differences, [](const attribute::Difference& one) { return !one.values[0].empty() && !one.values[1].empty(); });
    const std::vector<attribute::Difference> known(differences.begin(), alone.begin());
    layouts(known);
    if (attribute::expected_bits(known) == attribute::Bits::other_training) join(Verdict::not_comparable);
    if (settled() < Verdict::different) {
      if (!alone.empty()) note("not known", "whether they differ in " + attribute::text({alone.begin(), alone.end()}));
    } else if (const std::string reason = attribute::reason(differences); !reason.empty()) {
      because_ = "they " + reason;
    } else if (!differences.empty()) {
      note("layout", "they differ in " + attribute::text(differences) + ", which must not change a bit");
    }
  }

  /// If both ran on the same layout, perhaps by mistake, their equality proves nothing about another.
  void layouts(const std::vector<attribute::Difference>& differences) {
    bool known = true;
    for (const auto& [key, side] : {std::pair{"layout_a", &a_}, {"layout_b", &b_}}) {
      const std::string stage = attribute::value(side->run.attributes, "zero_stage"),
                        ranks = attribute::value(side->run.attributes, "world_size");
      known = known && !stage.empty() && !ranks.empty();
      if (!stage.empty() && !ranks.empty())
        note(key, "ZeRO stage " + stage + " on " + ranks + (ranks == "1" ? " rank" : " ranks"));
    }
    if (known && attribute::of_role(differences, attribute::Role::layout).empty())
      note("layouts", "the same on both sides, so this says nothing about other layouts");
  }

  void verdict() {
    if (!failures_.empty()) join(Verdict::failed);
    if (!doubts_.empty()) join(Verdict::inconclusive);
    answer_.verdict = settled();
    auto& lines = answer_.lines;
    std::vector<std::pair<std::string, std::string>> head = {{"verdict", std::string(compare::name(answer_.verdict))}};
    if (!because_.empty()) head.emplace_back("because", because_);
    if (!failures_.empty()) head.emplace_back("reason", reasons_text(failures_));
    if (answer_.verdict == Verdict::inconclusive) head.emplace_back("reason", reasons_text(doubts_));
    lines.insert(lines.begin(), head.begin(), head.end());
    lines.insert(lines.end(), notes_.lines.begin(), notes_.lines.end());
  }
};

}  // namespace

Answer compare_runs(const Recorded& a, const Recorded& b, const compare::Tolerance& tolerance,
                    const std::vector<std::string>& columns) {
  return Comparison(a, b, tolerance).run(columns);
}

namespace {

namespace fs = std::filesystem;

/// The records of a log, and its numbers as they are spelt.
class SpeltRows final : public metric::MemoryWriter {
 public:
  SpeltRows(metric::Run& run, std::map<std::string, std::vector<std::string>>& spelt)
      : MemoryWriter(run), spelt_(spelt) {}
  void row(const std::vector<parse::ColumnInfo>& columns, const std::vector<std::string_view>& cells) override {
    MemoryWriter::row(columns, cells);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].type == metric::Type::real && !cells[i].empty()) spelt_[columns[i].name].emplace_back(cells[i]);
    }
  }

 private:
  std::map<std::string, std::vector<std::string>>& spelt_;
};

void read_logs(Recorded& recorded, const parse::Job& job) {
  std::map<std::string, std::vector<std::string>> spelt;
  SpeltRows rows(recorded.run, spelt);
  parse::read_job(job, {}, rows,
                  [&](const Fault& fault) { recorded.faults.push_back(located(fault.path, fault.line, fault.what)); });
  for (const auto& [name, cells] : spelt) recorded.precision[name] = compare::precision_of(cells);
}

void read_metrics(Recorded& recorded, const std::string& path) {
  metric::Store store = metric::read(path);
  if (store.runs.size() != 1)
    throw Error(path, 0, "holds " + std::to_string(store.runs.size()) + " runs, expected one");
  recorded.run = std::move(store.runs.front());
  for (const metric::Column& column : recorded.run.records.columns) {
    if (column.type() == metric::Type::real)
      recorded.precision[column.name] = compare::precision_of(recorded.run, column);
  }
}

std::int64_t step_of(const std::string& checkpoint) {
  const std::size_t bar = checkpoint.rfind('_');
  return bar == std::string::npos ? INT64_MAX : parse_int(checkpoint.substr(bar + 1)).value_or(INT64_MAX);
}

}  // namespace

std::vector<std::string> Recorded::checkpoints() const {
  std::vector<std::string> names;
  if (folder.empty()) return names;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    // One that begins with a point is being written or removed. One whose weights are gone is damaged, not no
    // checkpoint.
    if (name.front() == '.' || name.find("checkpoint") == std::string::npos || !is_folder(entry)) continue;
    if (is_there(entry / "SHA256SUMS") || checkpoints::is_plain(entry.string())) names.push_back(name);
  }
  std::ranges::sort(names,
                    [](const auto& a, const auto& b) { return std::pair(step_of(a), a) < std::pair(step_of(b), b); });
  return names;
}

Recorded read_recorded(const input::Named& named) {
  Recorded recorded;
  recorded.path = named.name;
  if (is_folder(named.path)) recorded.folder = named.path;
  const std::vector<input::Source> sources = input::sources({named}, input::Prefer::logs);
  if (sources.size() != 1)
    throw Error(named.path, 0, "holds " + std::to_string(sources.size()) + " runs, expected one");
  if (sources[0].metrics.empty())
    read_logs(recorded, sources[0].job);
  else
    read_metrics(recorded, sources[0].metrics);
  return recorded;
}

}  // namespace zs::comparison
