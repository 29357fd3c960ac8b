// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's schedules against its own classes: the numbers are what deepspeed/runtime/lr_schedules.py computes in
// float64 when engine.step() calls the scheduler after each update.
#include "setup/schedule.hpp"

#include <doctest/doctest.h>

#include <cmath>

using zs::setup::learning_rate;
using zs::setup::Schedule;

TEST_CASE("schedule: WarmupLR begins at its lowest twice, then rises by the logarithm or evenly, and stays") {
  Schedule s{.name = "WarmupLR", .learning_rate = 0.001, .warmup = 4, .log_warmup = true, .min_lr = 0.0001};
  const double delta = 0.0009;
  CHECK(learning_rate(s, 0, 100) == 0.0001);
  CHECK(learning_rate(s, 1, 100) == 0.0001);
  CHECK(learning_rate(s, 2, 100) == doctest::Approx(0.0001 + delta * 0.5));  // ln 2 / ln 4
  CHECK(learning_rate(s, 4, 100) == doctest::Approx(0.001));
  CHECK(learning_rate(s, 90, 100) == doctest::Approx(0.001));
  s.log_warmup = false;
  CHECK(learning_rate(s, 2, 100) == doctest::Approx(0.0001 + delta * 0.25));
  CHECK(learning_rate(s, 4, 100) == doctest::Approx(0.0001 + delta * 0.75));
  CHECK(learning_rate(s, 5, 100) == doctest::Approx(0.001));
}

TEST_CASE("schedule: WarmupDecayLR falls to its lowest at total_num_steps, the training's own where it is not set") {
  Schedule s{.name = "WarmupDecayLR", .learning_rate = 1, .warmup = 2};
  CHECK(learning_rate(s, 3, 10) == 1);
  CHECK(learning_rate(s, 7, 10) == 0.5);
  CHECK(learning_rate(s, 11, 10) == 0);
  CHECK(learning_rate(s, 20, 10) == 0);
  s.total = 6;
  CHECK(learning_rate(s, 5, 10) == 0.5);
}

TEST_CASE("schedule: WarmupCosineLR begins at 0 and ends at its share") {
  const Schedule s{
      .name = "WarmupCosineLR", .learning_rate = 2, .warmup = 2, .warmup_min_ratio = 0.5, .cos_min_ratio = 0.1};
  CHECK(learning_rate(s, 0, 6) == 0);
  CHECK(learning_rate(s, 1, 6) == 1);
  CHECK(learning_rate(s, 2, 6) == 1.5);
  CHECK(learning_rate(s, 4, 6) == doctest::Approx(2 * (0.1 + 0.9 * 0.5)));
  CHECK(learning_rate(s, 6, 6) == doctest::Approx(0.2));
  CHECK(learning_rate(s, 60, 6) == doctest::Approx(0.2));
}

TEST_CASE("schedule: Hugging Face's begin at 0 where they warm up, and end at 0") {
  const Schedule linear{.name = "linear", .learning_rate = 1, .warmup = 2},
      cosine{.name = "cosine", .learning_rate = 1};
  CHECK(learning_rate(linear, 0, 6) == 0);
  CHECK(learning_rate(linear, 1, 6) == 0.5);
  CHECK(learning_rate(linear, 4, 6) == 0.5);
  CHECK(learning_rate(cosine, 0, 6) == 1);
  CHECK(learning_rate(cosine, 3, 6) == doctest::Approx(0.5));
  CHECK(learning_rate({.learning_rate = 3}, 5, 6) == 3);
}
