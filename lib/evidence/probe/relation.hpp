// SPDX-License-Identifier: Apache-2.0
// Linear relations between tensors, computed only from their sketches: vectors of numbers that are linear in the
// values. Pure functions; a residual is a norm relative to the target's norm.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/number.hpp"
#include "probefile/fields.hpp"

namespace zs::probe {

using probefile::Sketch;

/// The number of sums in a sketch for each range of its tensor.
inline constexpr std::size_t kSumsOfRange = 8;
/// The sums of one range.
Sketch range(const Sketch& sums, std::size_t number);

double norm(const Sketch& a);
double dot(const Sketch& a, const Sketch& b);
/// |a - b| / max(|a|, |b|); 0 if both are 0, 2 if a number is not finite.
double distance(const Sketch& a, const Sketch& b);

/// Half a unit in the last place of a type, relative to its largest share.
double half_unit(const std::string& dtype);

/// target = sum over j of weights[j] * columns[j], by least squares. residual = |target - sum| / |target|.
struct Fit {
  std::vector<double> weights;
  double residual = 1;
};
/// Linearly dependent columns get the weight 0. REQUIRES: columns as long as the target.
Fit fit(const std::vector<Sketch>& columns, const Sketch& target);
/// The residual for given weights.
double residual(const std::vector<Sketch>& columns, const std::vector<double>& weights, const Sketch& target);

/// The fit with integer weights, times `unit`: {0, 0, 0, 4}. Nothing unless the weights are within `near` of integers
/// and the residual with these is at most `most`.
std::optional<Fit> whole_fit(const std::vector<Sketch>& columns, const Sketch& target, double unit, double most,
                             double near = 0.1);

/// Numbers with a meaning: {"accumulation", 4}.
using Constants = std::vector<std::pair<std::string, double>>;

/// Describes a factor: "x 1/4 (1 / accumulation)", "x 2 (ranks)", "x 31.29 (norm over clip bound)", "x -1", "x 0.37". A
/// constant, the inverse of one, a product of two; else an integer or its inverse; within `tolerance`, relative.
std::string factor_text(double factor, const Constants& constants, double tolerance);

/// The rounding error of a sum of products in a type ("F32", "BF16", "F16", "F64"), relative to its norm.
double rounding(const std::string& dtype);
/// Whether a distance relative to the norm is like rounding each element to a 16-bit type: half a unit in the last
/// place at most, 0.4 of that on average (0.0016 for bfloat16), and up to twice that where sums are rounded again.
bool like_rounding(double distance, const std::string& dtype);
/// The number of a type that is nearest to a number, half to even.
double rounded_to(double value, const std::string& dtype);
/// Compares elements of a tensor on two sides: 1 if one side rounded them to bfloat16, and may have scaled them since;
/// -1 if it did not; 0 if too few differ.
int rounded_elements(const std::vector<double>& a, const std::vector<double>& b);
/// The type with less precision.
const std::string& coarser(const std::string& a, const std::string& b);

}  // namespace zs::probe
