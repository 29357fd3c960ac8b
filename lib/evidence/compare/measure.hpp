// SPDX-License-Identifier: Apache-2.0
// The distance of two sets of numbers: absolute, relative, and in units of the last place.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace zs::compare {

/// The number of floats from one value to the other. -0 and +0 are adjacent, so that the distance is 0 only between the
/// same bits. kNoDistance if either is NaN.
inline constexpr std::int64_t kNoDistance = std::numeric_limits<std::int64_t>::max();
std::int64_t ulp_distance(float a, float b);
std::int64_t ulp_distance(double a, double b);
/// The same for floats of `width` bits (8, 16, 32 or 64) given as bits, neither of them NaN.
std::int64_t ulp_distance(std::uint64_t a, std::uint64_t b, int width);

/// "12"; "nan" for kNoDistance.
std::string ulp_text(std::int64_t distance);

/// A number in decimal for people and in hexadecimal without loss: "0.1", "0x1.99999ap-4".
std::string decimal(double value);
std::string hexadecimal(double value);

/// The condition of near equality: |a - b| <= atol + rtol * |b|. NaN and infinity never satisfy it.
struct Tolerance {
  double rtol = 0, atol = 0;
  bool exact() const { return rtol == 0 && atol == 0; }
  /// Without a tolerance accepts only equal bits.
  bool accepts(double a, double b) const;
};

/// The largest differences of all pairs. NaN: a pair has no difference (NaN, infinities).
struct Difference {
  double absolute = 0;
  double relative = 0;   ///< |a - b| / max(|a|, |b|)
  std::int64_t ulp = 0;  ///< in values of their type; 0 only if no pair was added
  bool none() const { return ulp == 0; }
  void add(double a, double b, std::int64_t distance);
  void join(const Difference& other);
};

/// Adds n pairs, each times `factor`, to `difference`. Returns the first index that `tolerance` rejects.
std::optional<std::int64_t> compare(const float* target, const float* reference, std::int64_t n, double factor,
                                    const Tolerance& tolerance, Difference& difference);

}  // namespace zs::compare
