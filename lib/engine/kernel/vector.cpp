// SPDX-License-Identifier: Apache-2.0
// Compiled with -ffp-contract=off -fno-math-errno -fno-trapping-math: the last two let rint() become vectors.
#include "kernel/vector.hpp"

#include <cmath>
#include <cstring>

#include "base/vectorised.hpp"
#include "device/arithmetic.hpp"

namespace zs::kernel {
namespace {

constexpr std::int64_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

/// exp(x), within 2 ulp; 0 below -87, and at most exp(88).
[[gnu::always_inline]] inline float exponential(float x) {
  // Written so that NaN passes: every comparison with it is false.
  const float low = x < -87.0F ? -87.0F : x;
  const float clamped = low > 88.0F ? 88.0F : low;
  // x = n log(2) + r; log(2) in two parts (Cody & Waite 1980), then the Taylor polynomial of exp on |r| <= log(2)/2.
  const float n = __builtin_rintf(clamped * 1.44269504F);
  const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::int32_t bits = (static_cast<std::int32_t>(n) + 127) * (1 << 23);
  float power = 0;
  static_assert(sizeof power == sizeof bits);
  __builtin_memcpy(&power, &bits, sizeof power);
  return x < -87.0F ? 0.0F : p * power;
}

[[gnu::always_inline]] inline float largest(const float* row, std::int64_t n) {
  float most = row[0];
  std::int64_t i = 0;
  if (n >= kLanes) {
    Lanes lanes;
    std::memcpy(&lanes, row, sizeof lanes);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      Lanes values;
      std::memcpy(&values, row + i, sizeof values);
      lanes = lanes < values ? values : lanes;
    }
    for (std::int64_t lane = 0; lane < kLanes; ++lane) most = most < lanes[lane] ? lanes[lane] : most;
  }
  for (; i < n; ++i) most = most < row[i] ? row[i] : most;
  return most;
}

/// The sum of a[i] b[i], or of a[i] alone where b is null.
[[gnu::always_inline]] inline float sum(const float* a, const float* b, std::int64_t n) {
  Lanes lanes = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes x;
    std::memcpy(&x, a + i, sizeof x);
    if (b) {
      Lanes y;
      std::memcpy(&y, b + i, sizeof y);
      x = x * y;
    }
    lanes = lanes + x;
  }
  float total = 0;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) total += lanes[lane];
  for (; i < n; ++i) total += b ? a[i] * b[i] : a[i];
  return total;
}

// GELU(x) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): 0.5 (1 + tanh(u)) without its cancellation.
constexpr float kTwiceRoot = 1.59576912F, kCubic = 0.044715F;  // 2 sqrt(2/pi)

[[gnu::always_inline]] inline float sigmoid(float x) { return 1.0F / (1.0F + exponential(-x)); }

}  // namespace

ZS_VECTORISED void widen(const device::Bfloat16* from, float* to, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) to[i] = device::widen(from[i]);
}

ZS_VECTORISED void narrow(const float* from, device::Bfloat16* to, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t bits = 0;
    __builtin_memcpy(&bits, &from[i], sizeof bits);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    to[i].bits = static_cast<std::uint16_t>(is_nan ? 0x7fc0u : rounded);
  }
}

ZS_VECTORISED void gelu(const float* x, float* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    y[i] = v * sigmoid(kTwiceRoot * (v + kCubic * v * v * v));
  }
}

ZS_VECTORISED void gelu_backward(const float* x, const float* dy, float* dx, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    const float s = sigmoid(kTwiceRoot * (v + kCubic * v * v * v));
    const float slope = kTwiceRoot * (1.0F + 3 * kCubic * v * v);
    dx[i] = dy[i] * (s + v * s * (1.0F - s) * slope);
  }
}

ZS_VECTORISED void swiglu(const float* gate, const float* up, float* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

ZS_VECTORISED void swiglu_backward(const float* gate, const float* up, const float* dy, float* dgate, float* dup,
                                   std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gate[i], s = sigmoid(g), u = up[i], d = dy[i];
    dup[i] = d * (g * s);
    dgate[i] = d * u * (s + g * s * (1.0F - s));
  }
}

ZS_VECTORISED float rms_norm(const float* x, const float* weight, float* y, std::int64_t n, float epsilon) {
  const float scale = 1.0F / std::sqrt(sum(x, x, n) / static_cast<float>(n) + epsilon);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = weight[i] * (x[i] * scale);
  return scale;
}

ZS_VECTORISED void rms_norm_backward(const float* x, const float* weight, const float* dy, const float* past,
                                     float scale, float* dx, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * weight[i];
  // y = w x s, and ds/dx = -s^3 x / n.
  const float factor = sum(dx, x, n) * scale * scale / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] = (dx[i] - x[i] * factor) * scale;
  if (!past) return;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] += past[i];
}

ZS_VECTORISED void rms_norm_backward_weight(const float* x, const float* dy, float scale, float* dweight,
                                            std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dweight[i] += dy[i] * (x[i] * scale);
}

ZS_VECTORISED void rotate(const float* x, const float* cos, const float* sin, bool back, float* y, std::int64_t r) {
  const float sign = back ? -1.0F : 1.0F;
#pragma omp simd
  for (std::int64_t i = 0; i < r; ++i) {
    const float a = x[i], b = x[r + i], turn = sign * sin[i];
    y[i] = a * cos[i] - b * turn;
    y[r + i] = b * cos[i] + a * turn;
  }
}

ZS_VECTORISED void softmax(float* row, std::int64_t n) {
  const float most = largest(row, n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) row[i] = exponential(row[i] - most);
  const float scale = 1.0F / sum(row, nullptr, n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) row[i] *= scale;
}

ZS_VECTORISED void softmax_backward(const float* p, float* dp, std::int64_t n) {
  const float mean = sum(p, dp, n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dp[i] = p[i] * (dp[i] - mean);
}

ZS_VECTORISED void cap(float* row, float* slopes, std::int64_t n, float cap) {
  const float inverse = 1.0F / cap;
  // tanh(u) = 2 sigmoid(2u) - 1 loses digits near 0: there its Taylor polynomial, of u < 1/4.
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float u = row[i] * inverse, square = u * u;
    float near = 62.0F / 2835 * square - 17.0F / 315;
    near = near * square + 2.0F / 15;
    near = near * square - 1.0F / 3;
    near = u + u * (square * near);
    const float far = 1.0F - 2.0F / (exponential(2.0F * u) + 1.0F);
    const float turned = square < 0.0625F ? near : far;
    row[i] = cap * turned;
    if (slopes) slopes[i] = 1.0F - turned * turned;
  }
}

ZS_VECTORISED void multiply(const float* x, float* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] *= x[i];
}

ZS_VECTORISED float cross_entropy(float* row, std::int64_t n, std::int64_t target, float scale, bool gradient) {
  const float most = largest(row, n), chosen = row[target] - most;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) row[i] = exponential(row[i] - most);
  const float total = sum(row, nullptr, n);
  if (gradient) {
    const float factor = scale / total;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) row[i] *= factor;
    row[target] -= scale;
  }
  return std::log(total) - chosen;
}

}  // namespace zs::kernel
