// SPDX-License-Identifier: Apache-2.0
// What zs_probe recorded of the conditions of an experiment, each in its run's folder, compared with the first of them.
#pragma once
#include <vector>

#include "experiment/experiment.hpp"
#include "experiment/state.hpp"

namespace zs::experiment {

/// "probe_comparison", a sentence without its period: which conditions are equal to the first, to the bit or up to
/// rounding, and where others part; and "probe_verdict", the worst of the verdicts. Of the conditions that are
/// complete; empty where fewer than two were probed.
registry::Fields compare_probes(const Experiment& experiment, const std::vector<State>& states);

}  // namespace zs::experiment
