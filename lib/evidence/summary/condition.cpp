// SPDX-License-Identifier: Apache-2.0
#include "summary/condition.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "metric/unit.hpp"
#include "stat/divergence.hpp"
#include "stat/sample.hpp"
#include "stat/steps.hpp"
#include "stat/summary.hpp"

namespace zs::summary {
namespace {

bool is_bad(const std::string& status) {
  const auto state = attribute::state_named(status);
  return !status.empty() && !(state && attribute::believable(*state));
}

Member member(const metric::Run& run, const metric::Table& table, std::size_t row) {
  Member made;
  made.read(table, row);
  made.run = &run;
  made.facts = attribute::named(run.attributes);
  made.status = table.text("status", row);
  made.reason = table.text("reason", row);
  return made;
}

/// The runs of each condition, by its name.
std::map<std::string, std::vector<Member>> members_of(const metric::Store& store) {
  std::map<std::string, std::vector<Member>> members;
  const auto entry = store.tables.find("runs");
  if (entry == store.tables.end()) return members;
  const metric::Table& table = entry->second;
  std::map<std::string, const metric::Run*> runs;
  for (const metric::Run& run : store.runs) runs.emplace(run.name, &run);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto run = runs.find(table.text("run", row));
    if (run != runs.end()) members[table.text("condition", row)].push_back(member(*run->second, table, row));
  }
  return members;
}

}  // namespace

template <const auto& kColumns>
void Figures<kColumns>::read(const metric::Table& table, std::size_t row) {
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const metric::Column* const column = table.find(kColumns[i].name);
    if (column && column->type() != metric::Type::text) values_[i] = column->real(row);
  }
}
template class Figures<stat::kRunColumns>;
template class Figures<stat::kSummaryColumns>;

bool Member::bad() const { return is_bad(status); }

const stat::Series& Member::series() const {
  if (!series_) series_ = stat::series(*run);
  return *series_;
}

bool Condition::bad() const { return is_bad(status); }

std::vector<double> Condition::values(Member::Column column) const {
  std::vector<double> present;
  for (const Member& member : members) {
    if (const auto value = member[column]) present.push_back(*value);
  }
  return present;
}

std::size_t Condition::timed_runs() const {
  if (members.empty()) return count("runs");
  std::size_t unnamed = 0;
  std::set<std::string> named;
  for (const Member& member : members) {
    if (!member["time_mean"]) continue;
    const std::string run = member.run->attribute("run");
    if (run.empty())
      ++unnamed;
    else
      named.insert(run);
  }
  return unnamed + named.size();
}

std::string Condition::attribute(const std::string& key) const {
  std::string common;
  const std::string name(attribute::primary(key));
  for (const Member& member : members) {
    const auto found = member.facts.find(name);
    if (found == member.facts.end() || found->second.empty()) continue;
    if (!common.empty() && common != found->second) return "";
    common = found->second;
  }
  return common;
}

/// Whether a run says that it trains on tokens: nothing else makes a loss one of tokens.
static bool says_tokens(const metric::Run& run) {
  for (const char* const column : {"tokens", "tokens_per_second", "tokens_per_second_per_rank"}) {
    if (run.records.find(column)) return true;
  }
  return !run.attribute("seq_length").empty() || !run.attribute("model.vocab_size").empty();
}

std::vector<Condition> conditions(const metric::Store& store, const std::string& source) {
  if (!store.summary) throw Error(source, 0, "holds no summary (make one with zs-aggregate)");
  const metric::Table& table = *store.summary;
  const metric::Column* const names = table.find("condition");
  if (!names || names->type() != metric::Type::text) {
    throw Error(source, 0, "the summary has no column 'condition' (make it with zs-aggregate)");
  }
  const metric::Column* const losses = table.find("final_loss");
  const std::string unit = losses && !losses->unit.empty() ? losses->unit : metric::kLossOfTokens;
  const bool known =
      unit != metric::kLossOfTokens || store.runs.empty() || std::ranges::any_of(store.runs, says_tokens);
  const std::string loss_unit = known ? unit : "";
  auto runs = members_of(store);
  std::vector<Condition> made;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Condition condition;
    condition.name = names->texts()[row];
    condition.status = table.text("status", row);
    if (condition.status.empty()) condition.status = name(attribute::RunState::unknown);
    condition.place = row;
    condition.read(table, row);
    condition.loss_unit = loss_unit;
    condition.state_digest = table.text("state_digest", row);
    condition.reason = table.text("reason", row);
    if (const auto entry = runs.find(condition.name); entry != runs.end()) condition.members = std::move(entry->second);
    const auto curve = store.curves.find(condition.name);
    if (curve != store.curves.end() && curve->second.rows() > 0) condition.curve = &curve->second;
    made.push_back(std::move(condition));
  }
  return made;
}

std::string model(const std::vector<Condition>& conditions) {
  std::string known;
  bool silent = false;  // one that has values does not say what it trained
  for (const Condition& condition : conditions) {
    const std::string one = condition.attribute("model.name");
    if (!known.empty() && !one.empty() && one != known) return "several models";
    if (!one.empty()) known = one;
    silent = silent || (one.empty() && condition.count("points") > 0);
  }
  return silent ? "" : known;
}

std::string loss_unit(const std::vector<Condition>& conditions) {
  return conditions.empty() ? metric::kLossOfTokens : conditions.front().loss_unit;
}

bool on_images(const std::vector<Condition>& conditions) {
  const auto has = [&](Condition::Column column) {
    return std::ranges::any_of(conditions, [&](const Condition& one) { return one[column].has_value(); });
  };
  return has("images_per_second") && !has("tokens_per_second");
}

Condition::Column speed(const std::vector<Condition>& conditions) {
  if (on_images(conditions)) return "images_per_second";
  return "tokens_per_second";
}

double mean_fact(const Condition& condition, std::initializer_list<const char*> names) {
  stat::Sample values;
  for (const Member& member : condition.members) {
    for (const char* const name : names) {
      const auto found = member.facts.find(name);
      const auto value = found == member.facts.end() ? std::nullopt : parse_real(found->second);
      if (!value) continue;
      values.push_back(*value);
      break;
    }
  }
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : stat::mean(values);
}

const Condition& baseline(const std::vector<Condition>& conditions, const std::string& name) {
  if (name.empty()) return conditions.front();
  std::vector<std::string> names;
  for (const Condition& condition : conditions) {
    if (condition.name == name) return condition;
    names.push_back(condition.name);
  }
  throw UsageError("no condition '" + name + "' to be the baseline" + did_you_mean(name, names));
}

Agreement agreement(const std::vector<Condition>& conditions) {
  Agreement result;
  stat::LossBySteps known;  // the loss at each step that any has logged so far
  std::vector<const metric::Run*> runs;
  bool curves = true, digests = true;
  result.same_steps = true;
  for (const Condition& condition : conditions) {
    if (condition.curve) {
      stat::LossBySteps losses = stat::losses_by_steps(*condition.curve);
      if (result.with_curve++ > 0) {
        const stat::CurvesApart found = stat::curves_apart(known, losses);
        curves = curves && found.steps > 0 && metric::is_absent(found.first);
        result.same_steps = result.same_steps && found.missing == 0;
      }
      known.merge(losses);
      for (const Member& member : condition.members) runs.push_back(member.run);
    }
    if (!condition.state_digest.empty()) {
      ++result.with_digest;
      if (result.digest.empty())
        result.digest = condition.state_digest;
      else
        digests = digests && result.digest == condition.state_digest;
    }
  }
  result.curves = curves && result.with_curve >= 2;
  if (result.curves) {
    const auto apart = stat::runs_apart(runs);
    result.curves = !apart || !apart->in_loss();
  }
  result.digests = digests && result.with_digest >= 2;
  if (!digests) result.digest.clear();
  return result;
}

}  // namespace zs::summary
