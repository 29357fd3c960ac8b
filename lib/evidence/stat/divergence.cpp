// SPDX-License-Identifier: Apache-2.0
#include "stat/divergence.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "compare/records.hpp"
#include "stat/repeats.hpp"
#include "stat/row.hpp"

namespace zs::stat {
namespace {

using metric::absent_real;
using metric::is_absent;
using metric::kAbsentInteger;
using metric::Table;

RunsApart compared(const metric::Run& one, const metric::Run& other) {
  const auto found = compare::records({one.name, &one.records}, {other.name, &other.records}, {});
  RunsApart made{found.verdict, kAbsentInteger, ""};
  const auto non_finite =
      std::ranges::find_if(found.reasons, [](const compare::Reason& reason) { return reason.not_finite; });
  if (!found.first && non_finite == found.reasons.end()) return made;
  made.verdict.worsen(compare::Verdict::different);  // a nan is a difference, even on both sides
  const compare::Place& place = found.first ? found.first->place : non_finite->place;
  made.step = place.step;
  made.what = found.first ? found.first->column : non_finite->column;
  if (place.rank != 0) made.what += ", rank " + std::to_string(place.rank);
  if (place.attempt != 1) made.what += ", attempt " + std::to_string(place.attempt);
  return made;
}

std::optional<RunsApart> within(const Condition& condition) {
  std::vector<const metric::Run*> runs;
  for (const Member& member : condition.members) runs.push_back(member.run);
  return runs_apart(runs);
}

/// `repeated`: of one of the two several runs were tested against chance; `left`: they differ by more.
std::string verdict(const CurvesApart& difference, const RunsApart& records, bool repeated, bool left) {
  using compare::Verdict;
  if (difference.steps == 0) return "nothing to compare";
  // The mean curves may be the same where the runs are not.
  if (!is_absent(difference.first) || records.verdict == Verdict::different)
    return repeated && !left ? "inside" : "different";
  return difference.missing == 0 && equal(records.verdict) ? "identical" : "incomplete";
}

/// "same" or "different" if every run of both has a digest.
std::string digests(const Condition& one, const Condition& other) {
  std::string first;
  bool same = true;
  for (const Condition* const condition : {&one, &other}) {
    for (const Member& member : condition->members) {
      const std::string digest = member.run->attribute("state_digest");
      if (digest.empty()) return "";
      if (first.empty()) first = digest;
      same = same && digest == first;
    }
  }
  return same ? "same" : "different";
}

}  // namespace

LossBySteps losses_by_steps(const Table& curve) {
  LossBySteps found;
  std::map<std::int64_t, std::int64_t> seen;
  const metric::Column *const steps = curve.find("step"), *const values = curve.find("loss");
  if (!steps || !values || steps->type() != metric::Type::integer || values->type() != metric::Type::real) return found;
  for (std::size_t row = 0; row < curve.rows(); ++row) {
    const double loss = values->reals()[row];
    const std::int64_t step = steps->integers()[row];
    if (!is_absent(loss)) found[{seen[step]++, step}] = loss;
  }
  return found;
}

CurvesApart curves_apart(const LossBySteps& one, const LossBySteps& other) {
  CurvesApart found;
  for (const auto& [place, loss] : one) {
    const auto match = other.find(place);
    if (match == other.end()) continue;
    ++found.steps;
    const double distance = std::fabs(loss - match->second);  // nan and inf - inf give nan
    const auto exceeds = [&](double limit) { return !(distance <= limit); };
    const bool zero_of_another_sign = std::signbit(loss) != std::signbit(match->second);
    if (is_absent(found.first) && (exceeds(0) || zero_of_another_sign)) found.first = place.second;
    found.final = distance;
    if (!is_absent(found.largest) && (std::isnan(found.largest) || !exceeds(found.largest))) continue;
    found.largest = distance;
    if (exceeds(0)) found.largest_at = place.second;
  }
  found.missing = static_cast<std::int64_t>(one.size() + other.size()) - 2 * found.steps;
  return found;
}

std::optional<RunsApart> runs_apart(const std::vector<const metric::Run*>& runs) {
  std::optional<RunsApart> worst;
  for (const metric::Run* const run : runs) {
    if (run == runs.front()) continue;
    RunsApart found = compared(*runs.front(), *run);
    if (!worst || found.verdict > worst->verdict) worst = std::move(found);
  }
  return worst;
}

double spread(const Table& curve) {
  double widest = absent_real();
  for (std::size_t row = 0; row < curve.rows(); ++row) {
    const double low = curve.find("loss_min")->reals()[row], high = curve.find("loss_max")->reals()[row];
    if (curve.find("runs")->integers()[row] < 2 || is_absent(low)) continue;
    if (is_absent(widest) || !(high - low <= widest)) widest = high - low;
    if (std::isnan(widest)) return std::nan("");
  }
  return widest;
}

Table divergence(const std::vector<Condition>& conditions, const std::map<std::string, Table>& curves) {
  Table table;
  RowWriter row(table);
  std::vector<std::optional<RunsApart>> within_one;
  std::vector<double> spreads;
  for (const Condition& condition : conditions) {
    within_one.push_back(within(condition));
    spreads.push_back(spread(curves.at(condition.name)));
  }
  // Runs of which none differ from their repetitions leave nothing to chance.
  const auto repeated = [&](std::size_t b, std::size_t c) {
    return std::ranges::any_of(std::initializer_list<double>{spreads[b], spreads[c]},
                               [](double one) { return !is_absent(one) && one != 0; });
  };
  const std::size_t bases = conditions.size() > kMostPaired ? 1 : conditions.size();
  std::size_t tests = 0;
  for (std::size_t b = 0; b < bases; ++b) {
    for (std::size_t c = b + 1; c < conditions.size(); ++c) tests += repeated(b, c);
  }
  std::vector<Repeats> repeats;
  for (const Condition& condition : conditions) {
    if (tests > 0) repeats.emplace_back(condition);
  }
  for (std::size_t b = 0; b < bases; ++b) {
    const LossBySteps base = losses_by_steps(curves.at(conditions[b].name));
    for (std::size_t c = b + 1; c < conditions.size(); ++c) {
      const double envelope = is_absent(spreads[b])   ? spreads[c]
                              : is_absent(spreads[c]) ? spreads[b]
                                                      : std::max(spreads[b], spreads[c]);
      const CurvesApart found = curves_apart(base, losses_by_steps(curves.at(conditions[c].name)));
      const bool tested = repeated(b, c);
      const std::optional<Leaves> left = tested ? leaves(repeats[b], repeats[c], tests) : std::nullopt;
      // All runs of both conditions are equal if the runs of each are equal, and one pair of both is.
      RunsApart records = compared(*conditions[b].members.front().run, *conditions[c].members.front().run);
      for (const std::size_t side : {b, c}) {
        if (within_one[side] && within_one[side]->verdict > records.verdict) records = *within_one[side];
      }
      row.text("condition", conditions[c].name);
      row.text("baseline", conditions[b].name);
      row.integer("steps", found.steps);
      row.integer("steps_missing", found.missing);
      // Repeated runs may diverge before the means do: then their step is the first.
      row.integer("first_difference", is_absent(found.first) ? records.step : found.first);
      row.real("loss_difference", found.largest, kLossUnit);
      row.integer("difference_step", found.largest_at);
      row.real("final_difference", found.final, kLossUnit);
      row.real("envelope", envelope, kLossUnit);
      row.integer("first_outside", left ? left->step : kAbsentInteger);
      row.real("outside_difference", left ? left->difference : absent_real(), kLossUnit);
      row.real("outside_spread", left ? left->spread : absent_real(), kLossUnit);
      row.text("digest", digests(conditions[b], conditions[c]));
      row.text("verdict", verdict(found, records, tested, left.has_value()));
      row.text("differs_in", records.what);
    }
  }
  return table;
}

}  // namespace zs::stat
