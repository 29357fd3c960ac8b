// SPDX-License-Identifier: Apache-2.0
#include "stat/loss.hpp"

#include <cmath>
#include <limits>

namespace zs::stat {

Sample smoothed(const Sample& losses, double weight) {
  Sample smooth;
  double past = 0, share = 0;  // share: the weights given so far, 1 in the end
  for (const double loss : losses) {
    past = weight * past + (1 - weight) * loss;
    share = weight * share + (1 - weight);
    smooth.push_back(past / share);
  }
  return smooth;
}

double mean_height(const std::vector<std::int64_t>& steps, const Sample& losses) {
  if (losses.empty()) return std::numeric_limits<double>::quiet_NaN();
  double area = 0, width = 0;
  for (std::size_t i = 1; i < losses.size(); ++i) {
    const auto span = static_cast<double>(steps[i] - steps[i - 1]);
    area += span * (losses[i] + losses[i - 1]) / 2;
    width += span;
  }
  return width > 0 ? area / width : losses.front();
}

std::optional<std::int64_t> first_at_most(const std::vector<std::int64_t>& steps, const Sample& losses, double target) {
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] <= target) return steps[i];
  }
  return {};
}

}  // namespace zs::stat
