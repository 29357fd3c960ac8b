// SPDX-License-Identifier: Apache-2.0
#include "unit/kept.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

namespace zs::unit {
namespace {

TEST_CASE("kept: a second forward takes the results of the first, in order, and computes nothing") {
  int computed = 0;
  const auto next = [&] {
    return kept([&] { return Results{at::full({1}, ++computed, at::kFloat)}; })[0].item<float>();
  };
  CHECK(next() == 1);
  Kept results;
  {
    const Keeping keeping(results, Keeping::Way::put);
    CHECK(next() == 2);
    CHECK(next() == 3);
  }
  CHECK(results.size() == 2);
  CHECK(next() == 4);
  {
    const Keeping keeping(results, Keeping::Way::take);
    CHECK(next() == 2);
    CHECK(next() == 3);
    CHECK(results.empty());
    CHECK_THROWS_AS(next(), std::logic_error);
  }
  CHECK(computed == 4);
}

}  // namespace
}  // namespace zs::unit
