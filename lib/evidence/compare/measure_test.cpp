// SPDX-License-Identifier: Apache-2.0
#include "compare/measure.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

namespace zs::compare {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

TEST_CASE("measure: distances in units of the last place") {
  CHECK(ulp_distance(1.0F, std::nextafter(1.0F, 2.0F)) == 1);
  CHECK(ulp_distance(0.0F, -0.0F) == 1);
  CHECK(ulp_distance(0.0F, 0.0F) == 0);
  CHECK(ulp_distance(std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::denorm_min()) == 3);
  CHECK(ulp_distance(1.0F, 2.0F) == 1 << 23);
  CHECK(ulp_distance(kNaN, kNaN) == kNoDistance);
  CHECK(ulp_distance(1.0, std::nextafter(1.0, 0.0)) == 1);
  CHECK(ulp_distance(-std::numeric_limits<double>::max(), std::numeric_limits<double>::max()) == kNoDistance);
}

TEST_CASE("measure: a tolerance accepts no NaN and no infinity, not even two alike") {
  CHECK_FALSE(Tolerance{}.accepts(0.0, -0.0));
  CHECK(Tolerance{0, 1e-300}.accepts(0.0, -0.0));
  CHECK_FALSE(Tolerance{}.accepts(1, std::nextafter(1.0, 2.0)));
  CHECK(Tolerance{0.1, 0}.accepts(1.1, 1.001));
  CHECK_FALSE(Tolerance{1e300, 1e300}.accepts(kNaN, kNaN));
  CHECK_FALSE(Tolerance{1e300, 1e300}.accepts(kInf, kInf));
}

TEST_CASE("measure: compare names the first element that is refused, and keeps the largest differences") {
  const std::array<float, 5> reference = {1, 2, 0, 4, 5};
  std::array<float, 5> target = {1, std::nextafter(2.0F, 3.0F), -0.0F, 4.5F, 5};
  Difference difference;
  CHECK(compare(target.data(), reference.data(), 5, 1, {}, difference) == 1);
  CHECK(compare(target.data() + 2, reference.data() + 2, 1, 1, {}, difference) == 0);  // the sign of zero
  CHECK(difference.absolute == 0.5);
  CHECK(difference.relative == doctest::Approx(1.0 / 9));
  Difference loose;
  CHECK(compare(target.data(), reference.data(), 5, 1, {0, 0.1}, loose) == 3);
  Difference none;
  CHECK_FALSE(compare(reference.data(), reference.data(), 5, 1, {}, none).has_value());
  CHECK(none.none());
  // What scaling would hide in float32 is seen.
  const float tiny = std::numeric_limits<float>::min(), next = std::nextafter(tiny, 1.0F);
  Difference small;
  CHECK(compare(&next, &tiny, 1, std::ldexp(1.0, -20), {}, small) == 0);
  CHECK(small.ulp == 1);
}

TEST_CASE("measure: two NaN or infinities alike are a difference") {
  for (const float value : {kNaN, kInf, -kInf}) {
    Difference difference;
    CHECK(compare(&value, &value, 1, 1, {1, 1}, difference) == 0);
    CHECK(std::isnan(difference.absolute));
    Difference zero;
    difference.join(zero);
    CHECK(std::isnan(difference.absolute));
  }
}

TEST_CASE("measure: numbers are told so that no bit is lost") {
  CHECK(decimal(0.1F) == "0.1");
  CHECK(hexadecimal(0.1F) == "0x1.99999ap-4");
  CHECK(decimal(0.1) == "0.1");
  CHECK(hexadecimal(-0.0) == "-0x0p+0");
}

}  // namespace
}  // namespace zs::compare
