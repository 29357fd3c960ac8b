// SPDX-License-Identifier: Apache-2.0
#include "rollout/cause.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace zs::rollout {
namespace {

/// Numbers that depend on the seeds alone.
struct Stream {
  std::uint64_t state;
  explicit Stream(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0)
      : state(a * 1000003 + b * 10007 + c * 101) {}
  double uniform() {
    std::uint64_t x = state += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U, x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return (static_cast<double>((x ^ (x >> 31)) >> 11) + 0.5) * 0x1p-53;
  }
  double gauss(double size) {
    return size * std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }
};

constexpr std::size_t kVocabulary = 24, kLength = 16, kPrompt = 5;
constexpr std::size_t kEnough = 256;  // tokens
constexpr std::int64_t kSteps = 4, kRows = 12;
using Row = std::array<double, kVocabulary>;

Row softmax(const Row& z) {
  const double top = std::ranges::max(z);
  double sum = 0;
  for (const double x : z) sum += std::exp(x - top);
  Row made = z;
  for (double& x : made) x -= top + std::log(sum);
  return made;
}

/// The logits of a policy whose weights have moved `version` times.
Row logits(std::int64_t sample, std::size_t position, std::int64_t version) {
  Row z{};
  for (std::int64_t v = 0; v <= version; ++v) {
    Stream draw(static_cast<std::uint64_t>(sample), position + 1, static_cast<std::uint64_t>(v));
    for (double& x : z) x += draw.gauss(v == 0 ? 1.5 : 0.35);
  }
  return z;
}

/// A rollout whose tokens a random policy draws; generator and trainer score them, one of them with the fault.
/// `certain` says of a step, row and position whether one token has almost all probability there.
Tokens rollout(
    const std::string& fault,
    bool (*certain)(std::int64_t, std::int64_t, std::size_t) = [](auto, auto, auto) { return false; }) {
  Stream draw(7), noise(8);
  Dump dump;
  const double heat = fault.starts_with("temperature") ? 0.8 : 1;
  for (std::int64_t sample = 0; sample < kSteps * kRows; ++sample) {
    Sequence one;
    one.step = sample / kRows, one.n = sample % kRows, one.sample = to_text(sample), one.prompt = kPrompt;
    one.padded = one.n % 2 ? 3 : 0, one.cached = one.n % 3 == 0 ? 4 : 0, one.temperature = heat;
    for (std::size_t i = 0; i < kPrompt; ++i)
      one.ids.push_back(2 + static_cast<std::int64_t>(draw.uniform() * (kVocabulary - 2)));
    for (std::size_t i = 0; i < kLength; ++i) {
      const std::int64_t held = fault == "stale"                           ? std::max<std::int64_t>(0, one.step - 1)
                                : fault == "never" || fault == "reference" ? 0
                                                                           : one.step;
      const auto scored = [&](std::int64_t version) {
        Row z = logits(sample, i, version);
        if (certain(one.step, one.n, i)) z[static_cast<std::size_t>(sample + 5 * one.ids.back()) % kVocabulary] += 7;
        return z;
      };
      Row drawn = scored(held);
      const double apart = fault == "padding" && one.padded                                         ? 0.05
                           : fault == "cache" && one.cached                                         ? 0.1
                           : fault == "half"                                                        ? 0.012
                           : fault == "embedding" && std::ranges::find(one.ids, 9) != one.ids.end() ? 0.6
                           : fault == "noise"                                                       ? 0.6
                                                                                                    : 0;
      for (double& x : drawn) x = x / heat + noise.gauss(apart);
      const Row raw = softmax(drawn);
      if (fault == "top-k") {
        Row sorted = drawn;
        std::ranges::sort(sorted);
        for (double& x : drawn) x = x >= sorted[kVocabulary - 8] ? x : -1e9;
      }
      for (std::size_t k = 0; k < kVocabulary && fault == "penalty"; ++k) drawn[k] -= static_cast<double>(k % 3);
      Row gen = softmax(drawn), train = scored(one.step);
      std::size_t token = 0;
      for (double left = draw.uniform(); token + 1 < kVocabulary && (left -= std::exp(gen[token])) > 0;) ++token;
      for (double& x : train) x /= fault == "temperature of the generator" ? 1 : heat;
      train = softmax(train);
      if (fault == "temperature of the trainer") gen = softmax(scored(one.step));
      const auto rounded = [&](double x) { return static_cast<float>(x + noise.gauss(3e-7)); };
      one.ids.push_back(static_cast<std::int64_t>(token));
      one.gen.push_back(rounded(gen[token])), one.train.push_back(static_cast<float>(train[token]));
      one.entropy.push_back(static_cast<float>(std::transform_reduce(train.begin(), train.end(), 0.0, std::plus{},
                                                                     [](double x) { return -std::exp(x) * x; })));
      if (fault == "penalty") one.raw.push_back(rounded(raw[token]));
      if (fault == "reference") one.ref.push_back(static_cast<float>(softmax(scored(0))[token]));
      if (fault == "adapter") one.replays["adapter off"].push_back(one.gen.back() + 0.0F), one.train.back() -= 0.5F;
    }
    if (fault == "shift") one.gen.insert(one.gen.begin(), one.gen.front()), one.gen.pop_back();
    dump.sequences.push_back(std::move(one));
  }
  return tokens_of(dump, nullptr);
}

TEST_CASE("cause: each fault of a rollout has its relation, and rounding has none") {
  struct Expected {
    const char *fault, *relation;
  };
  for (const auto& [fault, relation] : std::initializer_list<Expected>{
           {"none", ""},
           {"half", ""},
           {"shift", "shift by +1: the generator's value of a token stands 1 behind it"},
           {"temperature of the generator", "temperature 0.8 on the generator's side alone"},
           {"temperature of the trainer",
            "temperature 0.8 on the trainer's side alone: the generator's values are raw"},
           {"top-k", "top-k or top-p on the generator's side alone"},
           {"penalty", "a processor of logits (a penalty, a ban) on the generator's side alone"},
           {"stale", "the generator's weights are stale by a fixed number of steps"},
           {"never", "the generator's weights are old: never delivered"},
           {"reference", "the generator equals the reference model"},
           {"adapter", "the generator equals the trainer's score with adapter off"},
           {"padding", "mask or positions of rows that are padded on the left"},
           {"cache", "a prefix cache of older weights"},
           {"embedding", "only tokens that stand behind token 9 differ: its row of the embedding"},
           {"noise", "no simple relation"}}) {
    CAPTURE(fault);
    const Tokens tokens = rollout(fault);
    const Floor floor = floor_of(std::string(fault) == "half" ? "BF16" : "F32");
    const std::string found = cause_of(tokens, estimate(tokens.counted), floor, false).relation;
    CAPTURE(found);
    CHECK(found.substr(0, std::string(relation).size()) == relation);
    CHECK(found.empty() == !*relation);
  }
}

TEST_CASE("cause: tokens that are less certain are further apart by rounding; a fault of a part is told beside them") {
  for (const auto certain :
       {+[](std::int64_t, std::int64_t, std::size_t i) { return i < 2 * kLength / 3; },
        +[](std::int64_t, std::int64_t n, std::size_t) { return n % 2 == 0; },       // rows without padding
        +[](std::int64_t, std::int64_t n, std::size_t) { return n % 3 != 0; },       // prompts from no cache
        +[](std::int64_t step, std::int64_t, std::size_t) { return step == 0; }}) {  // before the weights move
    Tokens tokens = rollout("half", certain);
    const Estimate healthy = estimate(tokens.counted);
    const Floor floor{healthy.mean_abs, healthy.p99, "", healthy.free};
    CHECK(cause_of(tokens, healthy, floor, false).relation == "");
    tokens = rollout("padding", certain);
    CHECK(cause_of(tokens, estimate(tokens.counted), floor, false)
              .relation.starts_with("mask or positions of rows that are padded"));
  }
}

TEST_CASE("cause: a few tokens that are not certain fit no temperature by chance") {
  int told = 0;
  for (int seed = 0; seed < 64; ++seed) {
    Tokens tokens;
    Stream noise(static_cast<std::uint64_t>(seed));
    tokens.sequences.emplace_back().ids.assign(kEnough + 1, 3);
    tokens.sequences.front().prompt = 1;
    for (std::size_t i = 0; i < kEnough; ++i) {
      const double train = i < 4 ? -1 - noise.uniform() : -1e-6;
      tokens.counted.push_back({.gen = static_cast<float>(train + noise.gauss(i < 4 ? 0.02 : 1e-7)),
                                .train = static_cast<float>(train),
                                .entropy = i < 4 ? 2 - noise.uniform() : 1e-5,
                                .position = i});
    }
    told += !cause_of(tokens, estimate(tokens.counted), floor_of("BF16"), false).relation.empty();
  }
  CHECK(told == 0);
}

TEST_CASE("cause: rounding of 16 bits is told where both sides are to compute in 32, and few tokens tell nothing") {
  Tokens tokens = rollout("half");
  CHECK(cause_of(tokens, estimate(tokens.counted), floor_of("F32"), true)
            .relation.starts_with("a part of one side computes in 16 bits"));
  tokens = rollout("noise");
  tokens.counted.resize(100);
  CHECK(cause_of(tokens, estimate(tokens.counted), floor_of("F32"), false).relation == "too few tokens to tell");
}

}  // namespace
}  // namespace zs::rollout
