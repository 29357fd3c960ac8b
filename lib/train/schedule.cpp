// SPDX-License-Identifier: Apache-2.0
#include "train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zs::train {

double schedule(const std::string& name, std::int64_t done, std::int64_t warmup, std::int64_t total) {
  if (done < warmup) return static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, warmup));
  const double span = static_cast<double>(std::max<std::int64_t>(1, total - warmup));
  if (name == "linear") return std::max(0.0, static_cast<double>(total - done) / span);
  if (name == "cosine")
    return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * static_cast<double>(done - warmup) / span)));
  return 1;
}

}  // namespace zs::train
