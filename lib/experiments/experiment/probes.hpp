// SPDX-License-Identifier: Apache-2.0
// Compares the probes of an experiment's conditions, each in its run's folder, with the first.
#pragma once
#include <vector>

#include "experiment/experiment.hpp"
#include "experiment/state.hpp"

namespace zs::experiment {

/// "probe_comparison", a sentence without its period: which conditions are equal to the first, to the bit or up to
/// rounding, and where others differ; and "probe_verdict", the worst verdict. For complete conditions; empty if fewer
/// than two were probed.
registry::Fields compare_probes(const Experiment& experiment, const std::vector<State>& states);

}  // namespace zs::experiment
