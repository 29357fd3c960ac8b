// SPDX-License-Identifier: Apache-2.0
// Muon's directions of one unit on their way from the momentum to the update:
//
//   each rank      its slice of momentum and gradient -> its slice of the directions, bfloat16
//   all            all-gather: the directions of the unit, whole
//   each rank      Newton-Schulz of every matrix of which it has elements, whole
//
// A matrix is orthogonalised whole, by the same operations on the same bits, whatever ranks have parts of it: so one
// digest holds over all of them. Ranks that share a matrix compute it each; of m matrices in a unit, N ranks compute no
// more than m + N - 1 in all, and none more than its slice touches: what is computed is balanced as the slices are.
#pragma once
#include <vector>

#include "comm/group.hpp"
#include "optimizer/optimizer.hpp"
#include "unit/unit.hpp"
#include "zero/layout.hpp"
#include "zero/pool.hpp"

namespace zs::zero {

/// A matrix that is orthogonalised whole: rows x columns elements from `begin` on in the unit's flat buffer.
struct Matrix {
  std::int64_t begin = 0, rows = 0, columns = 0;
  std::int64_t end() const { return begin + rows * columns; }
};

class Directions {
 public:
  /// All of a unit, not initialised, in memory of the pool. COLLECTIVE.
  Directions(Pool& pool, const Layout& layout, const std::string& unit);

  /// Those of elements [begin, end) of the unit, bfloat16.
  device::View part(std::int64_t begin, std::int64_t end) const { return all_.part(begin, end); }
  /// Brings all slices together. COLLECTIVE.
  void gather();
  /// Puts what each matrix is orthogonalised to in its place, of those that have elements in what the rank owns.
  /// REQUIRES: gathered.
  void orthogonalise(const std::vector<Matrix>& matrices, int steps);

 private:
  comm::Group* group_;
  Layout layout_;
  std::string unit_;
  device::Buffer memory_;
  device::View all_;
};

/// The nearest matrix whose singular values are alike, by `steps` Newton-Schulz iterations in bfloat16 with the
/// coefficients and in the order of torch.optim.Muon; where processors have no products of bfloat16, each product is
/// computed in float32 and rounded. `matrix` is bfloat16 [rows, columns], and so is the result.
at::Tensor orthogonalised(const at::Tensor& matrix, int steps);

}  // namespace zs::zero
