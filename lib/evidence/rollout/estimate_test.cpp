// SPDX-License-Identifier: Apache-2.0
#include "rollout/estimate.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace zs::rollout {
namespace {

/// Two sequences: of two tokens and of one.
Tokens three() {
  Tokens made;
  Sequence one;
  one.ids = {1, 2, 3}, one.prompt = 1;
  made.sequences = {one, one};
  made.counted = {{.gen = -1.0F, .train = -1.5F, .sequence = 0, .position = 0},
                  {.gen = -2.0F, .train = -2.0F, .sequence = 0, .position = 1},
                  {.gen = -0.5F, .train = -0.25F, .sequence = 1, .position = 0}};
  return made;
}

double metric(const std::string& system, const std::string& name) {
  for (const auto& [key, value] : metrics(three(), system)) {
    if (key == name) return value;
  }
  return kNan;
}

TEST_CASE("estimate: each number by its definition") {
  const Estimate found = estimate(three().counted);  // d: 0.5, 0, -0.25
  CHECK(found.tokens == 3);
  CHECK(found.equal == 1);
  CHECK(found.mean_abs == doctest::Approx(0.25));
  CHECK(found.max == doctest::Approx(0.5));
  CHECK(found.bias == doctest::Approx(0.25 / 3));
  CHECK(found.k2 == doctest::Approx((0.25 + 0.0625) / 6));
  const double a = std::exp(-0.5), c = std::exp(0.25);
  CHECK(found.mean_w == doctest::Approx((a + 1 + c) / 3));
  CHECK(found.k3 == doctest::Approx(((a - 1 + 0.5) + 0 + (c - 1 - 0.25)) / 3));
  CHECK(found.k3 - found.bias == doctest::Approx(found.mean_w - 1));
  CHECK(found.ess == doctest::Approx((a + 1 + c) * (a + 1 + c) / 3 / (a * a + 1 + c * c)));
  CHECK(found.outside == doctest::Approx(2.0 / 3));
}

TEST_CASE("estimate: equal tokens have a correlation of one and no distance") {
  std::vector<Token> same(4, Token{.gen = -1.0F, .train = -1.0F});
  const Estimate found = estimate(same);
  CHECK(found.equal == 4);
  CHECK(found.pearson == 1);
  CHECK(found.mean_abs == 0);
  CHECK(found.ess == doctest::Approx(1));
}

TEST_CASE("metrics: a system's own name and definition") {
  CHECK(metric("TRL", "sampling/sampling_logp_difference/mean") == doctest::Approx(0.25));
  // verl's are of probabilities, though their name says log-probabilities.
  const double x = std::exp(-1.0) - std::exp(-1.5), y = std::exp(-0.25) - std::exp(-0.5);
  CHECK(metric("verl", "training/rollout_probs_diff_mean") == doctest::Approx((x + y) / 3));
  CHECK(metric("verl", "training/rollout_probs_diff_max") == doctest::Approx(std::max(x, y)));
  CHECK(metric("verl", "rollout_corr/ppl_ratio") == doctest::Approx((std::exp(0.25) + std::exp(-0.25)) / 2));
  CHECK(metric("NeMo-RL", "token_mult_prob_error") == doctest::Approx((std::exp(0.5) + 1 + std::exp(0.25)) / 3));
  CHECK(metric("slime", "train_rollout_logprob_abs_diff") == doctest::Approx((0.25 + 0.25) / 2));
  CHECK(metric("torchtitan", "bit_wise/logprob_diff/mean") == doctest::Approx(-0.25 / 3));
  CHECK(metrics(three(), "unknown").empty());
}

TEST_CASE("tokens: a mask leaves tokens out, and what is not finite has its place") {
  Dump dump;
  Sequence one;
  one.ids = {9, 4, 5, 6}, one.prompt = 1, one.sample = "7";
  one.gen = {-1.0F, -2.0F, NAN}, one.train = {-1.0F, -9.0F, -1.0F}, one.mask = {1, 0, 1};
  dump.sequences = {one};
  const Tokens found = tokens_of(dump, nullptr);
  CHECK(found.counted.size() == 1);
  REQUIRE(found.wild.size() == 1);
  CHECK(found.wild[0] == "step 0, sample 7, token 6 at position 2: the generator has nan");
}

}  // namespace
}  // namespace zs::rollout
