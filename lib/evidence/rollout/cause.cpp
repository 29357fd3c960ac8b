// SPDX-License-Identifier: Apache-2.0
#include "rollout/cause.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/brief.hpp"
#include "base/words.hpp"
#include "probe/relation.hpp"
#include "rollout/parts.hpp"

namespace zs::rollout {
namespace {

constexpr std::size_t kEnough = 256;  // tokens, for what rests on statistics

struct Rival {
  std::string text;
  double residual;         ///< mean |d| that it leaves
  std::size_t tokens = 0;  ///< that it was tested on; 0: all

  /// Of two that explain alike, the one that explains more tokens.
  bool better(const Rival& other) const {
    if (residual < 2 * other.residual && other.residual < 2 * residual && tokens && other.tokens)
      return tokens > other.tokens;
    return residual < other.residual / 2;
  }
};

/// The mean of |generator - other| over the tokens that have the other, as a share of their mean |d|, of the mean |d|
/// of all, and how many they are; nothing if few have it.
std::optional<std::pair<double, std::size_t>> left_by(const Tokens& tokens, double mean,
                                                      const std::function<double(const Token&)>& other) {
  double sum = 0, apart = 0;
  std::size_t count = 0;
  for (const Token& token : tokens.all) {
    const double value = other(token);
    if (std::isfinite(value)) sum += std::fabs(token.gen - value), apart += std::fabs(token.d()), ++count;
  }
  if (count < std::min<std::size_t>(64, tokens.all.size()) || apart == 0) return std::nullopt;
  return std::pair(sum / apart * mean, count);
}

/// Least squares of d on columns: the weights, and the share of the sum of d^2 that they leave.
std::pair<std::vector<double>, double> least_squares(const std::vector<Token>& tokens,
                                                     const std::vector<double (*)(const Token&)>& columns) {
  std::vector<double> d;
  std::vector<std::vector<double>> x(columns.size());
  for (const Token& token : tokens) {
    d.push_back(token.d());
    for (std::size_t i = 0; i < columns.size(); ++i) x[i].push_back(columns[i](token));
  }
  const probe::Fit found = probe::fit(x, d);
  return {found.weights, found.residual * found.residual};
}

/// The settings of sampling, as far as the dump has them and they are not neutral.
struct Sampling {
  double temperature = 1;
  bool cut = false;
  std::string text;
};

Sampling sampling_of(const Tokens& tokens) {
  Sampling made;
  for (const Sequence& one : tokens.sequences) {
    if (one.temperature > 0) made.temperature = one.temperature;
    if (one.top_k > 0) made.cut = true, made.text = "top-k " + to_text(one.top_k);
    if (one.top_p > 0 && one.top_p < 1) made.cut = true, made.text = "top-p " + to_text(one.top_p);
    if (one.min_p > 0) made.cut = true, made.text = "min-p " + to_text(one.min_p);
  }
  return made;
}

/// The generator is raw where it should be processed, or the other way: which setting it is.
std::string raw_text(const Sampling& sampling) {
  if (sampling.temperature == 1 && !sampling.cut)
    return "a processor of logits (a penalty, a ban) on the generator's side alone: the trainer equals its raw values";
  const std::string heat = "temperature " + to_text(sampling.temperature);
  if (sampling.temperature != 1 && sampling.cut)
    return heat + " and " + sampling.text +
           " on the generator's side alone: the trainer equals the generator's raw values";
  if (sampling.cut)
    return sampling.text +
           " on the generator's side alone: the trainer does not renormalise, and equals the raw values";
  return heat + " on the generator's side alone: the trainer equals the generator's raw values";
}

/// d is a multiple of the trainer's log-probability and entropy: the logits have another scale.
std::optional<Rival> temperature(const Tokens& tokens, const Estimate& estimate) {
  const bool known = std::ranges::all_of(tokens.all, [](const Token& t) { return std::isfinite(t.entropy); });
  double slope = 0, left = 1;
  if (known) {
    // To second order the logits' scale also moves d by the spread of log-probabilities, which follows the entropy.
    const auto scale = +[](const Token& t) { return t.train + t.entropy; };
    const double rough = least_squares(tokens.all, {scale}).second;
    const auto [curve, fine] = least_squares(tokens.all, {scale, +[](const Token& t) { return t.entropy; },
                                                          +[](const Token& t) { return t.entropy * t.entropy; }});
    if (!(rough < 0.2)) return std::nullopt;
    slope = curve[0], left = fine;
    double moved = 0;
    for (const Token& t : tokens.all) moved += (curve[1] + curve[2] * t.entropy) * t.entropy;
    moved /= static_cast<double>(tokens.all.size());
    if (!(std::fabs(moved) < slope * slope + 0.01) || !(left < 0.05)) return std::nullopt;
  } else {
    const auto [line, rest] = least_squares(
        tokens.all, {+[](const Token&) { return 1.0; }, +[](const Token& t) -> double { return t.train; }});
    slope = line[1], left = rest;
    if (!(left < 0.1)) return std::nullopt;
  }
  const double scale = 1 + slope;
  if (!(scale > 0.1) || std::fabs(slope) < 0.005) return std::nullopt;
  const double set = sampling_of(tokens).temperature;
  const auto near = [&](double value) { return std::fabs(scale - value) < 0.25 * std::fabs(value - 1); };
  std::string text = "temperature: the generator's logits are the trainer's x " + to_brief_text(scale);
  if (set != 1 && near(1 / set))
    text = "temperature " + to_text(set) + " on the generator's side alone";
  else if (set != 1 && near(set))
    text = "temperature " + to_text(set) + " on the trainer's side alone: the generator's values are raw";
  else
    text += " (a temperature of " + to_brief_text(1 / scale) + " on the generator's side alone, or of " +
            to_brief_text(scale) + " on the trainer's)";
  return Rival{text, std::sqrt(left) * estimate.mean_abs};
}

std::vector<Rival> rivals_of(const Tokens& tokens, const Estimate& estimate, const Floor& floor) {
  std::vector<Rival> all;
  const auto numbers = [&](const Token& token) -> const Sequence& { return tokens.sequences[token.sequence]; };
  const auto offer = [&](std::string text, const std::optional<std::pair<double, std::size_t>>& left) {
    if (left) all.push_back({std::move(text), left->first, left->second});
  };
  for (const int by : {1, -1, 2, -2}) {
    double sum = 0;
    std::size_t count = 0;
    for (const Token& token : tokens.all) {
      const auto at = static_cast<std::int64_t>(token.position) + by;
      const Numbers& gen = numbers(token).gen;
      if (at < 0 || at >= static_cast<std::int64_t>(gen.size()) || !std::isfinite(gen[static_cast<std::size_t>(at)]))
        continue;
      sum += std::fabs(gen[static_cast<std::size_t>(at)] - token.train), ++count;
    }
    if (count > 0)
      all.push_back({std::string("shift by ") + (by > 0 ? "+" : "") + to_text(std::int64_t{by}) +
                         ": the generator's value of a token stands " + to_text(std::int64_t{std::abs(by)}) +
                         (by > 0 ? " behind it" : " before it"),
                     sum / static_cast<double>(count)});
  }
  const auto raw = [&] {  // the trainer against the generator's raw values
    double sum = 0;
    std::size_t count = 0, moved = 0;
    for (const Token& token : tokens.all) {
      if (!std::isfinite(token.raw)) continue;
      sum += std::fabs(token.raw - token.train), ++count;
      moved += std::fabs(token.raw - token.gen) > 1e-6;
    }
    return count * 2 < tokens.all.size() || moved == 0
               ? std::nullopt
               : std::optional(std::pair(sum / static_cast<double>(count), count));
  };
  const Sampling sampling = sampling_of(tokens);
  offer(raw_text(sampling), raw());
  offer("the generator equals the reference model: the trained weights were never delivered, or the adapter is off",
        left_by(tokens, estimate.mean_abs, [](const Token& token) { return token.ref; }));
  std::set<std::string> names;
  for (const Sequence& one : tokens.sequences) {
    for (const auto& [name, values] : one.replays) names.insert(name);
  }
  for (const std::string& name : names) {
    offer("the generator equals the trainer's score with " + name,
          left_by(tokens, estimate.mean_abs, [&](const Token& token) {
            const auto found = numbers(token).replays.find(name);
            return found == numbers(token).replays.end() ? kNan : static_cast<double>(found->second[token.position]);
          }));
  }
  if (tokens.all.size() < kEnough) return all;
  if (const auto fitted = temperature(tokens, estimate)) all.push_back(*fitted);
  const auto below = std::ranges::count_if(tokens.all, [&](const Token& t) { return t.d() < -floor.p99; });
  const bool above = static_cast<double>(below) <= 0.01 * static_cast<double>(tokens.all.size());
  if (above && estimate.mean_w < 1 - 5 * estimate.w_error && estimate.bias > 5 * estimate.bias_error)
    all.push_back({(sampling.cut ? sampling.text + " on the generator's side alone"
                                 : "top-k or top-p on the generator's side alone") +
                       ": each of its values is higher, as the kept tokens have " + to_brief_text(estimate.mean_w) +
                       " of the trainer's probability",
                   0.1 * estimate.mean_abs});
  return all;
}

/// One side computes in 16 bits, though both are said to compute in 32: bounded, flat in position, unbiased.
bool like_half(const Tokens& tokens, const Estimate& estimate) {
  const Floor half = floor_of("BF16");
  const double first = mean_of_third(tokens, 0), last = mean_of_third(tokens, 2);
  return estimate.mean_abs <= 3 * half.mean && estimate.p99 <= 3 * half.p99 && estimate.max <= 60 * estimate.mean_abs &&
         last < 2 * first && first < 2 * last && std::fabs(estimate.bias) <= 5 * estimate.bias_error;
}

}  // namespace

Floor floor_of(const std::string& dtype) {
  // Largest values seen in healthy trainings: tiny models on processors, models of 0.5 to 4 billion on GPUs.
  if (dtype == "F32") return {2e-6, 1.5e-5, "of float32"};
  if (dtype == "F16") return {2e-3, 1.2e-2, "of float16"};
  return {1e-2, 6.5e-2, "of bfloat16"};
}

Cause cause_of(const Tokens& tokens, const Estimate& estimate, const Floor& floor, bool exact_types) {
  Cause made;
  const std::vector<Rival> rivals = rivals_of(tokens, estimate, floor);
  made.tested = joined(rivals, "; ", [](const Rival& one) {
    return one.text.substr(0, one.text.find(": ")) + " leaves " + to_brief_text(one.residual);
  });
  const double most = std::min(std::max(estimate.mean_abs / 10, 3 * floor.mean), estimate.mean_abs / 3);
  const Rival* best = nullptr;
  for (const Rival& one : rivals) {
    if (one.residual <= most && (!best || one.better(*best))) best = &one;
  }
  const Parts parts = parts_of(tokens, floor);
  made.partitions = parts.shown;
  if (estimate.mean_abs <= 3 * floor_of("F32").mean && estimate.p99 <= 3 * floor_of("F32").p99) return made;
  if (best) {
    made.relation = best->text;
  } else if (!parts.relation.empty() && tokens.all.size() >= kEnough) {
    made.relation = parts.relation;
  } else if (estimate.mean_abs > 3 * floor.mean || estimate.p99 > 3 * floor.p99) {
    made.relation =
        exact_types && like_half(tokens, estimate)
            ? "a part of one side computes in 16 bits (the head, or all): flat in position, unbiased, within "
              "the bound of bfloat16"
        : tokens.all.size() < kEnough ? "too few tokens to tell"
                                      : "no simple relation";
  }
  return made;
}

}  // namespace zs::rollout
