// SPDX-License-Identifier: Apache-2.0
#include "rollout/parts.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::rollout {
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

/// The first step that is apart behind one that is not; -1 if there is none. And what the later ones say.
std::pair<std::int64_t, std::string> turning_step(const Tokens& tokens, const Floor& floor) {
  const auto steps = mean_by_step(tokens);
  std::int64_t first = -1;
  std::vector<double> later;
  double before = 0;
  for (const auto& [step, mean] : steps) {
    const bool apart = mean > std::max(3 * before, 3 * floor_of("F32").mean);
    if (first < 0 && step != steps.begin()->first && apart) first = step;
    if (first < 0) before = std::max(before, mean);
    if (first >= 0) later.push_back(mean);
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
    std::vector<double> in, out;
    for (const Token& token : tokens.counted) {
      const Side which = question.ask(tokens.sequences[token.sequence], token);
      if (which != Side::neither) (which == Side::in ? in : out).push_back(std::fabs(token.d()));
    }
    if (in.size() < kFew || out.size() < kFew) continue;
    struct Of {
      double mean = 0, most = 0, bad = 0;  ///< most: the 75th percentile; bad: the share that is beyond the bound
    };
    const double bound = std::max(3 * floor_of("F32").p99, floor.p99 / 2);
    const auto summed = [&](std::vector<double>& values) {
      std::ranges::sort(values);
      Of found;
      for (const double one : values) found.mean += one, found.bad += one > bound;
      const auto count = static_cast<double>(values.size());
      return Of{found.mean / count, values[values.size() * 3 / 4], found.bad / count};
    };
    const Of x = summed(in), y = summed(out);
    made.shown.push_back({question.name, question.in + " " + to_brief_text(x.mean) + ", " + question.out + " " +
                                             to_brief_text(y.mean) + " (mean |d|)"});
    const bool tells = x.mean > 3 * y.mean && x.most > 2 * y.most && x.mean > 3 * floor_of("F32").mean &&
                       (x.mean > floor.mean || question.name == "steps") && (y.bad < 0.05 || question.name != "token");
    if (!tells || question.relation.empty() || !(x.bad - y.bad > best)) continue;
    best = x.bad - y.bad, made.relation = question.relation;
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
