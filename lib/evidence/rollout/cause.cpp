// SPDX-License-Identifier: Apache-2.0
#include "rollout/cause.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/number.hpp"
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

  /// If two explain equally well, the one that explains more tokens.
  bool better(const Rival& other) const {
    if (residual < 2 * other.residual && other.residual < 2 * residual && tokens && other.tokens)
      return tokens > other.tokens;
    return residual < other.residual / 2;
  }
};

/// The mean of `distance` as a share of the mean |d| of the tokens that have it, of the mean |d| of all, and how many
/// they are; nothing if few have it.
std::optional<std::pair<double, std::size_t>> left_by(const Tokens& tokens, double mean,
                                                      const std::function<double(const Token&)>& distance) {
  double sum = 0, apart = 0;
  std::size_t count = 0;
  for (const Token& token : tokens.counted) {
    const double value = std::fabs(distance(token));
    if (std::isfinite(value)) sum += value, apart += std::fabs(token.d()), ++count;
  }
  if (count < std::min<std::size_t>(64, tokens.counted.size()) || apart == 0) return std::nullopt;
  return std::pair(sum / apart * mean, count);
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
    if (one.top_k > 0) made.text = "top-k " + to_text(one.top_k);
    if (one.top_p > 0 && one.top_p < 1) made.text = "top-p " + to_text(one.top_p);
    if (one.min_p > 0) made.text = "min-p " + to_text(one.min_p);
  }
  made.cut = !made.text.empty();
  return made;
}

/// The generator is raw where it should be processed, or the other way: which setting it is.
std::string raw_text(const Sampling& sampling) {
  std::string text = sampling.temperature == 1 ? "" : "temperature " + to_text(sampling.temperature);
  if (sampling.cut) text += (text.empty() ? "" : " and ") + sampling.text;
  if (text.empty())
    return "a processor of logits (a penalty, a ban) on the generator's side alone: the trainer equals its raw values";
  return text + " on the generator's side alone: the trainer " +
         (sampling.temperature == 1 ? "does not renormalise, and equals the raw values"
                                    : "equals the generator's raw values");
}

/// d is a multiple of the trainer's log-probability and entropy: the logits have another scale.
std::optional<Rival> temperature(const Tokens& tokens, const Estimate& estimate) {
  const bool known = std::ranges::all_of(tokens.counted, [](const Token& t) { return std::isfinite(t.entropy); });
  probe::Sketch d, ones(tokens.counted.size(), 1.0), logp, scaled, entropy, square;
  for (const Token& t : tokens.counted) {
    d.push_back(t.d()), logp.push_back(t.train), scaled.push_back(t.train + t.entropy);
    entropy.push_back(t.entropy), square.push_back(t.entropy * t.entropy);
  }
  // To second order the logits' scale also moves d by the spread of log-probabilities, which follows the entropy.
  const probe::Fit fit = known ? probe::fit({scaled, entropy, square}, d) : probe::fit({logp, ones}, d);
  const double slope = fit.weights[0], left = fit.residual * fit.residual;
  if (!(left < (known ? 0.05 : 0.1))) return std::nullopt;
  if (known) {
    double moved = 0;
    for (const double h : entropy) moved += (fit.weights[1] + fit.weights[2] * h) * h / static_cast<double>(d.size());
    if (!(std::fabs(moved) < slope * slope + 0.01) || !(std::pow(probe::fit({scaled}, d).residual, 2) < 0.2))
      return std::nullopt;
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
  std::vector<Rival> rivals;
  const auto numbers = [&](const Token& token) -> const Sequence& { return tokens.sequences[token.sequence]; };
  const auto offer = [&](std::string text, const std::optional<std::pair<double, std::size_t>>& left) {
    if (left) rivals.push_back({std::move(text), left->first, left->second});
  };
  for (const int by : {1, -1, 2, -2}) {
    const std::string far = to_text(std::int64_t{std::abs(by)});
    offer(std::string("shift by ") + (by > 0 ? "+" : "-") + far + ": the generator's value of a token stands " + far +
              (by > 0 ? " behind it" : " before it"),
          left_by(tokens, estimate.mean_abs, [&](const Token& token) {
            const auto at = static_cast<std::size_t>(static_cast<std::int64_t>(token.position) + by);
            const Numbers& gen = numbers(token).gen;
            return at < gen.size() ? static_cast<double>(gen[at]) - token.train : kNan;
          }));
  }
  const Sampling sampling = sampling_of(tokens);
  if (std::ranges::any_of(tokens.counted, [](const Token& t) { return std::fabs(t.raw - t.gen) > 1e-6; }))
    offer(raw_text(sampling),
          left_by(tokens, estimate.mean_abs, [](const Token& token) { return token.raw - token.train; }));
  offer("the generator equals the reference model: the trained weights were never delivered, or the adapter is off",
        left_by(tokens, estimate.mean_abs, [](const Token& token) { return token.gen - token.ref; }));
  std::set<std::string> names;
  for (const Sequence& one : tokens.sequences) {
    for (const auto& [name, values] : one.replays) names.insert(name);
  }
  for (const std::string& name : names) {
    offer("the generator equals the trainer's score with " + name,
          left_by(tokens, estimate.mean_abs, [&](const Token& token) {
            const auto found = numbers(token).replays.find(name);
            return found == numbers(token).replays.end()
                       ? kNan
                       : token.gen - static_cast<double>(found->second[token.position]);
          }));
  }
  if (tokens.counted.size() < kEnough) return rivals;
  if (const auto fitted = temperature(tokens, estimate)) rivals.push_back(*fitted);
  const auto below = std::ranges::count_if(tokens.counted, [&](const Token& t) { return t.d() < -floor.p99; });
  const bool above = static_cast<double>(below) <= 0.01 * static_cast<double>(tokens.counted.size());
  if (above && estimate.mean_w < 1 - 5 * estimate.w_error && estimate.bias > 5 * estimate.bias_error)
    rivals.push_back({(sampling.cut ? sampling.text + " on the generator's side alone"
                                    : "top-k or top-p on the generator's side alone") +
                          ": each of its values is higher, as the kept tokens have " + to_brief_text(estimate.mean_w) +
                          " of the trainer's probability",
                      0.1 * estimate.mean_abs});
  return rivals;
}

/// One side computes in 16 bits, though both are said to compute in 32: bounded, flat in position, unbiased.
bool like_half(const Tokens& tokens, const Estimate& estimate) {
  const Floor half = floor_of("BF16");
  std::size_t longest = 1;
  for (const Sequence& one : tokens.sequences) longest = std::max(longest, one.length());
  auto thirds = mean_by(tokens, [&](const Token& t) { return static_cast<std::int64_t>(3 * t.position / longest); });
  const double first = thirds[0], last = thirds[2];
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
  } else if (!parts.relation.empty() && tokens.counted.size() >= kEnough) {
    made.relation = parts.relation;
  } else if (estimate.mean_abs > 3 * floor.mean || estimate.p99 > 3 * floor.p99) {
    made.relation =
        exact_types && like_half(tokens, estimate)
            ? "a part of one side computes in 16 bits (the head, or all): flat in position, unbiased, within "
              "the bound of bfloat16"
        : tokens.counted.size() < kEnough ? "too few tokens to tell"
                                          : "no simple relation";
  }
  return made;
}

}  // namespace zs::rollout
