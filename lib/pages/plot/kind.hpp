// SPDX-License-Identifier: Apache-2.0
// The kinds of figure by name, for zs-plot.
#pragma once
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "plot/figures.hpp"
#include "summary/condition.hpp"

namespace zs::plot {

struct Kind {
  std::string name, purpose;
};
/// All kinds, in the order in which they are listed.
std::vector<Kind> kinds();
/// The kinds that are not made from a summary: see gradient_figure, trace_figure.
inline constexpr const char* kGradients = "gradients";
inline constexpr const char* kTrace = "trace";

/// Throws UsageError at an unknown kind, naming the nearest, or all.
void require_kind(const std::string& kind);

/// Makes the figure of a kind from a summary. `source` names the input in errors. Throws UsageError at an unknown kind
/// (with the nearest), at kGradients and kTrace, Error if the summary lacks data for the kind. With `by_stage`
/// conditions are named by stage_names().
Figure figure(const std::string& kind, const metric::Store& store, const std::string& source, Options options = {},
              bool by_stage = false);

// Describes conditions by their stage instead of their names.

/// "ZeRO-1 (baseline)", "ZeRO-3 (DeepCompile, offload cpu)", "FSDP". A condition with an unknown stage keeps its name;
/// if descriptions are equal, the name is appended.
std::vector<std::string> stage_names(const std::vector<summary::Condition>& conditions);

/// "learning rate 0.001": what a sweep varied, if the conditions' names only count, sweep_001; else their names.
std::vector<std::string> setting_names(const std::vector<summary::Condition>& conditions);

}  // namespace zs::plot
