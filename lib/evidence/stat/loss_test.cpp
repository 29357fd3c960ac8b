// SPDX-License-Identifier: Apache-2.0
#include "stat/series.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace zs::stat {

TEST_CASE("smoothing starts at the first value and follows") {
  const Sample smooth = smoothed({4, 2}, 0.5);
  CHECK(smooth[0] == 4);
  CHECK(smooth[1] == doctest::Approx((0.25 * 4 + 0.5 * 2) / 0.75));
  CHECK(smoothed({3, 3, 3}).back() == doctest::Approx(3));
  CHECK(std::isnan(smoothed({1, NAN, 1}).back()));
  CHECK(smoothed({}).empty());
}

TEST_CASE("the mean height weighs by the width of steps") {
  CHECK(mean_height({0, 10, 40}, {4, 2, 2}) == doctest::Approx((10 * 3 + 30 * 2) / 40.0));
  CHECK(mean_height({5}, {7}) == 7);
  CHECK(std::isnan(mean_height({}, {})));
}

TEST_CASE("steps to a target") {
  CHECK(first_at_most({10, 20, 30}, {3, 2, 1}, 2) == 20);
  CHECK(first_at_most({10, 20}, {NAN, 1}, 2) == 20);
  CHECK_FALSE(first_at_most({10, 20}, {3, NAN}, 2));
}

}  // namespace zs::stat
