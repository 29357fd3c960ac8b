// SPDX-License-Identifier: Apache-2.0
// Two recordings of probe_file.hpp, compared step by step and tensor by tensor: by digests, which add up over ranks,
// and by values where both kept them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "compare/measure.hpp"
#include "compare/verdict.hpp"

namespace zs::compare {

/// The verdict and what belongs to it: the first place that differs beyond rounding, or beyond the tolerance where
/// there is one, else the first that differs; whether the differences are rounding; both layouts.
struct ProbeAnswer {
  Settled verdict{};
  std::vector<std::pair<std::string, std::string>> lines;
};
/// Losses of as many ranks are compared rank by rank, else their means. Steps up to `after` are not compared. Throws
/// Error as read_probe() does.
ProbeAnswer compare_probes(const std::string& a, const std::string& b, const Tolerance& tolerance,
                           std::int64_t after = 0);

}  // namespace zs::compare
