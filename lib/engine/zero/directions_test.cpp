// SPDX-License-Identifier: Apache-2.0
#include "zero/directions.hpp"

#include <doctest/doctest.h>

#include "device/tensor.hpp"
#include "unit/random.hpp"

namespace zs::zero {
namespace {

at::Tensor drawn(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return at::randn({rows, columns}, unit::generator(seed)).to(at::kBFloat16);
}

/// The same polynomial in float64.
at::Tensor polynomial(const at::Tensor& matrix, int steps) {
  at::Tensor x = matrix.to(at::kDouble);
  const bool tall = x.size(0) > x.size(1);
  if (tall) x = x.t();
  x = x / x.norm();
  for (int i = 0; i < steps; ++i) {
    const at::Tensor a = x.matmul(x.t());
    x = 3.4445 * x + (-4.7750 * a + 2.0315 * a.matmul(a)).matmul(x);
  }
  return tall ? x.t() : x;
}

struct Unit final : unit::Unit {
  explicit Unit(std::int64_t front)
      : unit::Unit("u", {{.name = "bias", .shape = {front}},
                         {.name = "wide", .shape = {24, 40}},
                         {.name = "tall", .shape = {40, 24}},
                         {.name = "small", .shape = {8, 8}}}) {}
  at::Tensor forward(const at::Tensor&, std::span<const at::Tensor>, std::span<const at::Tensor>,
                     const unit::ForwardContext&) const override {
    return {};
  }
};

TEST_CASE("directions: a matrix becomes nearly orthogonal, wide, tall or square, as the polynomial has it") {
  for (const auto& [rows, columns] : {std::pair(24, 24), std::pair(24, 96), std::pair(96, 24), std::pair(1, 7)}) {
    CAPTURE(rows);
    CAPTURE(columns);
    const at::Tensor matrix = drawn(rows, columns, 7), result = orthogonalised(matrix, 5).to(at::kDouble);
    CHECK(result.size(0) == rows);
    CHECK((result - polynomial(matrix, 5)).norm().item<double>() < 0.05 * result.norm().item<double>());
    // Singular values of about 1: as many as the shorter side, each between 0.5 and 1.3.
    const double squares = result.pow(2).sum().item<double>() / std::min(rows, columns);
    CHECK(squares > 0.4);
    CHECK(squares < 1.7);
    // It does not depend on how large the matrix is, and one that is zero stays so.
    CHECK(at::equal(orthogonalised(matrix * 4, 5), orthogonalised(matrix, 5)));
    CHECK(orthogonalised(at::zeros_like(matrix), 5).abs().max().item<double>() == 0);
  }
}

TEST_CASE("directions: a matrix in parts on several ranks has the bits of the whole, and no others change") {
  for (const std::int64_t front : {1, 8, 300}) {
    const Unit unit(front);
    const std::vector<Matrix> matrices = {{front, 24, 40}, {front + 960, 40, 24}, {front + 1920, 8, 8}};
    const at::Tensor flat = at::randn({unit.numel()}, unit::generator(3)).to(at::kBFloat16);
    const auto expected = [&](const Matrix& m) {
      return orthogonalised(flat.narrow(0, m.begin, m.rows * m.columns).view({m.rows, m.columns}).clone(), 5)
          .reshape({-1});
    };
    for (const int stage : {0, 1, 3}) {
      for (const int ranks : {1, 2, 3, 4, 8}) {
        CAPTURE(front);
        CAPTURE(stage);
        CAPTURE(ranks);
        comm::run_in_process(ranks, [&](comm::Group& group) {
          Pool pool(group);
          const Layout cut = layout(unit, group, plan::Shape{{stage, ranks}}, device::Type::float32);
          Directions directions(pool, cut, "u");
          device::copy(directions.part(cut.owned.begin, cut.owned.end),
                       device::view(flat.narrow(0, cut.owned.begin, cut.owned.size())));
          directions.orthogonalise(matrices, 5);
          for (const Matrix& m : matrices) {
            const std::int64_t begin = std::max(m.begin, cut.owned.begin), end = std::min(m.end(), cut.owned.end);
            if (begin >= end) continue;
            CHECK(at::equal(device::tensor(directions.part(begin, end)),
                            expected(m).narrow(0, begin - m.begin, end - begin)));
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace zs::zero
