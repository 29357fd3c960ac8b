// SPDX-License-Identifier: Apache-2.0
// Gradients as sums of micro-batches' gradients: which are missing, or counted otherwise.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/diagnosis.hpp"

namespace zs::probe {
namespace {

std::string times_text(double weight) {
  return weight == 1 ? "once" : weight == 2 ? "twice" : to_rounded_text(weight, 4) + " times";
}

/// Each (rank, micro-batch) of a side that has a gradient of all the tensors.
std::vector<std::pair<int, int>> contributions(const Side& side, const std::vector<Apart>& apart) {
  std::vector<std::pair<int, int>> keys;
  for (const auto& [key, local] : side.step.locals) {
    if (std::all_of(apart.begin(), apart.end(), [&](const Apart& t) {
          const Tensor* const found = local.tensors.find(t.parameter);
          return found && found->sketch.size() == t.a->size();
        }))
      keys.push_back(key);
  }
  return keys;
}

}  // namespace

std::string alike_text(const std::vector<double>& weights, const std::vector<std::pair<int, int>>& keys) {
  std::map<int, std::map<int, double>> by_rank;
  for (std::size_t i = 0; i < keys.size(); ++i) by_rank[keys[i].first][keys[i].second] = weights[i];
  const std::map<int, double>& rank = by_rank.begin()->second;
  if (rank.size() < 2 || std::ranges::any_of(by_rank, [&](const auto& other) { return other.second != rank; }))
    return "";
  const auto is_lost = [](const auto& one) { return one.second == 0; };
  const auto lost = static_cast<std::size_t>(std::ranges::count_if(rank, is_lost));
  const bool one_counts = lost + 1 == rank.size(), one_lost = lost == 1;
  if (!one_counts && !one_lost) return "";
  const auto at = std::ranges::find_if(rank, [&](const auto& one) { return is_lost(one) == !one_counts; });
  const std::string total = " of " + std::to_string(rank.size()) + " micro-batches";
  const std::string which = at == rank.begin() ? "the first" + total
                            : std::next(at) == rank.end()
                                ? "the last" + total
                                : "micro-batch " + std::to_string(at->first + 1) + total.substr(0, total.rfind(' '));
  std::set<double> others;
  for (const auto& one : rank) {
    if (!is_lost(one)) others.insert(one.second);
  }
  if (others.size() > 1) return "";
  const std::string times = *others.begin() == 1 ? "" : ", " + times_text(*others.begin());
  return (one_counts ? "only " + which + " counts" + times
                     : which + " is missing" + (times.empty() ? "" : "; each other counts" + times.substr(1))) +
         (by_rank.size() > 1 ? ", on every rank" : "");
}

namespace {

/// "only micro-batch 4 of rank 0, micro-batch 4 of rank 1, each counted 4 times".
std::string weights_text(const std::vector<double>& weights, const std::vector<std::pair<int, int>>& keys,
                         const Step& step, const std::string& parameter) {
  if (const std::string alike = alike_text(weights, keys); !alike.empty()) return alike;
  std::size_t ranks = 0;
  for (const auto& key : keys) ranks = std::max(ranks, static_cast<std::size_t>(key.first) + 1);
  std::map<double, std::vector<std::string>> by_weight;
  for (std::size_t i = 0; i < keys.size(); ++i)
    by_weight[weights[i]].push_back(micro_text(keys[i], *step.locals.at(keys[i]).tensors.find(parameter), ranks));
  const auto missing = by_weight.find(0);
  const std::size_t lost = missing == by_weight.end() ? 0 : missing->second.size();
  const auto enumerated = [](const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(8, names.size()); ++i) text += (i ? ", " : "") + names[i];
    return names.size() > 8 ? text + ", ..." : text;
  };
  std::string text;
  for (const auto& [weight, names] : by_weight) {
    if (weight == 0) continue;
    text += (text.empty() ? "" : "; ") + enumerated(names) + (names.size() > 1 ? " count " : " counts ") +
            times_text(weight);
  }
  if (lost == keys.size()) return "none of the micro-batches";
  if (lost > 0)
    text = (lost == 1 ? "a micro-batch is missing ("
                      : to_text(static_cast<std::int64_t>(lost)) + " micro-batches are missing (") +
           enumerated(missing->second) + "); " + text;
  return text;
}

/// "63, 12, 40": the first eight.
std::string counts_text(const std::vector<double>& counts) {
  std::vector<std::string> texts;
  for (const double count : counts) texts.push_back(to_text(count));
  return some_of(texts, 8);
}

/// Whether the weights are proportional to the inverse of the micro-batches' target tokens (a mean of means instead of
/// a mean over all tokens), or to the target tokens (the reverse). "" if neither, if all micro-batches have the same
/// number, or if the number is unknown, for example because ranks share a micro-batch.
std::string by_targets(const std::vector<double>& weights, const std::vector<std::pair<int, int>>& keys,
                       const Side& side) {
  std::vector<double> tokens;
  if (keys.back().first + 1 != side.run.ranks) return "";
  for (const auto& [rank, micro] : keys) {
    const auto row = side.step.ranks.find(rank);
    const auto at = static_cast<std::size_t>(micro);
    if (row == side.step.ranks.end() || at >= row->second.targets.size() || row->second.targets[at].value_or(0) <= 0)
      return "";
    tokens.push_back(static_cast<double>(*row->second.targets[at]));
  }
  const auto [least, most] = std::minmax_element(tokens.begin(), tokens.end());
  if (!(*most > 1.02 * *least)) return "";
  const std::string counts = counts_text(tokens);
  for (const int power : {-1, 1}) {
    const double unit = weights[0] * std::pow(tokens[0], -power);
    bool holds = true;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      holds &= std::fabs(weights[i] * std::pow(tokens[i], -power) - unit) <= 5e-3 * std::fabs(unit);
    if (holds)
      return power < 0 ? "each micro-batch counts alike, whatever its target tokens (" + counts +
                             "): a mean of means for a mean over all tokens"
                       : "each micro-batch counts by its target tokens (" + counts +
                             "): a mean over all tokens for a mean of means";
  }
  return "";
}

/// The weight of one contribution in A's gradient, which all have.
std::optional<double> unit_of(const std::vector<Sketch>& columns, const Sketch& target, double most) {
  const Fit found = fit(columns, target);
  if (columns.empty() || !(found.residual <= most)) return std::nullopt;
  double mean = 0;
  for (const double weight : found.weights) mean += weight / static_cast<double>(columns.size());
  for (const double weight : found.weights) {
    if (!(std::fabs(weight - mean) <= 0.05 * std::fabs(mean))) return std::nullopt;
  }
  return mean != 0 ? std::optional(mean) : std::nullopt;
}

/// Whether the weights differ. Equal weights are a factor of all micro-batches, not a relation to them.
bool are_other(const std::vector<double>& weights) {
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  return weights.size() == 1 || *most - *least > 0.01 * std::fabs(*most);
}

}  // namespace

bool weighed_by_slices(const std::vector<Apart>& apart, const Side& side, const std::vector<std::pair<int, int>>& keys,
                       double unit, double most, Finding& finding) {
  if (keys.size() >= kSumsOfRange) return false;
  std::map<std::vector<double>, std::size_t> found;
  std::size_t ranges = 0, fitting = 0;
  double worst = 0;
  for (const Apart& t : apart) {
    for (std::size_t at = 0; (at + 1) * kSumsOfRange <= t.b->size(); ++at) {
      std::vector<Sketch> here;
      for (const auto& key : keys)
        here.push_back(range(side.step.locals.at(key).tensors.find(t.parameter)->sketch, at));
      ++ranges;
      if (const auto whole = whole_fit(here, range(*t.b, at), unit, 4 * most, 0.2)) {
        ++fitting;
        ++found[whole->weights];
        worst = std::max(worst, whole->residual);
      }
    }
  }
  const bool rare = std::any_of(found.begin(), found.end(), [&](const auto& one) { return one.second * 20 < ranges; });
  if (fitting * 10 < ranges * 8 || found.size() < 2 || found.size() > 4 || rare) return false;
  finding.residual = worst;
  for (const auto& [weights, count] : found)
    finding.relation += (finding.relation.empty() ? "by slices: in " : "; in ") +
                        to_text(static_cast<std::int64_t>(count)) + " of " +
                        to_text(static_cast<std::int64_t>(ranges)) + " ranges " +
                        weights_text(weights, keys, side.step, apart.front().parameter);
  return true;
}

std::string holders_text(const Tensor& gradient) {
  std::vector<std::string> ranks;
  for (const Tensor::Piece& piece : gradient.pieces) ranks.push_back(std::to_string(piece.rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + some_of(ranks, 8);
}

std::string micro_text(std::pair<int, int> contribution, const Tensor& gradient, std::size_t ranks) {
  const std::string micro = "micro-batch " + std::to_string(contribution.second + 1);
  return ranks > 1 ? micro + " of " + holders_text(gradient) : micro;
}

Sketch concatenated(const std::vector<const Sketch*>& parts) {
  Sketch joined;
  for (const Sketch* part : parts) joined.insert(joined.end(), part->begin(), part->end());
  return joined;
}

bool other_micro_batches(const std::vector<Apart>& apart, const Side& a, const Side& b, Finding& finding) {
  for (const Side* side : {&a, &b}) {
    const auto keys = contributions(*side, apart);
    if (keys.empty() || keys.size() > 64) continue;
    std::vector<Sketch> columns;
    for (const auto& key : keys) {
      std::vector<const Sketch*> parts;
      for (const Apart& t : apart) parts.push_back(&side->step.locals.at(key).tensors.find(t.parameter)->sketch);
      columns.push_back(concatenated(parts));
    }
    std::vector<const Sketch*> of_a, of_b;
    double most = 0;
    for (const Apart& t : apart) of_a.push_back(t.a), of_b.push_back(t.b), most = std::max(most, 4 * t.bound);
    const Sketch target_a = concatenated(of_a), target_b = concatenated(of_b);
    const auto unit = unit_of(columns, target_a, most);
    if (!unit) {
      // A's weights differ, too: it has one large batch, whose mean is over all tokens, where B has several.
      const Fit mine = fit(columns, target_a), theirs = fit(columns, target_b);
      std::vector<double> times;
      for (std::size_t i = 0; i < mine.weights.size() && mine.weights[i] != 0; ++i)
        times.push_back(theirs.weights[i] / mine.weights[i]);
      if (mine.residual > most || theirs.residual > most || times.size() < keys.size()) continue;
      finding.relation = by_targets(times, keys, *side);
      finding.residual = theirs.residual;
      if (!finding.relation.empty()) return true;
      continue;
    }
    // A relation explains the difference: its residual is at most a third of the plain sum's.
    const double explained = residual(columns, std::vector<double>(columns.size(), *unit), target_b) / 3;
    if (const auto whole = whole_fit(columns, target_b, *unit, std::min(most, explained))) {
      finding.relation = weights_text(whole->weights, keys, side->step, apart.front().parameter);
      finding.residual = whole->residual;
      return true;
    }
    // Fractions explain less than whole numbers do: where they fit only roughly, slices with whole ones come first.
    const Fit real = fit(columns, target_b);
    const bool fits =
        are_other(real.weights) && real.residual <= std::min(most, explained) && target_b.size() >= 4 * columns.size();
    if (!(fits && real.residual <= most / 4) && weighed_by_slices(apart, *side, keys, *unit, most, finding))
      return true;
    if (!fits) continue;
    std::vector<double> times;
    finding.residual = real.residual;
    finding.relation = by_targets(real.weights, keys, *side);
    if (!finding.relation.empty()) return true;
    for (const double weight : real.weights) times.push_back(std::round(weight / *unit * 1000) / 1000);
    finding.relation = weights_text(times, keys, side->step, apart.front().parameter);
    return true;
  }
  return false;
}

}  // namespace zs::probe
