// SPDX-License-Identifier: Apache-2.0
// Muon's directions of one unit on their way from the momentum to the update: each rank computes its slice of them, as
// bfloat16; the owner of each matrix (plan/matrix.hpp) gets the whole of it, orthogonalises it, and sends every rank
// what that updates. While a rank computes, what it needs next travels.
//
// A matrix is orthogonalised as a whole, by the same operations on the same bits, whoever owns it: so the digest is the
// same for any number of ranks.
#pragma once
#include <vector>

#include "comm/group.hpp"
#include "plan/matrix.hpp"
#include "unit/unit.hpp"
#include "zero/layout.hpp"
#include "zero/pool.hpp"

namespace zs::zero {

using plan::Matrix;

class Directions {
 public:
  /// The directions of a whole unit, uninitialised, in memory of the pool. COLLECTIVE.
  Directions(Pool& pool, const Layout& layout, const std::string& unit);

  /// The directions of elements [begin, end) of the unit, bfloat16.
  device::View part(std::int64_t begin, std::int64_t end) const { return all_.part(begin, end); }
  /// Replaces what this rank owns of the matrices by the same part of their orthogonalised forms. REQUIRES: the owned
  /// part is set. COLLECTIVE.
  void orthogonalise(const std::vector<Matrix>& matrices, int steps);

 private:
  comm::Group* group_;
  Layout layout_;
  std::string unit_;
  device::Buffer memory_;
  device::View all_;

  using Round = std::vector<Matrix>;  // by owner; one without elements if that has no more
  std::vector<Round> rounds(const std::vector<Matrix>& matrices) const;
  device::View common(const Matrix& matrix, int rank) const;
  comm::Work exchange(const Round& round, bool to_owners) const;
};

/// The nearest matrix with equal singular values, by `steps` Newton-Schulz iterations in bfloat16 with the coefficients
/// and in the order of torch.optim.Muon; on CPUs without bfloat16 products, each product is computed in float32 and
/// rounded. `matrix` is bfloat16 [rows, columns], and so is the result.
at::Tensor orthogonalised(const at::Tensor& matrix, int steps);

}  // namespace zs::zero
