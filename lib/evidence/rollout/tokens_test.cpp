// SPDX-License-Identifier: Apache-2.0
#include "rollout/tokens.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace zs::rollout {
namespace {

using Names = std::vector<std::string>;

/// A sequence of one prompt token and the other ids; each side has a number for each, or none.
Sequence sequence(std::int64_t step, const std::string& sample, std::vector<std::int64_t> ids, bool gen, bool train) {
  Sequence made;
  made.step = step, made.sample = sample, made.ids = std::move(ids), made.prompt = 1;
  if (gen) made.gen.assign(made.length(), -1.0F);
  if (train) made.train.assign(made.length(), -2.0F);
  return made;
}

Dump dump(const std::string& path, std::vector<Sequence> sequences) {
  return {.path = path, .lacks = "switch it on", .sequences = std::move(sequences)};
}

TEST_CASE("tokens: sequences of two dumps are paired by step and token ids, in any order of the dumps") {
  Dump train = dump("t", {sequence(0, "0", {9, 1, 2}, false, true), sequence(1, "1", {9, 1, 2}, false, true)});
  Dump gen = dump("g", {sequence(1, "x", {9, 1, 2}, true, false), sequence(0, "y", {9, 1, 2}, true, false)});
  gen.sequences[0].temperature = 0.5, gen.sequences[0].mask = {1, 0}, gen.sequences[0].padded = 2;
  for (const Tokens& found : {tokens_of(train, &gen), tokens_of(gen, &train)}) {
    REQUIRE(found.sequences.size() == 2);
    CHECK(found.counted.size() == 3);
    CHECK(found.alone.empty());
    CHECK(found.sequences[1].sample == "1");
    CHECK(found.sequences[1].temperature == 0.5);
    CHECK(found.sequences[1].padded == 2);
    CHECK(found.counted[2].d() == 1);
  }
  // Without steps the ids alone count; the step that one side has stays.
  gen.sequences[0].step = gen.sequences[1].step = -1;
  CHECK(tokens_of(train, &gen).sequences.at(1).step == 1);
}

TEST_CASE("tokens: a sequence without a partner, or with other ids, is told") {
  const Dump train = dump("t", {sequence(0, "0", {9, 1, 2}, false, true)});
  const auto with = [&](Sequence other) {
    const Dump gen = dump("g", {std::move(other)});
    return tokens_of(train, &gen);
  };
  Tokens found = with(sequence(0, "5", {9, 1, 3}, true, false));
  CHECK(found.alone ==
        Names{"step 0, sample 0 is only in the trainer's", "step 0, sample 5 is only in the generator's"});
  CHECK(found.apart.empty());
  struct Row {
    std::vector<std::int64_t> ids;
    std::size_t prompt;
    std::string reason, where;
  };
  for (const auto& [ids, prompt, reason, where] :
       std::vector<Row>{{{9, 1, 3},
                         1,
                         "a completion was decoded and encoded again",
                         "token 2 of the sequence, in the completion, is 2 for the trainer and 3 for the generator"},
                        {{8, 1, 2},
                         1,
                         "another template or tokenizer",
                         "token 0 of the prompt is 9 for the trainer and 8 for the generator"},
                        {{9, 1},
                         1,
                         "a completion ends earlier on one side",
                         "token 2 of the sequence, in the completion, is 2 for the trainer and none for the generator; "
                         "their lengths differ"},
                        {{9, 1, 2},
                         2,
                         "the completion begins elsewhere",
                         "the prompt has 1 token for the trainer and 2 for the generator"}}) {
    Sequence other = sequence(0, "0", ids, false, false);
    other.prompt = prompt, other.gen.assign(other.length(), -1.0F);
    found = with(other);
    REQUIRE(found.apart.size() == 1);
    CHECK(found.apart[0].reason.find(reason) != std::string::npos);
    CHECK(found.apart[0].where == "step 0, sample 0: " + where);
    CHECK(found.alone.empty());
  }
}

TEST_CASE("tokens: samples of one prompt are told apart by their numbers, else by the ids that they share") {
  for (const bool numbered : {true, false}) {
    Dump train = dump("t", {}), gen = dump("g", {});
    for (std::int64_t n = 0; n < 4; ++n) {
      train.sequences.push_back(sequence(0, "0", {9, 8, 7 * n, 4, 1}, false, true));
      gen.sequences.insert(gen.sequences.begin(), sequence(0, "0", {9, 8, 7 * n, 4, 5}, true, false));
      if (numbered) train.sequences.back().n = gen.sequences.front().n = n;
    }
    const Tokens found = tokens_of(train, &gen);
    CHECK(found.alone.empty());
    REQUIRE(found.apart.size() == 4);
    for (const Apart& one : found.apart)
      CHECK(
          one.where ==
          "step 0, sample 0: token 4 of the sequence, in the completion, is 1 for the trainer and 5 for the generator");
  }
}

TEST_CASE("tokens: sequences whose steps are counted otherwise are paired, and told") {
  Dump train = dump("t", {}), gen = dump("g", {});
  for (std::int64_t step = 0; step < 3; ++step) {
    for (std::int64_t s = 0; s < 2; ++s) {
      train.sequences.push_back(sequence(step + 1, to_text(s), {9, 10 * step + s, 5}, false, true));
      gen.sequences.push_back(sequence(step, to_text(s), {9, 10 * step + s, step == 2 && s == 1 ? 6 : 5}, true, false));
    }
  }
  Tokens found = tokens_of(train, &gen);
  CHECK(found.sequences.size() == 5);
  CHECK(found.sequences.back().step == 3);
  CHECK(found.alone.empty());
  CHECK(found.lags == "5 sequences of the trainer's step N are of the generator's step N - 1");
  REQUIRE(found.apart.size() == 1);
  CHECK(found.apart[0].where.starts_with("step 3, sample 1: token 2 of the sequence"));
  for (Sequence& one : gen.sequences) ++one.step;
  CHECK(tokens_of(train, &gen).lags == "");
}

TEST_CASE("tokens: a token counts if both masks say so, and those of one mask alone are told") {
  Dump train = dump("t", {sequence(0, "0", {9, 1, 2, 3}, false, true), sequence(0, "1", {9, 4, 5, 6}, false, true),
                          sequence(0, "2", {9, 7, 7, 7}, false, true)});
  Dump gen = dump("g", {sequence(0, "0", {9, 1, 2, 3}, true, false), sequence(0, "1", {9, 4, 5, 6}, true, false),
                        sequence(0, "2", {9, 7, 7, 7}, true, false)});
  train.sequences[0].mask = {1, 1, 0}, gen.sequences[0].mask = {1, 0, 1};
  train.sequences[1].mask = {0, 0, 0}, gen.sequences[1].mask = {1, 1, 1};  // a sample that the trainer filters
  gen.sequences[2].mask = {1, 1, 0};
  const Tokens found = tokens_of(train, &gen);
  CHECK(found.counted.size() == 3);
  CHECK(found.trained.tokens == 1);
  CHECK(found.trained.first == "step 0, sample 0, token 2 at position 1");
  CHECK(found.untrained.tokens == 1);
  CHECK(found.untrained.first == "step 0, sample 0, token 3 at position 2");
  CHECK(found.removed == 1);
}

TEST_CASE("tokens: rows of one side go where one row has both; else they are alone") {
  const Sequence gen = sequence(0, "0", {9, 1, 2}, true, false), both = sequence(0, "0", {9, 1, 2}, true, true);
  Tokens found = tokens_of(dump("d", {gen, both}), nullptr);
  CHECK(found.sequences.size() == 1);
  CHECK(found.counted.size() == 2);
  found = tokens_of(dump("d", {both, sequence(0, "1", {9, 4}, true, false)}), nullptr);
  CHECK(found.alone == Names{"step 0, sample 1 has no log-probabilities of the trainer"});
}

TEST_CASE("tokens: a side that no dump has is an error with the remedy") {
  const Dump gen = dump("g", {sequence(0, "0", {9, 1}, true, false)}),
             train = dump("t", {sequence(0, "0", {9, 1}, false, true)});
  CHECK_THROWS_WITH(tokens_of(gen, nullptr),
                    doctest::Contains("g: holds no log-probabilities of the trainer: switch it on"));
  CHECK_THROWS_WITH(tokens_of(train, nullptr), doctest::Contains("no log-probabilities of the generator"));
  CHECK_THROWS_WITH(tokens_of(gen, &gen), doctest::Contains("hold the generator's log-probabilities alone"));
  CHECK_THROWS_WITH(tokens_of(train, &train), doctest::Contains("hold the trainer's log-probabilities alone"));
}

}  // namespace
}  // namespace zs::rollout
