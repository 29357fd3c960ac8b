// SPDX-License-Identifier: Apache-2.0
#include "zero/directions.hpp"

#include <algorithm>

#include "device/tensor.hpp"
#include "unit/arithmetic.hpp"

namespace zs::zero {
namespace {

/// The type in which this processor computes products of bfloat16.
at::ScalarType products_in(const at::Tensor& x) {
  return x.is_cpu() && unit::bfloat16_products().empty() ? at::kFloat : at::kBFloat16;
}

}  // namespace

Directions::Directions(Pool& pool, const Layout& layout, const std::string& unit)
    : group_(&pool.group()),
      layout_(layout),
      unit_(unit),
      memory_(pool.take(device::Type::bfloat16, layout.trained)),
      all_(memory_.view(device::Type::bfloat16, layout.trained)) {}

void Directions::gather() {
  if (group_->size() == 1 || !layout_.divided.optimizer_state) return;
  const device::View mine = all_.part(layout_.slice.begin, layout_.slice.end);
  group_->all_gather(mine, all_, "all-gather of the directions of " + unit_)->wait();
}

void Directions::orthogonalise(const std::vector<Matrix>& matrices, int steps) {
  const at::NoGradGuard no_grad;
  for (const Matrix& matrix : matrices) {
    if (matrix.begin >= layout_.owned.end || matrix.end() <= layout_.owned.begin) continue;
    const at::Tensor there = device::tensor(all_.part(matrix.begin, matrix.end())).view({matrix.rows, matrix.columns});
    there.copy_(orthogonalised(there.clone(), steps));  // a copy begins at an aligned place, wherever the matrix does
  }
}

at::Tensor orthogonalised(const at::Tensor& matrix, int steps) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kEpsilon = 1e-7;
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = tall ? matrix.t() : matrix;
  // Its norm at most 1. Summed in float64: the order does not show in 16 bits.
  x = x.div(x.norm(2, at::kDouble).to(at::kBFloat16).clamp_min(kEpsilon));
  const at::ScalarType type = products_in(x);
  for (int step = 0; step < steps; ++step) {
    const at::Tensor wide = x.to(type), gram = at::mm(wide, wide.t()).to(at::kBFloat16).to(type);
    const at::Tensor polynomial = at::addmm(gram, gram, gram, kB, kC).to(at::kBFloat16).to(type);
    x = at::addmm(wide, polynomial, wide, kA).to(at::kBFloat16);
  }
  return tall ? x.t() : x;
}

}  // namespace zs::zero
