// SPDX-License-Identifier: Apache-2.0
#include "probe/relation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

namespace zs::probe {
namespace {

Sketch drawn(unsigned seed, std::size_t size = 128) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Sketch sketch(size);
  for (double& x : sketch) x = normal(generator);
  return sketch;
}

Sketch sum(const std::vector<Sketch>& columns, const std::vector<double>& weights, double noise = 0) {
  Sketch total = drawn(99, columns[0].size());
  for (double& x : total) x *= noise;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += weights[j] * columns[j][i];
  }
  return total;
}

}  // namespace

TEST_CASE("probe: least squares finds the weights of contributions, and says what they leave") {
  const std::vector<Sketch> parts{drawn(1), drawn(2), drawn(3), drawn(4)};
  const Fit exact = fit(parts, sum(parts, {1, 0, -2, 0.5}));
  CHECK(exact.residual < 1e-14);
  CHECK(exact.weights[2] == doctest::Approx(-2));
  CHECK(std::fabs(exact.weights[1]) < 1e-14);
  const Fit noisy = fit(parts, sum(parts, {1, 1, 1, 1}, 0.01));
  CHECK(noisy.residual > 1e-3);
  CHECK(noisy.residual < 1e-2);
  CHECK(fit(parts, drawn(7)).residual > 0.9);
}

TEST_CASE("probe: columns that depend on others, and zero ones, have no weight") {
  const std::vector<Sketch> parts{drawn(1), drawn(1), Sketch(128, 0)};
  const Fit found = fit(parts, drawn(1));
  CHECK(found.residual < 1e-14);
  CHECK(found.weights[0] == doctest::Approx(1));
  CHECK(found.weights[1] == 0);
  CHECK(found.weights[2] == 0);
}

TEST_CASE("probe: whole numbers are asked for: a missing and a doubled micro-batch are found, a mixture is not") {
  const std::vector<Sketch> parts{drawn(1), drawn(2), drawn(3)};
  const auto found = whole_fit(parts, sum(parts, {0, 0.25, 0.5}), 0.25, 1e-6);
  REQUIRE(found);
  CHECK(found->weights == std::vector<double>{0, 1, 2});
  CHECK_FALSE(whole_fit(parts, sum(parts, {0.1, 0.25, 0.5}), 0.25, 1e-6));
  CHECK_FALSE(whole_fit(parts, sum(parts, {0, 1, 2}, 0.1), 1, 1e-3));
}

TEST_CASE("probe: a factor has its name") {
  const Constants constants{{"accumulation", 4}, {"ranks", 2}, {"norm over clip bound", 31.29}};
  CHECK(factor_text(0.25, constants, 1e-6) == "x 1/4 (1 / accumulation)");
  CHECK(factor_text(2, constants, 1e-6) == "x 2 (ranks)");
  CHECK(factor_text(8, constants, 1e-6) == "x 8 (accumulation x ranks)");
  CHECK(factor_text(31.2901, constants, 1e-3) == "x 31.29 (norm over clip bound)");
  CHECK(factor_text(-1, constants, 1e-6) == "x -1");
  CHECK(factor_text(3, constants, 1e-6) == "x 3");
  CHECK(factor_text(0.37, constants, 1e-3) == "x 0.3700");
}

TEST_CASE("probe: a distance is relative, and of what is not finite it is beyond any bound") {
  CHECK(distance({3, 4}, {3, 4}) == 0);
  CHECK(distance({3, 4}, {0, 0}) == 1);
  CHECK(distance({0, 0}, {0, 0}) == 0);
  CHECK(distance({1, std::nan("")}, {1, 1}) > 1);
  CHECK(rounding("BF16") > rounding("F16"));
  CHECK(coarser("F32", "BF16") == "BF16");
  CHECK(coarser("", "F64") == "F64");
}

}  // namespace zs::probe
