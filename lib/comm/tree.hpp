// SPDX-License-Identifier: Apache-2.0
// The canonical summation tree: the one order in which zs adds floats, over M leaves of a global step,
// in fp32 at every node. Equal bits for every way of spreading the leaves over ranks and time
// (binary tree over adjacent leaves; for M a power of two it is the perfect tree).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace zs::comm {

/// out[i] = the tree sum of leaves[0][i] ... leaves[M-1][i]; one leaf is copied. `out` may be one of the leaves, but
/// overlaps none of them in part. A subtree over m leaves splits at the largest power of two below m.
/// REQUIRES: at least one leaf (in the scalar forms too).
void tree_sum(std::span<const float* const> leaves, float* out, std::int64_t n);
/// The same over scalars.
float tree_sum(std::span<const float> leaves);
double tree_sum(std::span<const double> leaves);

/// Adds leaves that arrive one after another, as a binary counter: equal levels merge at once, so that at most
/// log2(M) partial sums live (one at M = 1), and one more in sum() if M is no power of two.
/// The first leaf is copied, never added to zero (-0.0 stays -0.0).
class TreeAccumulator {
 public:
  /// `allocate(n)` gives the partial sums' memory (the caller's accounting); empty means the heap.
  using Allocate = std::function<std::shared_ptr<float[]>(std::int64_t n)>;
  explicit TreeAccumulator(std::int64_t n, Allocate allocate = {});

  /// Adds the next leaf, n floats.
  void add(const float* leaf);
  /// The tree sum of all leaves added, n floats; valid until the next call. More leaves may be added after it, unless
  /// the caller wrote into it.
  /// REQUIRES: at least one leaf.
  float* sum();
  /// Forgets the leaves, keeps the memory.
  void reset();
  std::int64_t count() const { return count_; }

 private:
  std::shared_ptr<float[]> take();

  std::int64_t n_, count_ = 0;
  Allocate allocate_;
  std::vector<std::shared_ptr<float[]>> partials_;  // one for each one bit of count_, highest first
  std::vector<std::shared_ptr<float[]>> free_;
  std::shared_ptr<float[]> sum_;  // where the partials merge if there are several
};

}  // namespace zs::comm
