// SPDX-License-Identifier: Apache-2.0
// Loss curves from a summary, over the axis and with the smoothing that was asked for.
#pragma once
#include "plot/figures.hpp"

namespace zs::plot {

/// The condition's curve: its name, colour, status, and its points (none if it has no curve).
/// Throws Error if the axis needs what the condition does not have.
Series loss_curve(const Condition& condition, const Options& options);

/// What the x axis is called.
std::string x_label(const Options& options);

/// "6 curves", "1 curve".
std::string counted(std::size_t count, const std::string& noun);

}  // namespace zs::plot
