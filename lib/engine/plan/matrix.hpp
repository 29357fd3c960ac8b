// SPDX-License-Identifier: Apache-2.0
// Matrices that an optimizer orthogonalises as a whole (Muon), each on one rank, its owner, and what travels to the
// owners and back:
//
//   each rank      its slice of the directions of a unit
//   to the owner   the parts of each matrix
//   owner          Newton-Schulz of the whole matrix
//   from the owner the parts of each matrix; or, if every rank keeps all of the
//   optimizer's state, the whole of it
//
// Owners follow from shapes and the number of ranks alone.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace zs::plan {

/// A matrix to orthogonalise: rows x columns elements from `begin` on in the unit's flat buffer.
struct Matrix {
  std::int64_t begin = 0, rows = 0, columns = 0;

  std::int64_t numel() const { return rows * columns; }
  std::int64_t end() const { return begin + numel(); }
  /// Multiplications of a Newton-Schulz iteration, which computes on the Gram matrix of the shorter side.
  std::int64_t cost() const;
  bool operator==(const Matrix&) const = default;
};

/// The matrices of each rank, in the order in which it computes them: the costliest first, each goes to the rank with
/// the least to do so far; of several such ranks, or matrices, to the first.
std::vector<std::vector<Matrix>> owned(std::span<const Matrix> matrices, int ranks);

/// The share of all multiplications that the rank with the most computes: 1 / ranks if they are divided evenly.
double busiest(std::span<const Matrix> matrices, int ranks);

/// Numbers of directions that all ranks together send to a rank of another node, of `node` consecutive ranks each, for
/// a unit of `trained` elements; `divided`: each rank has a slice of them, not all.
std::int64_t sent_numbers(std::span<const Matrix> matrices, std::int64_t trained, bool divided, int ranks, int node);

}  // namespace zs::plan
