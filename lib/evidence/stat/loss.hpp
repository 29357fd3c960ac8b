// SPDX-License-Identifier: Apache-2.0
// What a loss curve comes to. Pure functions over steps and losses, parallel and in order of steps.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "stat/sample.hpp"

namespace zs::stat {

/// Exponential moving mean with this weight of the past, corrected for its start: the first value is the first loss.
inline constexpr double kSmoothing = 0.9;
Sample smoothed(const Sample& losses, double weight = kSmoothing);

/// Mean height of the curve: its area by the trapezoid rule over the steps that it spans; of one point its loss, of
/// none nan. REQUIRES: as many steps as losses.
double mean_height(const std::vector<std::int64_t>& steps, const Sample& losses);

/// The first step whose loss is at most `target`, if there is one.
std::optional<std::int64_t> first_at_most(const std::vector<std::int64_t>& steps, const Sample& losses, double target);

}  // namespace zs::stat
