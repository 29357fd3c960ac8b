// SPDX-License-Identifier: Apache-2.0
#include "rollout/answer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "compare/ledger.hpp"
#include "rollout/cause.hpp"
#include "rolloutfile/form.hpp"

namespace zs::rollout {
namespace {

using compare::Verdict;

/// Whether each value is one of bfloat16's.
bool stored_as_half(const Tokens& tokens, float Token::*side) {
  return !tokens.counted.empty() && std::ranges::all_of(tokens.counted, [&](const Token& token) {
    return (std::bit_cast<std::uint32_t>(token.*side) & 0xFFFFu) == 0;
  });
}

/// What the trainer scored again, beside its first score: they differ by rounding.
std::vector<Token> scored_again(const Tokens& tokens) {
  std::vector<Token> twice;
  for (Token token : tokens.counted) {
    const Numbers& again = tokens.sequences[token.sequence].again;
    if (!again.empty() && std::isfinite(again[token.position]))
      token.gen = again[token.position], twice.push_back(token);
  }
  return twice;
}

/// What rounding moves in the tokens at hand, by what it has moved in others. If those were more certain, it has moved
/// them less: its mean grows, and a smaller share of them is beyond p99. If they show nothing, at least `of_type`.
Floor measured(const std::vector<Token>& others, const Estimate& all, const Floor& of_type, std::string said) {
  const double free = estimate(others).free, certain = std::min(1.0, std::max(free, 0.01) / all.free);
  const bool shows = certain == 1 || free * static_cast<double>(others.size()) >= kFree;
  const Estimate found = estimate(others, 0.01 * certain);
  const Floor least = shows ? floor_of("F32") : of_type;
  return {std::max(found.mean_abs / certain, least.mean), std::max(found.p99, least.p99), std::move(said),
          std::max(free, all.free)};
}

/// The bound of the coarser type that the dumps name, or a measured one.
Floor bound_of(const Tokens& tokens, const Estimate& all, const std::vector<const Dump*>& dumps,
               const std::string& healthy, bool& exact_types) {
  std::set<std::string> types;
  bool unknown = false;
  for (const Dump* const dump : dumps) {
    for (const std::string& type : {dump->generator_dtype, dump->trainer_dtype})
      type.empty() ? void() : void(types.insert(type));
    unknown |= dump->generator_dtype.empty() && dump->trainer_dtype.empty();
  }
  exact_types = !unknown && types == std::set<std::string>{"F32"};
  Floor made = floor_of(exact_types ? "F32" : types.contains("F16") && !types.contains("BF16") ? "F16" : "BF16");
  double heat = 1;
  if (types.empty()) made.said += " (the dump does not name its types)";
  // Logits that are divided by a temperature have their rounding divided, too.
  for (const Sequence& one : tokens.sequences) {
    if (one.temperature > 0) heat = std::min(heat, one.temperature);
  }
  made.mean /= heat, made.p99 /= heat;
  if (!healthy.empty()) {
    const std::vector<Token> found = tokens_of(rolloutfile::read(healthy), nullptr).counted;
    if (found.empty()) throw Error(healthy, 0, "has no tokens that both sides scored: it shows no bound");
    exact_types = false;
    return measured(found, all, made, "measured in " + healthy);
  }
  const std::vector<Token> twice = scored_again(tokens);
  if (twice.size() < 64) return made;  // too few for a mean
  return measured(twice, all, made, "of the trainer, scored again with all that it computes moved by a unit");
}

/// The token with which the difference begins: the first one far beyond the bound, else the one that differs most.
const Token& first_apart(const Tokens& tokens, const Floor& floor) {
  const auto far = [&](double by) {
    return std::ranges::find_if(tokens.counted, [&](const Token& token) { return std::fabs(token.d()) > by; });
  };
  for (const double by : {10 * floor.p99, 3 * floor.p99}) {
    if (const auto found = far(by); found != tokens.counted.end()) return *found;
  }
  return *std::ranges::max_element(tokens.counted, {}, [](const Token& token) { return std::fabs(token.d()); });
}

Curves curves_of(const Tokens& tokens, const Floor& bound) {
  constexpr std::size_t kBins = 32;
  Curves made{.bound = 3 * bound.mean};
  std::size_t longest = 1;
  for (const Sequence& one : tokens.sequences) {
    longest = std::max(longest, one.length());
    for (const auto& [count, version] : one.versions) {
      const auto number = parse_int(version);
      if (!number) continue;
      const auto at = made.versions.try_emplace(one.step, *number, *number).first;
      at->second = {std::min(at->second.first, *number), std::max(at->second.second, *number)};
    }
  }
  const std::size_t wide = (longest + kBins - 1) / kBins;
  made.steps = mean_by_step(tokens);
  made.positions =
      mean_by(tokens, [&](const Token& token) { return static_cast<std::int64_t>(token.position / wide * wide); });
  return made;
}

compare::Settled settled(const Tokens& tokens, Verdict outcome, bool broken) {
  compare::Holdings both, alone;
  std::map<std::string, std::int64_t> counts;
  for (const Token& token : tokens.counted) ++counts["step " + to_text(tokens.sequences[token.sequence].step)];
  for (const auto& [step, count] : counts) both.add(step, count), alone.add(step, count);
  for (const std::string& one : tokens.alone) both.add(one);
  compare::Ledger ledger(both, alone);
  for (const auto& [step, count] : counts) ledger.compared(step, outcome, count);
  if (broken || tokens.untrained.tokens > 0) ledger.at_least(Verdict::inconclusive);
  if (!tokens.wild.empty() || !tokens.above.empty()) ledger.at_least(Verdict::failed);
  if (!tokens.apart.empty() || tokens.trained.tokens > 0) ledger.at_least(Verdict::different);
  return ledger.settle();
}

class Lines {
 public:
  explicit Lines(Answer& made) : made_(made) {}
  /// Leaves a line without text out.
  void operator()(const std::string& key, const std::string& text) {
    if (!text.empty()) made_.lines.emplace_back(key, text);
  }

 private:
  Answer& made_;
};

constexpr std::size_t kEnough = 256;  // tokens

/// The tokens that count for one side alone.
std::string masked(const Tokens& tokens, bool trained) {
  const Masked& side = trained ? tokens.trained : tokens.untrained;
  return "the trainer " + std::string(trained ? "counts " : "leaves out ") + counted(side.tokens, "token") +
         " that the generator " + (trained ? "leaves out" : "counts") + ", the first: " + side.first;
}

/// Why the verdict is what it is, and where the difference begins.
void add_reason(const Tokens& tokens, const Estimate& found, const Floor& bound, const Cause& cause, Verdict outcome,
                Lines line) {
  if (!tokens.apart.empty()) {
    line("reason", tokens.apart.front().reason);
    line("where", tokens.apart.front().where);
  } else if (!tokens.wild.empty()) {
    line("reason", "values are not finite: " + some_of(tokens.wild, 3, "; "));
  } else if (!tokens.above.empty()) {
    line("reason", "a log-probability is never above 0: " + some_of(tokens.above, 1, "; "));
  } else if (outcome == Verdict::different) {
    line("reason", "log-probabilities differ beyond rounding");
    line("relation", cause.relation);
    const Token& token = first_apart(tokens, bound);
    line("where", tokens.place(token) + ": generator " + to_text(token.gen) + ", trainer " + to_text(token.train));
  } else if (tokens.trained.tokens > 0) {
    line("reason", "the masks differ: " + masked(tokens, true));
  } else if (outcome == Verdict::inconclusive) {
    line("reason", "fewer than " + to_text(std::int64_t{kEnough}) + " tokens: too few to tell rounding from a fault");
  } else if (found.tokens == 0) {
    line("reason", "no token was scored by both sides");
  } else if (!tokens.alone.empty()) {
    line("reason", "sequences of one side have no partner");
  } else if (tokens.untrained.tokens > 0) {
    line("reason", "the masks differ, which may be meant: " + masked(tokens, false));
  }
}

void add_figures(const Tokens& tokens, const Estimate& found, const Floor& bound, const Curves& curves, Lines line) {
  line("compared", counted(found.tokens, "token") + " of " + counted(tokens.sequences.size(), "sequence") + " in " +
                       counted(curves.steps.size(), "step") + "; " + to_text(static_cast<std::int64_t>(found.equal)) +
                       " equal in bits");
  line("difference", "mean |d| " + to_brief_text(found.mean_abs) + ", p99 " + to_brief_text(found.p99) + ", largest " +
                         to_brief_text(found.max) + "; d is the generator's minus the trainer's");
  line("bound", "mean " + to_brief_text(3 * bound.mean) + ", p99 " + to_brief_text(3 * bound.p99) +
                    ", three times the rounding " + bound.said);
  line("estimators", "k1 " + to_brief_text(found.bias) + " +- " + to_brief_text(found.bias_error) + ", k2 " +
                         to_brief_text(found.k2) + ", k3 " + to_brief_text(found.k3) + ", mean w " +
                         to_brief_text(found.mean_w) + " +- " + to_brief_text(found.w_error) + ", ESS " +
                         to_brief_text(found.ess) + ", outside 0.9..1.1 " + to_brief_text(found.outside) +
                         ", Pearson " + to_brief_text(found.pearson));
}

}  // namespace

Answer compare(const std::string& a, const std::string& b, const std::string& floor) {
  const Dump first = rolloutfile::read(a);
  std::optional<Dump> second;
  if (!b.empty()) second = rolloutfile::read(b);
  const Tokens tokens = tokens_of(first, second ? &*second : nullptr);
  const Estimate found = estimate(tokens.counted);
  bool exact_types = false;
  std::vector<const Dump*> dumps = {&first};
  if (second) dumps.push_back(&*second);
  const Floor bound = bound_of(tokens, found, dumps, floor, exact_types);
  Answer made{.curves = curves_of(tokens, bound), .ended = first.open == 0 && (!second || second->open == 0)};
  Lines line(made);
  Cause cause;
  Verdict outcome = Verdict::exact;
  if (found.equal < found.tokens && tokens.above.empty()) {
    cause = cause_of(tokens, found, bound, exact_types);
    const bool tiny = found.max <= 3 * floor_of("F32").p99;  // which only rounding leaves
    outcome = !cause.relation.empty()           ? Verdict::different
              : found.tokens < kEnough && !tiny ? Verdict::inconclusive
                                                : Verdict::rounding;
  }
  std::vector<std::string> broken = first.broken;
  if (second) broken.insert(broken.end(), second->broken.begin(), second->broken.end());
  made.verdict = settled(tokens, outcome, !broken.empty());
  line("verdict", std::string(compare::name(made.verdict)));
  add_reason(tokens, found, bound, cause, outcome, line);
  line("failure", some_of(broken, 3, "; "));
  line("steps", tokens.lags.empty() ? "" : tokens.lags + ": steps are counted otherwise, or these samples are old");
  line("not compared", some_of(tokens.alone, 3, "; "));
  if (tokens.removed > 0) line("left_out", counted(tokens.removed, "sequence") + ", whole, by the trainer's mask");
  if (found.tokens == 0) return made;
  add_figures(tokens, found, bound, made.curves, line);
  for (const Partition& part : cause.partitions) line("by " + part.name, part.text);
  if (outcome == Verdict::different) line("tested", cause.tested);
  for (const bool gen : {true, false}) {
    if (stored_as_half(tokens, gen ? &Token::gen : &Token::train))
      line(gen ? "generator" : "trainer", "its values were stored in bfloat16");
  }
  for (const auto& [name, value] : metrics(tokens, first.system)) line(first.system + " " + name, to_text(value));
  return made;
}

}  // namespace zs::rollout
