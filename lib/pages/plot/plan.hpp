// SPDX-License-Identifier: Apache-2.0
// The figure of a plan: how fast each way to train is, for a rank too, and what memory it takes, over the number of
// ranks.
#pragma once
#include <vector>

#include "plan/candidate.hpp"
#include "plot/figures.hpp"

namespace zs::plot {

/// Of candidates for two or more numbers of ranks: a curve for each way (stage, secondary partition, offload), each
/// point the fastest of its accumulations that fit into `memory` bytes (0: no limit); a gap where none does. Throws
/// UsageError where there is one number of ranks, Error where nothing fits.
Figure plan_figure(const std::vector<plan::Candidate>& candidates, double memory);

}  // namespace zs::plot
