// SPDX-License-Identifier: Apache-2.0
#include "rollout/tokens.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "base/words.hpp"

namespace zs::rollout {
namespace {

std::string name_of(const Sequence& one) {
  return "step " + to_text(one.step) + ", sample " + (one.sample.empty() ? to_text(one.n) : one.sample);
}

std::string place_of(const Sequence& one, std::size_t position) {
  return name_of(one) + ", token " + to_text(one.ids[one.prompt + position]) + " at position " +
         to_text(static_cast<std::int64_t>(position));
}

/// A token counts if it does for both sides.
void join_masks(Sequence& train, const Sequence& gen, Tokens& made) {
  if (train.mask.empty() || gen.mask.empty()) {
    if (train.mask.empty()) train.mask = gen.mask;
    return;
  }
  if (train.mask == gen.mask) return;
  const bool removed = std::ranges::count(train.mask, 0) == std::ssize(train.mask);
  made.removed += removed;
  for (std::size_t i = 0; i < train.mask.size() && !removed; ++i) {
    if (train.mask[i] == gen.mask[i]) continue;
    Masked& side = train.mask[i] ? made.trained : made.untrained;
    if (side.tokens++ == 0) side.first = place_of(train, i);
    train.mask[i] = 0;
  }
}

void join(Sequence& into, const Sequence& other) {
  for (const auto side : {&Sequence::gen, &Sequence::train, &Sequence::ref, &Sequence::raw, &Sequence::entropy,
                          &Sequence::turn, &Sequence::again}) {
    if ((into.*side).empty()) into.*side = other.*side;
  }
  into.replays.insert(other.replays.begin(), other.replays.end());
  if (into.step < 0) into.step = other.step;
  if (into.versions.empty()) into.versions = other.versions;
  for (const auto set : {&Sequence::temperature, &Sequence::top_p, &Sequence::min_p}) {
    if (into.*set == 0) into.*set = other.*set;
  }
  if (into.top_k == 0) into.top_k = other.top_k;
  into.padded = std::max(into.padded, other.padded), into.cached = std::max(into.cached, other.cached);
}

/// How two sequences differ that should be one: in their ids, or in where the completion begins.
Apart how_apart(const Sequence& train, const Sequence& gen) {
  if (train.ids == gen.ids)
    return {"the token ids are equal, but the completion begins elsewhere",
            name_of(train) + ": the prompt has " + counted(train.prompt, "token") + " for the trainer and " +
                to_text(static_cast<std::int64_t>(gen.prompt)) + " for the generator"};
  const auto [x, y] = std::ranges::mismatch(train.ids, gen.ids);
  const auto at = static_cast<std::size_t>(x - train.ids.begin());
  const auto id = [](auto it, const auto& ids) { return it == ids.end() ? std::string("none") : to_text(*it); };
  const bool in_prompt = at < std::max(train.prompt, gen.prompt), ends = x == train.ids.end() || y == gen.ids.end();
  return {std::string("the token ids differ: ") +
              (in_prompt ? "another template or tokenizer, or other samples"
               : ends    ? "a completion ends earlier on one side"
                         : "a completion was decoded and encoded again, or the samples are others"),
          name_of(train) + ": token " + to_text(static_cast<std::int64_t>(at)) + " of the " +
              (in_prompt ? "prompt" : "sequence, in the completion,") + " is " + id(x, train.ids) +
              " for the trainer and " + id(y, gen.ids) + " for the generator" +
              (!ends && train.prompt == gen.prompt ? "" : "; their lengths differ")};
}

/// Pairs the sequences of two sides: by ids, in the same step if that is possible, else in the nearest; what is left,
/// by step and sample.
void pair(const Dump& train, const Dump& gen, Tokens& into) {
  const auto counts = [](const Dump& dump) {
    return std::ranges::none_of(dump.sequences, [](const Sequence& one) { return one.step < 0; });
  };
  const bool steps = counts(train) && counts(gen);  // else the ids alone join them
  const auto behind = [&](const Sequence& one, const Sequence& other) { return steps ? one.step - other.step : 0; };
  std::vector<const Sequence*> left, others;
  std::multimap<std::vector<std::int64_t>, const Sequence*> by_ids;
  for (const Sequence& one : train.sequences) left.push_back(&one);
  for (const Sequence& one : gen.sequences) by_ids.emplace(one.ids, &one);
  std::map<std::int64_t, std::size_t> lags;  // of steps: how many sequences
  for (const bool any : {false, true}) {     // any: another step, or another prompt
    std::erase_if(left, [&](const Sequence* one) {
      const auto far = [&](const Sequence* other) {
        return std::tuple(other->prompt != one->prompt, std::abs(behind(*one, *other)), other->n != one->n);
      };
      const auto [begin, end] = by_ids.equal_range(one->ids);
      const auto best =
          std::min_element(begin, end, [&](const auto& x, const auto& y) { return far(x.second) < far(y.second); });
      if (best == end) return false;
      const Sequence& other = *best->second;
      const std::int64_t lag = behind(*one, other);
      if (!any && (lag != 0 || other.prompt != one->prompt)) return false;
      ++lags[lag];
      if (other.prompt == one->prompt)
        join(into.sequences.emplace_back(*one), other), join_masks(into.sequences.back(), other, into);
      else
        into.apart.push_back(how_apart(*one, other));
      by_ids.erase(best);
      return true;
    });
  }
  for (const auto& [lag, count] : lags) {
    if (lag != 0)
      into.lags += (into.lags.empty() ? "" : "; ") + counted(count, "sequence") + " of the trainer's step N " +
                   (count == 1 ? "is" : "are") + " of the generator's step N " + (lag > 0 ? "- " : "+ ") +
                   to_text(std::abs(lag));
  }
  const auto usual = std::ranges::max_element(lags, {}, [](const auto& one) { return one.second; });
  const std::int64_t lag = usual == lags.end() ? 0 : usual->first;
  std::multimap<std::string, const Sequence*> by_sample;
  for (const auto& [ids, one] : by_ids) by_sample.emplace(one->sample, one);
  for (const Sequence* const one : left) {
    const auto near = [&](const Sequence* other) {  // the more, the nearer
      const auto same = std::ranges::mismatch(one->ids, other->ids).in1 - one->ids.begin();
      return behind(*one, *other) == lag ? std::pair(1 + (other->n == one->n), same) : std::pair(0, same);
    };
    const auto [begin, end] = by_sample.equal_range(one->sample);
    const auto best =
        std::max_element(begin, end, [&](const auto& x, const auto& y) { return near(x.second) < near(y.second); });
    if (one->sample.empty() || best == end || near(best->second).first == 0) {
      into.alone.push_back(name_of(*one) + " is only in the trainer's");
      continue;
    }
    into.apart.push_back(how_apart(*one, *best->second));
    by_sample.erase(best);
  }
  for (const auto& [sample, one] : by_sample) others.push_back(one);
  std::ranges::stable_sort(others, {}, &Sequence::step);
  for (const Sequence* const one : others) into.alone.push_back(name_of(*one) + " is only in the generator's");
}

/// The values of a side that no logarithm of a probability has. A log-softmax in 16 bits may round to a bit above 0;
/// probabilities may all be as small.
std::vector<std::string> above_zero(const Tokens& tokens, float Token::*side, float Token::*other) {
  constexpr float kRounded = 0.2F;
  const auto& all = tokens.counted;
  const bool logarithms = std::ranges::any_of(all, [&](const Token& one) { return one.*side < 0; }) ||
                          std::ranges::none_of(all, [&](const Token& one) { return one.*other < -kRounded; });
  std::vector<std::string> made;
  for (const Token& one : all) {
    if (one.*side > (logarithms ? kRounded : 0))
      made.push_back(tokens.place(one) + ": the " + (side == &Token::gen ? "generator" : "trainer") + " has " +
                     to_text(one.*side));
  }
  return made;
}

}  // namespace

bool Token::equal() const { return std::bit_cast<std::uint32_t>(gen) == std::bit_cast<std::uint32_t>(train); }

std::string Tokens::place(const Token& token) const { return place_of(sequences[token.sequence], token.position); }

Tokens tokens_of(const Dump& a, const Dump* b) {
  const auto has = [](const Dump& dump, Numbers Sequence::*side) {
    return std::ranges::any_of(dump.sequences, [&](const Sequence& one) { return !(one.*side).empty(); });
  };
  Tokens made;
  if (b) {
    const bool first_trains = has(a, &Sequence::train) && (!has(a, &Sequence::gen) || !has(*b, &Sequence::train));
    const Dump &train = first_trains ? a : *b, &gen = first_trains ? *b : a;
    if (!has(train, &Sequence::train))
      throw Error(train.path, 0, "and " + gen.path + " hold the generator's log-probabilities alone: name a trainer's");
    if (!has(gen, &Sequence::gen))
      throw Error(gen.path, 0, "and " + train.path + " hold the trainer's log-probabilities alone: name a generator's");
    pair(train, gen, made);
  } else {
    for (const bool of_train : {false, true}) {
      if (!has(a, of_train ? &Sequence::train : &Sequence::gen))
        throw Error(a.path, 0,
                    std::string("holds no log-probabilities of the ") + (of_train ? "trainer" : "generator") +
                        (a.lacks.empty() ? "" : ": " + a.lacks) + "; or name two dumps, one of each side");
    }
    made.sequences = a.sequences;
    // A trainer's rows may repeat the generator's: rows of one side alone go where one has both.
    std::map<std::pair<std::int64_t, std::vector<std::int64_t>>, int> whole;
    for (const Sequence& one : made.sequences) whole[{one.step, one.ids}] += !one.gen.empty() && !one.train.empty();
    std::erase_if(made.sequences, [&](const Sequence& one) {
      return one.train.empty() && whole[{one.step, one.ids}]-- > 0;
    });
  }
  for (Sequence& one : made.sequences) one.step = std::max<std::int64_t>(0, one.step);
  std::ranges::stable_sort(made.sequences, {}, &Sequence::step);
  for (std::size_t s = 0; s < made.sequences.size(); ++s) {
    const Sequence& one = made.sequences[s];
    if (one.gen.empty() || one.train.empty()) {
      made.alone.push_back(name_of(one) + " has no log-probabilities of the " +
                           (one.gen.empty() ? "generator" : "trainer"));
      continue;
    }
    for (std::size_t i = 0; i < one.length(); ++i) {
      if (!one.counts(i)) continue;
      const auto at = [&](const Numbers& numbers) { return numbers.empty() ? kNan : static_cast<double>(numbers[i]); };
      const Token token{one.gen[i], one.train[i], at(one.entropy), at(one.raw), at(one.ref), s, i};
      if (std::isfinite(token.gen) && std::isfinite(token.train))
        made.counted.push_back(token);
      else
        made.wild.push_back(made.place(token) + ": the " + (std::isfinite(token.gen) ? "trainer" : "generator") +
                            " has " + to_text(std::isfinite(token.gen) ? token.train : token.gen));
    }
  }
  made.above = above_zero(made, &Token::gen, &Token::train);
  if (made.above.empty()) made.above = above_zero(made, &Token::train, &Token::gen);
  return made;
}

}  // namespace zs::rollout
