// SPDX-License-Identifier: Apache-2.0
// The arithmetic that zs adds to LibTorch's, one element at a time: the one definition, which the host's loops and a
// GPU's kernels are made of. Which products are fused is spelt out (compilers are told to fuse nothing else), and every
// sum has its order here, so that all devices have the same bits.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "device/view.hpp"

#ifdef __CUDACC__
#define ZS_EVERYWHERE __host__ __device__ inline
#else
#define ZS_EVERYWHERE [[gnu::always_inline]] inline
#endif

namespace zs::device {

/// A number as float32, which has every value of 16 bits.
ZS_EVERYWHERE float widen(float x) { return x; }
ZS_EVERYWHERE float widen(Bfloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
ZS_EVERYWHERE float widen(Float16 x) {
  // Exponent and fraction move into their places; the exponent's other bias is a product with a power of two.
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16, rest = (x.bits & 0x7fffu) << 13;
  const std::uint32_t number = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
  return std::bit_cast<float>(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : number));  // infinity, NaN
}

/// Rounded to nearest, ties to even; every NaN becomes one.
ZS_EVERYWHERE Bfloat16 to_bfloat16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), above = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : above)};
}

/// Leaves of the left half of a tree over `leaves` of them: the largest power of two below.
constexpr int left_leaves(int leaves) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(leaves - 1))); }

/// The canonical sum of element i of kLeaves leaves.
template <int kLeaves, typename T>
ZS_EVERYWHERE float node(const T* const* leaves, std::int64_t i) {
  if constexpr (kLeaves == 1) {
    return widen(leaves[0][i]);
  } else {
    constexpr int kLeft = left_leaves(kLeaves);
    return node<kLeft>(leaves, i) + node<kLeaves - kLeft>(leaves + kLeft, i);
  }
}

/// What one update of AdamW multiplies with: computed in double, rounded to float once.
struct AdamWFactors {
  float keep, beta1, one_minus_beta1, beta2, one_minus_beta2, root_correction2, epsilon, minus_step;
};

/// One update of one element by AdamW, with the bits of torch::optim::AdamW: FMA where its kernels use FMA.
ZS_EVERYWHERE void adamw(const AdamWFactors& f, float gradient, float& parameter, float& exp_avg, float& exp_avg_sq) {
  const float kept = parameter * f.keep;
  const float m = __builtin_fmaf(gradient, f.one_minus_beta1, exp_avg * f.beta1);
  const float v = __builtin_fmaf(f.one_minus_beta2 * gradient, gradient, exp_avg_sq * f.beta2);
  const float denominator = __builtin_sqrtf(v) / f.root_correction2 + f.epsilon;
  parameter = kept + (f.minus_step * m) / denominator;
  exp_avg = m;
  exp_avg_sq = v;
}

/// A tile's sum of squares in float64: element i goes to lane i % kLanes, and the lanes are added by halves: lane j and
/// lane j + kLanes/2, and so on.
inline constexpr int kLanes = 256;
ZS_EVERYWHERE double square(float value) { return static_cast<double>(value) * static_cast<double>(value); }

}  // namespace zs::device
