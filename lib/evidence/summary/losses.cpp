// SPDX-License-Identifier: Apache-2.0
#include "summary/losses.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "base/number.hpp"
#include "compare/precision.hpp"
#include "stat/divergence.hpp"

namespace zs::summary {
namespace {

/// Losses of a curve at a step, one for each time that it was logged.
std::vector<double> losses_at(const Condition& condition, std::int64_t step) {
  std::vector<double> losses;
  if (!condition.curve) return losses;
  for (const auto& [place, loss] : stat::losses_by_steps(*condition.curve)) {
    if (place.second == step) losses.push_back(loss);
  }
  return losses;
}

Losses::Largest largest(const Pair& pair, const Condition& first, const Condition& second) {
  Losses::Largest made{&first, &second, *pair.difference_step, kNan, kNan, pair.loss_difference.value_or(kNan), kNan};
  const std::vector<double> a = losses_at(first, made.step), b = losses_at(second, made.step);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (difference != made.difference && !(std::isnan(difference) && std::isnan(made.difference))) continue;
    made.loss_a = a[i], made.loss_b = b[i];
    made.relative = difference / std::min(std::abs(a[i]), std::abs(b[i]));
    break;
  }
  return made;
}

/// How the losses of a condition's only run are spelt; every bit of a mean over runs.
compare::Precision spelling(const Condition& condition) {
  if (condition.members.size() != 1 || !condition.curve) return {};
  std::vector<std::string> texts;
  for (const auto& [place, loss] : stat::losses_by_steps(*condition.curve)) {
    if (std::isfinite(loss)) texts.push_back(to_text(loss));
  }
  return compare::precision_of(texts);
}

/// Rounding turns equal losses up as often as down: so many in one direction are no chance (a sign test, 1 in 1000).
bool one_sided(const Condition& a, const Condition& b) {
  const stat::LossBySteps base = stat::losses_by_steps(*a.curve);
  int up = 0, down = 0;
  for (const auto& [place, loss] : stat::losses_by_steps(*b.curve)) {
    const auto match = base.find(place);
    if (match != base.end() && loss != match->second) ++(loss > match->second ? up : down);
  }
  if (up + down == 0) return false;
  const boost::math::binomial even(up + down, 0.5);
  return 2 * boost::math::cdf(even, std::min(up, down)) < 0.001;
}

/// The decimals of the less precise side, if a difference is one unit of its last one.
std::optional<int> as_printed(const Losses::Largest& largest) {
  constexpr double kCoarsest = 0.1, kUnit = 1.001;  // differences of two decimal fractions are not exact
  if (!(largest.difference <= kCoarsest)) return {};
  const compare::Precision a = spelling(*largest.a), b = spelling(*largest.b);
  if (a.every_bit || b.every_bit) return {};
  const int decimals = std::min(a.decimals, b.decimals);
  if (decimals < 1 || !(largest.difference <= kUnit * std::pow(10, -decimals))) return {};
  return decimals;
}

/// A difference that is not finite is larger than any that is.
bool larger(double a, double b) { return std::isfinite(b) && !(a <= b); }

}  // namespace

std::vector<Pair> pairs(const metric::Store& store) {
  const auto entry = store.tables.find("divergence");
  if (entry == store.tables.end()) return {};
  const metric::Table& table = entry->second;
  std::vector<Pair> made(table.rows());
  for (std::size_t row = 0; row < made.size(); ++row) {
    const auto text = [&](const char* name) { return table.text(name, row); };
    const auto integer = [&](const char* name) { return parse_int(text(name)); };
    Pair& pair = made[row];
    pair.condition = text("condition"), pair.baseline = text("baseline");
    pair.steps = integer("steps"), pair.steps_missing = integer("steps_missing");
    pair.first_difference = integer("first_difference"), pair.difference_step = integer("difference_step");
    pair.first_outside = integer("first_outside");
    pair.loss_difference = parse_real(text("loss_difference")), pair.envelope = parse_real(text("envelope"));
    pair.outside_difference = parse_real(text("outside_difference"));
    pair.outside_spread = parse_real(text("outside_spread"));
    pair.differs_in = text("differs_in"), pair.digest = text("digest"), pair.verdict = text("verdict");
  }
  return made;
}

Losses losses(const metric::Store& store, const std::vector<const Condition*>& healthy, std::size_t conditions) {
  Losses made;
  made.compared = store.tables.count("divergence") > 0;
  made.with_first_alone = conditions > stat::kMostPaired;
  if (!made.compared) return made;
  const auto named = [&](const std::string& name) -> const Condition* {
    const auto found = std::ranges::find_if(healthy, [&](const auto* c) { return c->name == name; });
    return found == healthy.end() ? nullptr : *found;
  };
  made.equal = true;
  for (const Pair& pair : pairs(store)) {
    if (pair.envelope && !(*pair.envelope <= made.envelope.value_or(0))) made.envelope = pair.envelope;
    if (pair.first_outside) made.outside.push_back(pair);
    const Condition *const a = named(pair.baseline), *const b = named(pair.condition);
    if (!a || !b) continue;
    if (pair.steps.value_or(0) < 1) {
      ++made.apart;
      continue;
    }
    const auto steps = static_cast<std::size_t>(*pair.steps);
    made.fewest_steps = made.pairs++ == 0 ? steps : std::min(made.fewest_steps, steps);
    // If no step has the largest difference, the curves are equal, and another column differs, or a run.
    const bool other_column = !pair.difference_step && !pair.differs_in.empty() && !pair.differs_in.starts_with("loss");
    made.equal = made.equal && pair.steps_missing == 0 && (!pair.first_difference || other_column);
    if (other_column && made.beside.empty() && pair.first_difference)
      made.beside = pair.differs_in + " from step " + to_text(*pair.first_difference);
    if (!pair.first_difference || other_column) continue;
    made.differing.push_back(pair);
    if (*pair.first_difference < made.first_step.value_or(INT64_MAX))
      made.first_step = *pair.first_difference, made.first_in = pair.differs_in;
    if (!pair.difference_step) continue;  // only single runs differ, or a zero's sign
    if (!made.largest || larger(pair.loss_difference.value_or(kNan), made.largest->difference))
      made.largest = largest(pair, *a, *b);
  }
  made.equal = made.equal && made.pairs > 0 && made.apart == 0;
  if (made.largest) made.printed = as_printed(*made.largest);
  if (made.printed && std::ranges::any_of(made.differing, [&](const Pair& pair) {
        return one_sided(*named(pair.baseline), *named(pair.condition));
      }))
    made.printed.reset();
  return made;
}

}  // namespace zs::summary
