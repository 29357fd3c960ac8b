// SPDX-License-Identifier: Apache-2.0
// Figures of a loss curve. Pure functions of steps and losses, parallel and in order of steps.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "stat/sample.hpp"

namespace zs::stat {

/// Exponential moving average with this weight of the past and bias correction: the first value is the first loss.
inline constexpr double kSmoothing = 0.9;
Sample smoothed(const Sample& losses, double weight = kSmoothing);

/// Mean height of the curve: its trapezoidal area, divided by the spanned steps; for one point its loss, for none nan.
/// REQUIRES: the same number of steps and losses.
double mean_height(const std::vector<std::int64_t>& steps, const Sample& losses);

/// The first step with a loss of at most `target`, if there is one.
std::optional<std::int64_t> first_at_most(const std::vector<std::int64_t>& steps, const Sample& losses, double target);

}  // namespace zs::stat
