// SPDX-License-Identifier: Apache-2.0
#include "rollout/cause.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/relation.hpp"

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
  if (tokens.counted.size() < kEnough || estimate.free * static_cast<double>(estimate.tokens) < kFree) return rivals;
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

namespace {

constexpr std::size_t kFew = 64;  // tokens of a part
enum class Side { in, out, neither };

/// A question about a token; `in` and `out` name the tokens, `relation` what it means that those within are apart.
struct Question {
  std::string name, in, out, relation;
  std::function<Side(const Sequence&, const Token&)> ask;
};

Side side(bool in) { return in ? Side::in : Side::out; }

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

/// Of some tokens. The log-probability of a token moves by about 1 - p of what its logits move: rounding moves tokens
/// that are less certain further.
struct Sum {
  double apart = 0, free = 0, count = 0;  ///< of |d|, of 1 - p
  void add(const Token& token) { apart += std::fabs(token.d()), free += token.free(), ++count; }
  double mean() const { return count > 0 ? apart / count : 0; }
  double moved() const { return free > 0 ? apart / free : 0; }  ///< about how far its logits are apart
};

/// The first step that is apart behind one that is not; -1 if there is none. And what the later ones say.
std::pair<std::int64_t, std::string> turning_step(const Tokens& tokens, const Floor& floor) {
  std::map<std::int64_t, Sum> steps;
  for (const Token& token : tokens.counted) steps[tokens.sequences[token.sequence].step].add(token);
  std::int64_t first = -1;
  std::vector<double> later;
  double before = 0, moved = 0;
  for (const auto& [step, sum] : steps) {
    const bool apart = sum.mean() > std::max(3 * before, 3 * floor_of("F32").mean) && sum.moved() > 3 * moved;
    if (first < 0 && step != steps.begin()->first && apart) first = step;
    if (first < 0) before = std::max(before, sum.mean()), moved = std::max(moved, sum.moved());
    if (first >= 0) later.push_back(sum.moved());
  }
  if (first < 0 || before > 3 * floor.mean) return {-1, ""};
  const bool grows = later.size() >= 2 && later.back() > 1.4 * later.front();
  const bool steady = later.size() >= 2 && !grows && std::ranges::max(later) < 1.4 * later.front();
  return {first, grows && std::ranges::is_sorted(later)
                     ? "the generator's weights are old: never delivered, since the difference grows with each step"
                 : steady
                     ? "the generator's weights are stale by a fixed number of steps: equal at first, then apart by "
                       "about as much at each step"
                     : "the generator's weights are old: never delivered, or stale. Until step " + to_text(first) +
                           " both sides are equal"};
}

/// The token behind which most sequences begin to differ, more than chance explains; -1 if there is none.
std::int64_t marked_token(const Tokens& tokens, const Floor& floor) {
  const double bound = 3 * std::max(floor.p99, floor_of("F32").p99);
  std::map<std::int64_t, double> drawn, marked;
  std::vector<bool> begun(tokens.sequences.size());
  double begins = 0;
  for (const Token& token : tokens.counted) {
    const Sequence& one = tokens.sequences[token.sequence];
    const auto id = one.ids.begin() + static_cast<std::ptrdiff_t>(one.prompt + token.position);
    ++drawn[*id];
    if (begun[token.sequence] || std::fabs(token.d()) <= bound) continue;
    begun[token.sequence] = true;
    if (token.position > 0) ++marked[*(id - 1)], ++begins;
  }
  const auto most = std::ranges::max_element(marked, {}, [](const auto& one) { return one.second; });
  if (most == marked.end() || most->second < 3) return -1;
  // The chance that this number of them follow one token, if drawn from all.
  const double k = most->second, share = drawn[most->first] / static_cast<double>(tokens.counted.size());
  const double ways = std::lgamma(begins + 1) - std::lgamma(k + 1) - std::lgamma(begins - k + 1);
  const double chance = ways + k * std::log(share) + std::log(static_cast<double>(drawn.size()));
  return chance < std::log(1e-4) ? most->first : -1;
}

std::vector<Question> questions(const Tokens& tokens, const Floor& floor) {
  std::vector<double> prompts, lengths;
  for (const Sequence& one : tokens.sequences)
    prompts.push_back(static_cast<double>(one.prompt)), lengths.push_back(static_cast<double>(one.length()));
  const double prompt = middle(prompts), length = middle(lengths);
  const double longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
  const auto [turning, weights] = turning_step(tokens, floor);
  std::vector<Question> made;
  made.push_back({"padding", "padded rows", "others", "mask or positions of rows that are padded on the left",
                  [](const Sequence& s, const Token&) { return s.padded < 0 ? Side::neither : side(s.padded > 0); }});
  made.push_back({"cache", "prompts from a cache", "others",
                  "a prefix cache of older weights: only tokens behind a cached prompt differ",
                  [](const Sequence& s, const Token&) { return s.cached < 0 ? Side::neither : side(s.cached > 0); }});
  if (turning >= 0)
    made.push_back({"steps", "from step " + to_text(turning) + " on", "before", weights,
                    [turning](const Sequence& s, const Token&) { return side(s.step >= turning); }});
  if (const std::int64_t id = marked_token(tokens, floor); id >= 0)
    made.push_back({"token", "behind token " + to_text(id), "others",
                    "only tokens that stand behind token " + to_text(id) + " differ: its row of the embedding",
                    [id, last = static_cast<const Sequence*>(nullptr), first = std::ptrdiff_t{0}](
                        const Sequence& s, const Token& t) mutable {
                      if (last != &s) last = &s, first = std::ranges::find(s.ids, id) - s.ids.begin();
                      return side(s.prompt + t.position > static_cast<std::size_t>(first));
                    }});
  made.push_back({"turns", "later turns", "the first turn", "turns behind the first: their template, mask or positions",
                  [](const Sequence& s, const Token& t) {
                    return s.turn.empty() ? Side::neither : side(s.turn[t.position] > 0);
                  }});
  made.push_back({"first chunk", "first tokens", "later tokens",
                  "the first token of a completion, which the prefill makes",
                  [](const Sequence&, const Token& t) { return side(t.position == 0); }});
  made.push_back({"position", "last third", "first third",
                  "positions: the difference grows along the sequence (rotary base, scaling, window)",
                  [longest](const Sequence&, const Token& t) {
                    const auto at = static_cast<double>(t.position);
                    return at >= longest * 2 / 3 ? Side::in : at < longest / 3 ? Side::out : Side::neither;
                  }});
  made.push_back({"prompt", "long prompts", "short prompts", "long prompts: their positions, window or cut",
                  [prompt](const Sequence& s, const Token&) { return side(static_cast<double>(s.prompt) > prompt); }});
  made.push_back({"length", "long completions", "short completions", "", [length](const Sequence& s, const Token&) {
                    return side(static_cast<double>(s.length()) > length);
                  }});
  made.push_back({"forced", "p <= 0.99", "p > 0.99", "",
                  [](const Sequence&, const Token& t) { return side(t.train <= std::log(0.99)); }});
  made.push_back({"entropy", "above its middle", "below", "", nullptr});
  std::vector<double> entropies;
  for (const Token& token : tokens.counted) {
    if (std::isfinite(token.entropy)) entropies.push_back(token.entropy);
  }
  made.back().ask = [half = middle(entropies)](const Sequence&, const Token& t) {
    return std::isfinite(t.entropy) ? side(t.entropy > half) : Side::neither;
  };
  return made;
}

}  // namespace

std::map<std::int64_t, double> mean_by(const Tokens& tokens, const std::function<std::int64_t(const Token&)>& key) {
  std::map<std::int64_t, std::pair<double, double>> sums;
  for (const Token& token : tokens.counted) {
    auto& [sum, count] = sums[key(token)];
    sum += std::fabs(token.d()), ++count;
  }
  std::map<std::int64_t, double> means;
  for (const auto& [at, pair] : sums) means[at] = pair.first / pair.second;
  return means;
}

std::map<std::int64_t, double> mean_by_step(const Tokens& tokens) {
  return mean_by(tokens, [&](const Token& token) { return tokens.sequences[token.sequence].step; });
}

Parts parts_of(const Tokens& tokens, const Floor& floor) {
  Parts made;
  double best = 0;
  for (const Question& question : questions(tokens, floor)) {
    struct Of {
      std::vector<double> values{};
      Sum sum{};
      double most = 0, bad = 0;  ///< most: the 75th percentile; bad: the share that is beyond the bound
    };
    Of in, out;
    const double bound = std::max(3 * floor_of("F32").p99, floor.p99 / 2);
    for (const Token& token : tokens.counted) {
      const Side which = question.ask(tokens.sequences[token.sequence], token);
      if (which == Side::neither) continue;
      Of& into = which == Side::in ? in : out;
      into.values.push_back(std::fabs(token.d())), into.sum.add(token), into.bad += into.values.back() > bound;
    }
    if (in.values.size() < kFew || out.values.size() < kFew) continue;
    for (Of* const one : {&in, &out}) {
      std::ranges::sort(one->values);
      one->most = one->values[one->values.size() * 3 / 4], one->bad /= one->sum.count;
    }
    const Sum &x = in.sum, &y = out.sum;
    made.shown.push_back({question.name, question.in + " " + to_brief_text(x.mean()) + ", " + question.out + " " +
                                             to_brief_text(y.mean()) + " (mean |d|)"});
    const bool further = x.mean() > 3 * y.mean() && in.most > 2 * out.most && x.moved() > 3 * y.moved() &&
                         std::min(x.free, y.free) > kFree;
    const double rounding = floor.mean * std::max(1.0, x.free / x.count / floor.free);
    const bool tells = further && x.mean() > 3 * floor_of("F32").mean &&
                       (x.mean() > rounding || question.name == "steps") &&
                       (out.bad < 0.05 || question.name != "token");
    if (!tells || question.relation.empty() || !(in.bad - out.bad > best)) continue;
    best = in.bad - out.bad, made.relation = question.relation;
  }
  std::string steps;
  std::size_t count = 0;
  for (const auto& [step, mean] : mean_by_step(tokens)) {
    if (++count > 12) break;
    steps += (steps.empty() ? "" : ", ") + to_text(step) + ": " + to_brief_text(mean);
  }
  if (count > 1) made.shown.insert(made.shown.begin(), {"step", steps + " (mean |d|)"});
  return made;
}

}  // namespace zs::rollout
