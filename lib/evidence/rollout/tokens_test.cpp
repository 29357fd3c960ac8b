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
  CHECK(with(sequence(0, "0", {9, 1, 3}, true, false)).apart ==
        Names{"step 0, sample 0: token 2 of the sequence, in the completion, is 2 for the trainer and 3 for the "
              "generator"});
  CHECK(with(sequence(0, "0", {8, 1, 2}, true, false)).apart ==
        Names{"step 0, sample 0: token 0 of the prompt is 9 for the trainer and 8 for the generator"});
  CHECK(with(sequence(0, "0", {9, 1}, true, false)).apart ==
        Names{"step 0, sample 0: token 2 of the sequence, in the completion, is 2 for the trainer and none for the "
              "generator; their lengths differ"});
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
