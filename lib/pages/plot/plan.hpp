// SPDX-License-Identifier: Apache-2.0
// The figure of a plan: the speed of each configuration, in
// all and per rank, and its memory, over the number of ranks.
#pragma once
#include <vector>

#include "plan/candidate.hpp"
#include "plot/figures.hpp"

namespace zs::plot {

/// For candidates with two or more numbers of ranks: a curve per configuration (stage, secondary partition, offload),
/// each point the fastest of its accumulations that fit into `memory` bytes (0: no limit); a gap if none does. Throws
/// UsageError if there is only one number of ranks, Error if nothing fits.
Figure plan_figure(const std::vector<plan::Candidate>& candidates, double memory);

}  // namespace zs::plot
