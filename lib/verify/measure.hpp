// SPDX-License-Identifier: Apache-2.0
// How far two sets of numbers are apart: absolutely, relatively, and in units of the last place.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>

namespace zs::verify {

/// Floats that lie between two values, counting one of them; -0 and +0 are one value. The largest number if either is
/// NaN.
inline constexpr std::int64_t kNoDistance = std::numeric_limits<std::int64_t>::max();
std::int64_t ulp_distance(float a, float b);
std::int64_t ulp_distance(double a, double b);

/// Equal enough: |target - reference| <= atol + rtol * |reference|. NaN never is, infinity neither.
struct Tolerance {
  double rtol = 0, atol = 0;
  bool exact() const { return rtol == 0 && atol == 0; }
  bool accepts(double target, double reference) const;
};

/// The largest differences among the pairs seen. NaN stands for a pair that has no difference (NaN, infinities).
struct Difference {
  double absolute = 0;
  double relative = 0;   ///< |a - b| / max(|a|, |b|)
  std::int64_t ulp = 0;  ///< between float32 values (float64 for norms)
  bool none() const { return ulp == 0; }
  void add(double target, double reference, std::int64_t distance);
  void join(const Difference& other);
};

/// Adds n pairs, each times `factor`, to `difference`. Returns the first index that `tolerance` does not accept.
std::optional<std::int64_t> compare(const float* target, const float* reference, std::int64_t n, double factor,
                                    const Tolerance& tolerance, Difference& difference);

}  // namespace zs::verify
