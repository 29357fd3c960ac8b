// SPDX-License-Identifier: Apache-2.0
// Linear relations between tensors, from their sketches alone: vectors of numbers that are linear in the values. Pure
// functions; a residual is a norm relative to that of what is explained.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zs::probe {

using Sketch = std::vector<double>;

double norm(const Sketch& a);
double dot(const Sketch& a, const Sketch& b);
/// |a - b| / max(|a|, |b|); 0 where both are 0, 2 where a number is not finite.
double distance(const Sketch& a, const Sketch& b);

/// target = sum over j of weights[j] * columns[j], by least squares. residual = |target - sum| / |target|.
struct Fit {
  std::vector<double> weights;
  double residual = 1;
};
/// Columns that depend on others have the weight 0. REQUIRES: columns as long as the target.
Fit fit(const std::vector<Sketch>& columns, const Sketch& target);
/// The same with the given weights: their residual.
double residual(const std::vector<Sketch>& columns, const std::vector<double>& weights, const Sketch& target);

/// The fit with whole numbers, times `unit`: {0, 0, 0, 4}. Nothing unless the weights lie within `near` of whole
/// numbers and the residual with those is at most `most`.
std::optional<Fit> whole_fit(const std::vector<Sketch>& columns, const Sketch& target, double unit, double most,
                             double near = 0.1);

/// A number that stands for something: {"accumulation", 4}.
using Constants = std::vector<std::pair<std::string, double>>;

/// What a factor is: "x 1/4 (1 / accumulation)", "x 2 (ranks)", "x 31.29 (norm over clip bound)", "x -1", "x 0.37".
/// A constant, the inverse of one, a product of two; else a whole number or its inverse; within `tolerance`, relative.
std::string factor_text(double factor, const Constants& constants, double tolerance);

/// The rounding of a sum of products in a type ("F32", "BF16", "F16", "F64"), relative to its norm.
double rounding(const std::string& dtype);
/// Whether two numbers so far apart, relative to their norm, differ as by rounding to bfloat16, which loses at most 2^-9.
bool like_bfloat16(double distance);
/// The coarser of two types.
const std::string& coarser(const std::string& a, const std::string& b);

}  // namespace zs::probe
