// SPDX-License-Identifier: Apache-2.0
// Compares two probes step by step and tensor by tensor: by digests, which add up over ranks, and by values if both
// kept them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "compare/measure.hpp"
#include "compare/verdict.hpp"

namespace zs::compare {

/// The verdict with its details: the first place that differs beyond rounding, or beyond the tolerance if there is one,
/// else the first that differs; whether the differences are rounding; both layouts.
struct ProbeAnswer {
  Settled verdict{};
  std::vector<std::pair<std::string, std::string>> lines;
};
/// Compares losses rank by rank if both have as many ranks, else their means. Skips steps up to `after`. Throws Error
/// as read_probe() does.
ProbeAnswer compare_probes(const std::string& a, const std::string& b, const Tolerance& tolerance,
                           std::int64_t after = 0);

}  // namespace zs::compare
