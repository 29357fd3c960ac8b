// SPDX-License-Identifier: Apache-2.0
#include "metric/difference.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace zs::metric;

namespace {

Table losses(const std::vector<std::pair<std::int64_t, double>>& values) {
  Table table;
  table.column("step");
  table.column("loss");
  for (const auto& [step, loss] : values) {
    table.column("step").integers().push_back(step);
    table.column("loss").reals().push_back(loss);
  }
  return table;
}

}  // namespace

TEST_CASE("difference: the first common step whose values are not the same bits") {
  const Table a = losses({{1, 2.0}, {2, NAN}, {3, 0.1}, {4, 1}, {5, 1}}),
              b = losses({{2, NAN}, {3, std::nextafter(0.1, 1)}, {4, 2}, {6, 1}});
  const Difference found = difference(a, b, "loss");
  CHECK(found.compared == 3);
  REQUIRE(found.step);
  CHECK(*found.step == 3);
  CHECK(found.a == "0.1");
  CHECK(found.b == "0.10000000000000002");
  CHECK_FALSE(difference(a, a, "loss").step);
  CHECK(difference(a, losses({{9, 1}}), "loss").compared == 0);
  CHECK(difference(a, b, "valid_loss").compared == 0);
}

TEST_CASE("difference: of a step recorded twice the last record counts") {
  CHECK_FALSE(difference(losses({{1, 5}, {2, 3}, {1, 4}}), losses({{1, 4}, {2, 3}}), "loss").step);
}
