// SPDX-License-Identifier: Apache-2.0
// Muon's directions of one unit on their way from the momentum to the update:
//
//   each rank      its slice of momentum and gradient -> its slice of the directions, bfloat16
//   all            all-gather: the directions of the unit, whole
//   each rank      Newton-Schulz of every matrix of which it has elements, whole
//
// A matrix is orthogonalised as a whole, by the same operations on the same bits, whichever ranks have parts of it: so
// the digest is the same for all of them. Ranks that share a matrix each compute it; for m matrices in a unit, N ranks
// compute at most m + N - 1 in all, and each only those in its slice: so the work is balanced like the slices.
#pragma once
#include <vector>

#include "comm/group.hpp"
#include "optimizer/optimizer.hpp"
#include "unit/unit.hpp"
#include "zero/layout.hpp"
#include "zero/pool.hpp"

namespace zs::zero {

/// A matrix to orthogonalise: rows x columns elements from `begin` on in the unit's flat buffer.
struct Matrix {
  std::int64_t begin = 0, rows = 0, columns = 0;
  std::int64_t end() const { return begin + rows * columns; }
};

class Directions {
 public:
  /// The directions of a whole unit, uninitialised, in memory of the pool. COLLECTIVE.
  Directions(Pool& pool, const Layout& layout, const std::string& unit);

  /// The directions of elements [begin, end) of the unit, bfloat16.
  device::View part(std::int64_t begin, std::int64_t end) const { return all_.part(begin, end); }
  /// Gathers all slices. COLLECTIVE.
  void gather();
  /// Replaces each matrix with elements in this rank's
  /// part by its orthogonalised form. REQUIRES: gathered.
  void orthogonalise(const std::vector<Matrix>& matrices, int steps);

 private:
  comm::Group* group_;
  Layout layout_;
  std::string unit_;
  device::Buffer memory_;
  device::View all_;
};

/// The nearest matrix with equal singular values, by `steps` Newton-Schulz iterations in bfloat16 with the coefficients
/// and in the order of torch.optim.Muon; on CPUs without bfloat16 products, each product is computed in float32 and
/// rounded. `matrix` is bfloat16 [rows, columns], and so is the result.
at::Tensor orthogonalised(const at::Tensor& matrix, int steps);

}  // namespace zs::zero
