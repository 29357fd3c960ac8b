// SPDX-License-Identifier: Apache-2.0
// Loss curves from a summary, over the axis and with the smoothing that was asked for.
#pragma once
#include "plot/figures.hpp"

namespace zs::plot {

/// The condition's curve: its name, look, status, and its points (none if it has no curve). Where a run is not finite
/// and others are, the curve is that of the others, and `partly` says so.
/// Throws Error if the axis needs what the condition does not have.
Series loss_curve(const Condition& condition, const Look& look, const Options& options, std::string* partly = nullptr);

/// The condition's column options.value, its mean over the runs with their range; no points where no run has it.
Series column_curve(const Condition& condition, const Look& look, const Options& options);

/// Points that a curve is smoothed over: what was asked for, or what suits so many.
std::size_t smoothing(const Options& options, std::size_t points);
/// The mean of `count` values around each; of fewer at the ends and beside values that are not finite, which stay,
/// alone.
std::vector<double> smoothed(const std::vector<double>& values, std::size_t count);

/// Steps that take so long that an axis of time shows them as usual ones: "z3 at step 1 (56.2 s)"; "" without any.
std::string slow_steps(const std::vector<Condition>& conditions);

/// What the x axis is called.
std::string x_label(const Options& options);

/// "6 curves", "1 curve".
std::string counted(std::size_t count, const std::string& noun);

/// "Training loss of gpt2".
std::string titled(const std::string& what, const std::vector<Condition>& conditions);

}  // namespace zs::plot
