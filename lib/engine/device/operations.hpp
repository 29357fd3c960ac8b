// SPDX-License-Identifier: Apache-2.0
// The elementwise operations that the engine has beside LibTorch's, a table for each kind of device. They are given to
// the device in the order of the calls (on a GPU: to the stream that LibTorch computes on), and the host does not wait
// for them unless they return a result. Arithmetic: arithmetic.hpp. Knows neither LibTorch nor CUDA.
#pragma once
#include <span>
#include <variant>
#include <vector>

#include "device/arithmetic.hpp"
#include "device/view.hpp"

namespace zs::device {

/// By which elements are updated.
using Rule = std::variant<AdamWFactors, AdamFactors, SgdFactors, MomentumFactors, LionFactors, MatrixStepFactors>;

/// What is updated, element by element: float32, of one length.
struct UpdateViews {
  View parameters, first, second;  ///< `first` and `second`: what the rule keeps of each; else none
  View gradient_sum;               ///< a GPU's, and what Muon orthogonalised, may have 16 bits
  View rounded{};  ///< bfloat16 of the same length: the updated parameters, rounded to nearest even; or none
};

struct Operations {
  /// out[i] = the canonical tree sum of leaves[0][i] ... leaves[M-1][i] in float32; leaves of 16 bits, all of one type,
  /// are widened; one leaf is copied. A subtree over m leaves splits at the largest power of two below m. `out` may be
  /// one of the leaves, if they are float32, but overlaps none of them in part.
  /// REQUIRES: at least one leaf.
  void (*tree_sum)(std::span<const View> leaves, const View& out);
  /// levels[0] += levels[1] += ... += levels.back() += leaf: what a binary counter does when it carries.
  void (*carry)(std::span<const View> levels, const View& leaf);
  /// One update. The gradient is (gradient_sum * scale) * clip: `scale` divides the tree sum by the number of leaves
  /// (exact for powers of two), `clip` is the clipping factor, 1 for none.
  void (*update)(const Rule& rule, const UpdateViews& views, float scale, float clip);
  /// The first part of Muon's, of the same gradient: `momentum` (float32) moves on, and `to` (bfloat16) gets the
  /// direction, rounded to nearest even.
  void (*direction)(const DirectionFactors& factors, const View& momentum, const View& gradient_sum, const View& to,
                    float scale, float clip);
  /// The sum of squares of each tile, in an order fixed by its length alone. NaN and infinity pass through.
  std::vector<double> (*sums_of_squares)(std::span<const View> tiles);
};

/// The table of a device. Throws zs::Error if this build has none for it.
const Operations& operations(const Device& device);

/// The canonical tree sum; see Operations::tree_sum.
inline void tree_sum(std::span<const View> leaves, const View& out) { operations(out.device).tree_sum(leaves, out); }

}  // namespace zs::device
