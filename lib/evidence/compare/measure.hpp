// SPDX-License-Identifier: Apache-2.0
// How far two sets of numbers are apart: absolutely, relatively, and in units of the last place.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace zs::compare {

/// How many floats one has to step over from one value to the other. -0 and +0 are neighbours, so that the distance is
/// 0 only between the same bits. kNoDistance if either is NaN.
inline constexpr std::int64_t kNoDistance = std::numeric_limits<std::int64_t>::max();
std::int64_t ulp_distance(float a, float b);
std::int64_t ulp_distance(double a, double b);
/// The same of floats of `width` bits (8, 16, 32 or 64) given as their bits, neither of them NaN.
std::int64_t ulp_distance(std::uint64_t a, std::uint64_t b, int width);

/// "12"; "nan" for kNoDistance.
std::string ulp_text(std::int64_t distance);

/// A number so that people can read it, and so that no bit is lost: "0.1", "0x1.99999ap-4".
std::string decimal(double value);
std::string hexadecimal(double value);

/// Equal enough: |a - b| <= atol + rtol * |b|. NaN never is, infinity neither.
struct Tolerance {
  double rtol = 0, atol = 0;
  bool exact() const { return rtol == 0 && atol == 0; }
  /// Without a tolerance only the same bits are accepted.
  bool accepts(double a, double b) const;
};

/// The largest differences among the pairs seen. NaN stands for a pair that has no difference (NaN, infinities).
struct Difference {
  double absolute = 0;
  double relative = 0;   ///< |a - b| / max(|a|, |b|)
  std::int64_t ulp = 0;  ///< between values of the type that they have; 0 only if no pair was added
  bool none() const { return ulp == 0; }
  void add(double a, double b, std::int64_t distance);
  void join(const Difference& other);
};

/// Adds n pairs, each times `factor`, to `difference`. Returns the first index that `tolerance` does not accept.
std::optional<std::int64_t> compare(const float* target, const float* reference, std::int64_t n, double factor,
                                    const Tolerance& tolerance, Difference& difference);

}  // namespace zs::compare
