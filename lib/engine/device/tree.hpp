// SPDX-License-Identifier: Apache-2.0
// The canonical summation tree: the one order in which zs adds floats, over M leaves of a global step, in float32 at
// every node. Equal bits for every way of spreading the leaves over ranks and time (binary tree over adjacent leaves;
// for M a power of two it is the perfect tree). Over leaves in memory: device::tree_sum (operations.hpp).
//
//   leaves        0   1   2   3   4   5   6   ..    of more
//                  \ /     \ /     \ /   |
//   level 1        0-1     2-3     4-5   |         an accumulator keeps the fewest nodes that the leaves so far are:
//                    \     /        |    |         [0-3] [4-5] [6]; the next leaf merges all three into [0-7], as a
//   level 2            0-3          |    |         binary counter carries
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "device/memory.hpp"
#include "device/operations.hpp"
#include "tree/tree.hpp"

namespace zs::device {

/// The tree sum of numbers on the host.
float tree_sum(std::span<const float> leaves);
double tree_sum(std::span<const double> leaves);

/// Adds up the ranks' terms: `terms` of all ranks in order, of one type; out[i] = float32 of addends.sums[i]. An
/// `out` may be one of the terms, if that is float32, but overlaps none in part, nor another sum's terms.
void tree_sums(const tree::Addends& addends, std::span<const View> terms, std::span<const View> out);

/// Adds nodes of the tree over M leaves that arrive in order, beginning at any leaf. It keeps the fewest possible
/// nodes: at most log2(M) partial sums if they begin at leaf 0 (one at M = 1), and at most twice that number otherwise.
/// The first addend is copied, never added to zero (-0.0 stays -0.0).
class TreeAccumulator {
 public:
  /// Gives the memory of a partial sum: the caller's accounting.
  using Allocate = std::function<Buffer(std::int64_t bytes)>;
  /// Adds up n numbers over a tree of `leaves` leaves.
  TreeAccumulator(std::int64_t n, std::int64_t leaves, Allocate allocate)
      : n_(n), leaves_(leaves), allocate_(std::move(allocate)), partials_(leaves) {}

  /// Adds the node behind the last: n numbers, of 16 or 32 bits.
  void add(tree::Leaves node, const View& sum);
  /// The nodes that what was added makes up, and their sums, float32[n] each; valid until the next call.
  const std::vector<tree::Leaves>& nodes() const { return partials_.nodes(); }
  std::vector<View> sums() const;
  /// Forgets the leaves, keeps the memory.
  void reset();

 private:
  View view(const Buffer& partial) const { return partial.view(Type::float32, n_); }

  std::int64_t n_, leaves_;
  Allocate allocate_;
  tree::Partials partials_;
  std::vector<Buffer> buffers_;  // of the partial sums, in their order
  std::vector<Buffer> free_;
};

}  // namespace zs::device
