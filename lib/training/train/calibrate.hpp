// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "kernel/calibration.hpp"
#include "setup/settings.hpp"

namespace zs::train {

using setup::Settings;

/// The measurements of this number of steps as a table, with the largest share of a step first, and their sum: each
/// next to the rate of a large product, in operations per second.
std::string roofline(std::vector<kernel::Measured> products, std::int64_t steps, double rate);

/// zs-train --calibrate: trains two steps, measures each matrix product in them, adds the fastest kernels and the
/// matrix rate to this GPU's table (kernel/calibration.hpp), and returns the roofline and these as text. Keeps nothing
/// else.
/// REQUIRES: a group of one rank on a GPU.
std::string calibrate(comm::Group& group, Settings settings);

}  // namespace zs::train
