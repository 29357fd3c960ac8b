// SPDX-License-Identifier: Apache-2.0
// Loss curves from a summary, with the requested axis and smoothing.
#pragma once
#include "base/words.hpp"
#include "plot/figures.hpp"

namespace zs::plot {

/// The condition's curve: its name, look, status, and its points (none if it has no curve). If some of its runs are not
/// finite, the curve is the mean of the others, and `partly` says so. Throws Error if the condition lacks the values of
/// the axis.
Series loss_curve(const Condition& condition, const Look& look, const Options& options, std::string* partly = nullptr);

/// The condition's column options.value, its mean over the runs with their range; no points if no run has it.
Series column_curve(const Condition& condition, const Look& look, const Options& options);

/// The number of points to smooth over: as requested, or suitable for `points`.
std::size_t smoothing(const Options& options, std::size_t points);
/// The mean of `count` values around each; of fewer at the ends and next to values that are not finite, which are kept
/// unchanged.
std::vector<double> smoothed(const std::vector<double>& values, std::size_t count);

/// Steps so slow that a time axis shows them as ordinary ones: "z3 at step 1 (56.2 s)"; "" if there are none.
std::string slow_steps(const std::vector<Condition>& conditions);

std::string x_label(const Options& options);

/// "Training loss of gpt2".
std::string titled(const std::string& what, const std::vector<Condition>& conditions);

}  // namespace zs::plot
