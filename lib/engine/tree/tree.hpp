// SPDX-License-Identifier: Apache-2.0
// The shape of the canonical summation tree over the M leaves (micro-batches) of a step: it says which adjacent leaves
// form a node. A node of n leaves splits after the largest power of two below n. Holds no values.
//
//   any range of adjacent leaves is a few whole nodes, at most 2 log2(M):    leaves   0 1 2 | 3 4 5   of M = 6
//   a rank adds its leaves up to these nodes; joins follow across ranks      nodes   [0-1] [2] [3] [4-5]
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zs::tree {

/// Leaves [begin, end), adjacent.
struct Leaves {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Leaves&) const = default;
};

/// Leaves of the left half of a node of n > 1.
constexpr std::int64_t left_of(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n - 1)));
}

/// The fewest nodes of the tree over `leaves` leaves that a range is, in order.
std::vector<Leaves> nodes(Leaves range, std::int64_t leaves);

/// True if two adjacent nodes are the halves of one.
bool are_halves(Leaves left, Leaves right, std::int64_t leaves);

/// Nodes that come one after another, from any leaf on: two halves become one as soon as both are there, as a binary
/// counter carries.
class Partials {
 public:
  explicit Partials(std::int64_t leaves) : leaves_(leaves) {}
  /// Adds the node behind the last; returns how many of the last ones it has become one with. Throws zs::Error where
  /// leaves between them are missing or there already.
  std::size_t add(Leaves node);
  const std::vector<Leaves>& nodes() const { return nodes_; }

 private:
  std::int64_t leaves_;
  std::vector<Leaves> nodes_;
};

/// The ranks' terms of a sum: nodes of the tree, by rank. Together they are adjacent, in the order of the ranks.
struct Addends {
  std::vector<std::vector<Leaves>> terms;
  std::vector<Leaves> sums;  ///< the nodes that they make up
  std::int64_t leaves = 0;   ///< of the whole tree

  /// With the sums that the terms make up in the tree over `leaves` leaves. Throws zs::Error where a leaf between them
  /// is missing or there twice.
  static Addends of(std::vector<std::vector<Leaves>> terms, std::int64_t leaves);
  /// One leaf of each rank, and their sum.
  static Addends one_each(int ranks);
  /// Terms of all ranks.
  std::size_t count() const;
  /// Terms of the rank that has most.
  std::size_t most() const;
};

/// True if the tree over adjacent nodes equals the tree over the same number of leaves: the nodes have one size, a
/// power of two, and only the last one may be smaller.
/// REQUIRES: at least one.
bool are_like_leaves(std::span<const Leaves> nodes);

}  // namespace zs::tree
