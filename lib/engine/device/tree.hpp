// SPDX-License-Identifier: Apache-2.0
// The canonical summation tree: the one order in which zs adds floats, over M leaves of a global step, in float32 at
// every node. Equal bits for every way of spreading the leaves over ranks and time (binary tree over adjacent leaves;
// for M a power of two it is the perfect tree). Over leaves in memory: device::tree_sum (operations.hpp).
//
//   leaves        0   1   2   3   4   5   6        count = 7 = 111 in binary
//                  \ /     \ /     \ /   |
//   level 1        0-1     2-3     4-5   |         an accumulator keeps one partial sum for each one bit of count:
//                    \     /        |    |         [0-3] [4-5] [6]; the next leaf merges all three into [0-7], as a
//   level 2            0-3          |    |         binary counter carries
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "device/memory.hpp"
#include "device/operations.hpp"

namespace zs::device {

/// The tree sum of numbers on the host.
float tree_sum(std::span<const float> leaves);
double tree_sum(std::span<const double> leaves);

/// Adds leaves that arrive one after another, so that at most log2(M) partial sums live (one at M = 1), and one more in
/// sum() if M is no power of two. The first leaf is copied, never added to zero (-0.0 stays -0.0).
class TreeAccumulator {
 public:
  /// Gives the memory of a partial sum: the caller's accounting.
  using Allocate = std::function<Buffer(std::int64_t bytes)>;
  TreeAccumulator(std::int64_t n, Allocate allocate) : n_(n), allocate_(std::move(allocate)) {}

  /// Adds the next leaf: n numbers of 16 or 32 bits.
  void add(const View& leaf);
  /// The tree sum of all leaves added, float32[n]; valid until the next call. More leaves may be added after it, unless
  /// the caller wrote into it.
  /// REQUIRES: at least one leaf.
  View sum();
  /// Forgets the leaves, keeps the memory.
  void reset();
  std::int64_t count() const { return count_; }

 private:
  Buffer take();
  View view(const Buffer& partial) const { return partial.view(Type::float32, n_); }

  std::int64_t n_, count_ = 0;
  Allocate allocate_;
  std::vector<Buffer> partials_;  // one for each one bit of count_, highest first
  std::vector<Buffer> free_;
  Buffer sum_;  // where the partials merge if there are several
};

}  // namespace zs::device
