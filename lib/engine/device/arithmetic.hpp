// SPDX-License-Identifier: Apache-2.0
// The arithmetic that zs adds to LibTorch's, for one element: the only definition, used by the host's loops and a GPU's
// kernels. Fused products are explicit (compilers fuse nothing else), and every sum has a fixed order, so that all
// devices give the same bits.
#pragma once
#include <bit>
#include <cstdint>

#include "device/view.hpp"

#ifdef __CUDACC__
#define ZS_EVERYWHERE __host__ __device__ inline
#else
#define ZS_EVERYWHERE [[gnu::always_inline]] inline
#endif

namespace zs::device {

/// A number as float32, which represents every 16-bit value.
ZS_EVERYWHERE float widen(float x) { return x; }
ZS_EVERYWHERE float widen(Bfloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
ZS_EVERYWHERE float widen(Float16 x) {
  // Shifts exponent and fraction into place; a product with a power of two corrects the exponent's bias.
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16, rest = (x.bits & 0x7fffu) << 13;
  const std::uint32_t number = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
  return std::bit_cast<float>(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : number));  // infinity, NaN
}

/// Rounded to nearest, ties to even; every NaN becomes the same NaN.
ZS_EVERYWHERE Bfloat16 to_bfloat16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), above = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : above)};
}

// ---- E4M3 (Micikevicius et al. 2022): a sign, 4 bits of exponent and 3 of fraction, up to 448.

/// The factor that converts numbers of magnitude up to `largest` to an 8-bit format of magnitude up to `most`: for
/// products and for gathers.
ZS_EVERYWHERE float float8_scale(float most, float largest) {
  constexpr float kFinite = 3.402823466e38f;
  const float scale = most / largest;
  return scale > kFinite ? kFinite : scale;
}
constexpr float kMostOfE4m3 = 448;

/// Rounded to nearest, ties to even, at most 448; of NaN the format's.
ZS_EVERYWHERE std::uint8_t to_e4m3(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), sign = bits >> 24 & 0x80u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<std::uint8_t>(sign | 0x7fu);
  // Below 2^-6 codes count 2^-9: the sum with 2^14 rounds to whole ones of them.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0x1p14f) & 0xfu,
                      normal = ((rest + 0x7ffffu + (rest >> 20 & 1u)) >> 20) - (120u << 3);
  const std::uint32_t code = rest < 0x3c800000u ? small : normal;
  return static_cast<std::uint8_t>(sign | (code > 0x7eu ? 0x7eu : code));
}

/// The number of a code.
ZS_EVERYWHERE float widen_e4m3(std::uint8_t code) {
  const std::uint32_t sign = (code & 0x80u) << 24, exponent = code >> 3 & 15u, fraction = code & 7u;
  if ((code & 0x7fu) == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  const std::uint32_t small = std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-9f),
                      normal = (exponent + 120u) << 23 | fraction << 20;
  return std::bit_cast<float>(sign | (exponent == 0 ? small : normal));
}

/// The number of a code if `largest` is the largest magnitude under its scale; `unit` = 1 / the scale.
ZS_EVERYWHERE Bfloat16 from_e4m3(std::uint8_t code, float largest, float unit) {
  const float number = widen_e4m3(code);
  if (!(largest <= 3.402823466e38f)) return to_bfloat16(largest);
  if (number == kMostOfE4m3 || number == -kMostOfE4m3) return to_bfloat16(number > 0 ? largest : -largest);
  return to_bfloat16(number * unit);
}

/// Number of leaves in the left half of a tree over `leaves`: the largest power of two below.
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

// ---- Update rules: their factors, computed in double and rounded to float once, and the update of one element, which
// keeps kStates numbers besides the parameter.

struct AdamWFactors {
  static constexpr int kStates = 2;
  float keep, beta1, one_minus_beta1, beta2, one_minus_beta2, root_correction2, epsilon, minus_step;
};

/// AdamW (Loshchilov & Hutter 2019), with the bits of torch::optim::AdamW: FMA where its kernels use FMA.
ZS_EVERYWHERE void adamw(const AdamWFactors& f, float gradient, float& parameter, float& exp_avg, float& exp_avg_sq) {
  const float kept = parameter * f.keep;
  const float m = __builtin_fmaf(gradient, f.one_minus_beta1, exp_avg * f.beta1);
  const float v = __builtin_fmaf(f.one_minus_beta2 * gradient, gradient, exp_avg_sq * f.beta2);
  const float denominator = __builtin_sqrtf(v) / f.root_correction2 + f.epsilon;
  parameter = kept + (f.minus_step * m) / denominator;
  exp_avg = m;
  exp_avg_sq = v;
}

/// Adds weight decay to the gradient, as torch.optim's Adam and SGD do.
ZS_EVERYWHERE float decayed(float gradient, float parameter, float decay) {
  return decay != 0 ? __builtin_fmaf(parameter, decay, gradient) : gradient;
}

/// Adam (Kingma & Ba 2015). REQUIRES: moments.keep is 1.
struct AdamFactors {
  static constexpr int kStates = 2;
  AdamWFactors moments;
  float decay;
};
/// SGD without momentum, as torch.optim.SGD.
struct SgdFactors {
  static constexpr int kStates = 0;
  float decay, minus_rate;
};
/// The same with momentum and no dampening.
struct MomentumFactors {
  static constexpr int kStates = 1;
  SgdFactors sgd;
  float momentum;
  bool nesterov;
};
/// Lion (Chen et al. 2023, algorithm 2), with decoupled weight decay.
struct LionFactors {
  static constexpr int kStates = 1;
  float keep, beta1, one_minus_beta1, beta2, one_minus_beta2, minus_rate;
};
/// The last part of Muon: the gradient is the orthogonalised matrix.
struct MatrixStepFactors {
  static constexpr int kStates = 0;
  float keep, minus_rate;
};

/// Updates one element; `first` and `second` are its state, if the rule has it.
ZS_EVERYWHERE void update(const AdamWFactors& f, float gradient, float& parameter, float* first, float* second) {
  adamw(f, gradient, parameter, *first, *second);
}
ZS_EVERYWHERE void update(const AdamFactors& f, float gradient, float& parameter, float* first, float* second) {
  adamw(f.moments, decayed(gradient, parameter, f.decay), parameter, *first, *second);
}
ZS_EVERYWHERE void update(const SgdFactors& f, float gradient, float& parameter, float*, float*) {
  parameter = __builtin_fmaf(decayed(gradient, parameter, f.decay), f.minus_rate, parameter);
}
ZS_EVERYWHERE void update(const MomentumFactors& f, float gradient, float& parameter, float* first, float*) {
  const float whole = decayed(gradient, parameter, f.sgd.decay), buffer = *first * f.momentum + whole;
  const float step = f.nesterov ? __builtin_fmaf(buffer, f.momentum, whole) : buffer;
  parameter = __builtin_fmaf(step, f.sgd.minus_rate, parameter);
  *first = buffer;
}
ZS_EVERYWHERE void update(const LionFactors& f, float gradient, float& parameter, float* first, float*) {
  const float direction = __builtin_fmaf(gradient, f.one_minus_beta1, *first * f.beta1);
  const float sign = direction > 0 ? 1.0F : direction < 0 ? -1.0F : direction;  // NaN stays NaN
  parameter = __builtin_fmaf(sign, f.minus_rate, parameter * f.keep);
  *first = __builtin_fmaf(gradient, f.one_minus_beta2, *first * f.beta2);
}
ZS_EVERYWHERE void update(const MatrixStepFactors& f, float gradient, float& parameter, float*, float*) {
  parameter = __builtin_fmaf(gradient, f.minus_rate, parameter * f.keep);
}

/// The first part of Muon (Jordan 2024, as torch.optim.Muon has it): updates the momentum, and combines it with the
/// gradient into a direction.
struct DirectionFactors {
  float share, momentum;  ///< `share` is 1 - momentum
  bool nesterov;
};
/// Like LibTorch's lerp.
ZS_EVERYWHERE float between(float from, float to, float weight) {
  const bool near = weight < 0.5F;
  return __builtin_fmaf(near ? weight : weight - 1, to - from, near ? from : to);
}
ZS_EVERYWHERE float direction(const DirectionFactors& f, float gradient, float& momentum) {
  momentum = between(momentum, gradient, f.share);
  return f.nesterov ? between(gradient, momentum, f.momentum) : momentum;
}

/// A tile's sum of squares in float64: element i goes to lane i % kLanes, and the lanes are added by halves: lane j and
/// lane j + kLanes/2, and so on.
inline constexpr int kLanes = 256;
ZS_EVERYWHERE double square(float value) { return static_cast<double>(value) * static_cast<double>(value); }

/// The contribution of an element's bits to the fingerprint of a view, by its index there: 0 if it is a zero
/// (`magnitude`: all bits but the sign); otherwise MurmurHash3's finalizer (Austin Appleby, public domain), which maps
/// different bits to different values.
ZS_EVERYWHERE std::uint32_t imprint(std::uint32_t bits, std::uint32_t magnitude, std::uint32_t index) {
  std::uint32_t h = bits ^ (index * 0x9e3779b1u);
  h = (h ^ (h >> 16)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  h ^= h >> 16;
  return (bits & magnitude) == 0 ? 0 : h;
}
inline constexpr std::uint32_t kMagnitude32 = 0x7fffffff, kMagnitude16 = 0x7fff;

}  // namespace zs::device
