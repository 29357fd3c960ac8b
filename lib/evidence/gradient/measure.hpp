// SPDX-License-Identifier: Apache-2.0
// Statistics of gradient elements in constant memory. Sums are float64; nan and inf are counted separately.
#pragma once
#include <cstdint>
#include <span>

namespace zs::gradient {

struct Measure {
  std::int64_t count = 0;                 ///< elements
  std::int64_t zeros = 0;                 ///< of which exactly 0
  std::int64_t nans = 0, infinities = 0;  ///< of which these
  double mean = 0;                        ///< of the finite ones
  double deviations = 0;                  ///< sum of their squared differences from the mean
  double squares = 0;                     ///< sum of their squares
  double largest = 0;                     ///< the largest magnitude of these

  void add(std::span<const float> values);
  /// Adds the measure of other elements.
  void add(const Measure& other);

  std::int64_t non_finite() const { return nans + infinities; }
  std::int64_t finite() const { return count - non_finite(); }
  bool all_zero() const { return count > 0 && zeros == count; }
  /// L2 norm: nan or inf if an element is, since these are values and not gaps.
  double norm() const;
  /// Root mean square: the norm over the root of the number of elements, comparable between layers of different sizes.
  /// nan without elements.
  double rms() const;
  /// Variance of the finite elements (divided by their number). nan without any.
  double variance() const;
};

/// The inner product of two spans of the same length, in float64; nan or inf if an element is.
double dot(std::span<const float> a, std::span<const float> b);

/// Cosine of the angle between two gradients, from their inner product: within [-1, 1]; nan if a norm is 0 or not
/// finite.
double cosine(double dot, double norm_a, double norm_b);

}  // namespace zs::gradient
