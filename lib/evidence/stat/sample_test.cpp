// SPDX-License-Identifier: Apache-2.0
#include "stat/sample.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/number.hpp"

namespace zs::stat {
namespace {
const double kInf = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("mean and deviation by hand") {
  const Sample values = {2, 4, 4, 4, 5, 5, 7, 9};  // squares about the mean of 5 add up to 32
  CHECK(mean(values) == 5);
  CHECK(deviation(values, Deviation::population) == 2);
  CHECK(deviation(values) == doctest::Approx(std::sqrt(32.0 / 7)));
  CHECK(std::isnan(mean({})));
  CHECK(std::isnan(deviation({1})));
  CHECK(deviation({1}, Deviation::population) == 0);
}

TEST_CASE("the mean does not lose small values beside large ones, and nan and inf are values") {
  CHECK(mean({1e16, 1, 1, -1e16}) == 0.5);
  CHECK(std::isnan(mean({1, kNan, 3})));
  CHECK(mean({1, kInf}) == kInf);
  CHECK(std::isnan(median({1, kNan, 3})));
}

TEST_CASE("quantiles are linear between order statistics") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(quantile({10, 20, 30, 40}, 0.25) == 17.5);
  CHECK(quantile({10, 20, 30, 40, 50}, 0.99) == doctest::Approx(49.6));
  CHECK(quantile({7}, 0.99) == 7);
  CHECK(quantile({1, 2}, 1) == 2);
  CHECK(std::isnan(median({})));
  CHECK(mad({1, 1, 2, 2, 4, 6, 9}) == doctest::Approx(1.4826));  // median 2, distances 1 1 0 0 2 4 7, their median 1
}

TEST_CASE("the interval of the mean is Student's") {
  const Interval interval = mean_interval({1, 2, 3, 4});  // mean 2.5, s 1.290994, t(0.975, 3) = 3.182446
  CHECK(interval.low == doctest::Approx(2.5 - 3.182446 * 1.290994 / 2).epsilon(1e-6));
  CHECK(interval.high == doctest::Approx(2.5 + 3.182446 * 1.290994 / 2).epsilon(1e-6));
  CHECK(mean_interval({1, 3}).high == doctest::Approx(2 + 12.706205 * std::sqrt(2.0) / std::sqrt(2.0)).epsilon(1e-6));
  CHECK(std::isnan(mean_interval({1}).low));
  CHECK(mean_interval({2, 2, 2}).low == 2);
  CHECK(std::isnan(mean_interval({1, kInf}).low));
}

TEST_CASE("the bootstrap covers a known median, repeats for a seed, and differs between seeds") {
  Sample values;
  for (int i = 0; i < 101; ++i) values.push_back(i);
  const Interval interval = bootstrap({values}, median_in_place, 1);
  CHECK(interval.low > 35);  // the exact interval of the median of 101 ranks is 40 to 60
  CHECK(interval.low < 45);
  CHECK(interval.high > 55);
  CHECK(interval.high < 65);
  CHECK(bootstrap({values}, median_in_place, 1).low == interval.low);
  CHECK((bootstrap({values}, mean, 1).low != bootstrap({values}, mean, 2).low));
  CHECK(bootstrap({{3, 3, 3}}, mean, 1).low == 3);
  CHECK(std::isnan(bootstrap({{3}}, mean, 1).low));
  CHECK(std::isnan(bootstrap({}, mean, 1).low));
}

TEST_CASE("several groups are drawn whole: their spread counts, not that within them") {
  const Interval interval = bootstrap({{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}, mean, 7);
  CHECK(interval.low == 1);  // a round that draws one group three times is one in 27
  CHECK(interval.high == 3);
}

TEST_CASE("the quick median is the median") {
  for (Sample values : {Sample{3}, Sample{4, 1}, Sample{5, 1, 3}, Sample{8, 2, 6, 4}}) {
    const double expected = median(values);
    CHECK(median_in_place(values) == expected);
  }
}

TEST_CASE("a slow start is found, and a steady run has none") {
  CHECK(warmup_length({9, 7, 5, 1, 1.1, 0.9, 1, 1.1, 0.9, 1, 1, 1}) == 3);
  CHECK(warmup_length({1, 1, 1, 1, 1, 1}) == 0);
  CHECK(warmup_length({5}) == 0);
  CHECK(warmup_length({}) == 0);
}

TEST_CASE("far out values are marked, whatever their number, and a steady sample has none") {
  CHECK(far_out({1, 1.1, 0.9, 1, 5}) == std::vector<bool>{false, false, false, false, true});
  CHECK(far_out({1, 1.1, 0.9, 1, kNan})[4] == true);
  CHECK(far_out({1, 1, 1, 1.5}) == std::vector<bool>{false, false, false, true});
  CHECK(far_out({1, 2, 3, 4, 5}) == std::vector<bool>(5, false));
}

}  // namespace zs::stat
