// SPDX-License-Identifier: Apache-2.0
// The elementwise operations that the engine adds to LibTorch's, a table per kind of device. The device runs them in
// the order of the calls (on a GPU: on LibTorch's stream), and the host does not wait for them unless they return a
// result. Arithmetic: arithmetic.hpp. Independent of LibTorch and CUDA.
#pragma once
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "device/arithmetic.hpp"
#include "device/view.hpp"

namespace zs::device {

/// The rule that updates elements.
using Rule = std::variant<AdamWFactors, AdamFactors, SgdFactors, MomentumFactors, LionFactors, MatrixStepFactors>;

/// The operands of an update, element by element: float32, of one length.
struct UpdateViews {
  View parameters, first, second;  ///< `first` and `second`: the rule's state of each; else none
  View gradient_sum;               ///< may have 16 bits on a GPU and after Muon's orthogonalisation
  View rounded{};  ///< bfloat16 of the same length: receives the updated parameters, rounded to nearest even; or none
};

/// A moment of optimizer state in 8 bits (device/coded.hpp), of consecutive elements of a tensor.
struct CodedMoment {
  View codes;     ///< byte
  View scales;    ///< float32, one for each block that contains some of the elements
  View next{};    ///< the same, after the update; or none: coded_update finds them, if no block has elements elsewhere
  View values{};  ///< float32, used instead of the codes; or none
};

/// The operands of an update of 8-bit AdamW: of one length but for the scales.
struct CodedViews {
  View parameters, gradient_sum, rounded;  ///< as UpdateViews has them
  CodedMoment moments[2];                  ///< the first, the second
  std::int64_t offset;                     ///< of the first element in its tensor: determines where blocks begin
  float scale, clip;                       ///< of the gradient, as in Operations::update
};

struct Operations {
  /// out[i] = the canonical tree sum of leaves[0][i] ... leaves[M-1][i] in float32; 16-bit
  /// leaves, all of one type, are widened; one leaf is copied. A subtree over m leaves
  /// splits at the largest power of two below m. `out` may be one of the leaves, if they
  /// are float32, but must not overlap one partially. REQUIRES: at least one leaf.
  void (*tree_sum)(std::span<const View> leaves, const View& out);
  /// levels[0] += levels[1] += ... += levels.back() += leaf: like the carry of a binary counter.
  void (*carry)(std::span<const View> levels, const View& leaf);
  /// One update. The gradient is (gradient_sum * scale) * clip: `scale` divides the tree sum by the number of leaves
  /// (exact for powers of two), `clip` is the clipping factor, 1 for none.
  void (*update)(const Rule& rule, const UpdateViews& views, float scale, float clip);
  /// The first part of Muon, with the same gradient: updates `momentum` (float32), and writes the direction to `to`
  /// (bfloat16), rounded to nearest even.
  void (*direction)(const DirectionFactors& factors, const View& momentum, const View& gradient_sum, const View& to,
                    float scale, float clip);
  /// The first part of 8-bit AdamW: only sets `next` to the future scales of these elements' moments. If a block also
  /// has elements on other ranks, the largest scale of all parts is its scale.
  void (*coded_scales)(const AdamWFactors& factors, const CodedViews& views);
  /// The second part: updates parameters and moments; the scales become `next`, or what it finds.
  void (*coded_update)(const AdamWFactors& factors, const CodedViews& views);
  /// codes[i] = numbers[i] as the product of 8 bits rounds it whose weights have the largest magnitude most[0]; and
  /// bfloat16 numbers that it rounds so again (comm/float8_codec.hpp). `most` is float32, where the others are.
  void (*to_e4m3)(const View& numbers, const View& most, const View& codes);
  void (*from_e4m3)(const View& codes, const View& most, const View& numbers);
  /// The sum of squares of each tile, in an order determined by its length. NaN and infinity propagate.
  std::vector<double> (*sums_of_squares)(std::span<const View> tiles);
  /// A number for each view of float32 or of 16 bits, the same on every device: 0 of zeros; another if the bits of one
  /// element are others, and almost surely another if more are. Zeros of both signs are one.
  std::vector<std::uint64_t> (*fingerprints)(std::span<const View> views);
};

/// The table of a device. Throws zs::Error if this build has none.
const Operations& operations(const Device& device);

/// Calls compute(begin, end) for parts of [0, count), of at least `least` each, on all threads of this rank: no bit may
/// depend on their number. Within a part, LibTorch uses one thread, and tracks gradients.
void in_parts(std::int64_t count, std::int64_t least, const std::function<void(std::int64_t, std::int64_t)>& compute);

/// The canonical tree sum; see Operations::tree_sum.
inline void tree_sum(std::span<const View> leaves, const View& out) { operations(out.device).tree_sum(leaves, out); }

}  // namespace zs::device
