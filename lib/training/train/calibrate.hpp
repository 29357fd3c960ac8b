// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "comm/group.hpp"
#include "setup/settings.hpp"

namespace zs::train {

using setup::Settings;

/// zs-train --calibrate: trains two steps, measures each matrix product in them, adds the fastest kernels and the
/// matrix rate to this GPU's table (kernel/calibration.hpp), and returns the results as text. Keeps nothing else.
/// REQUIRES: a group of one rank on a GPU.
std::string calibrate(comm::Group& group, Settings settings);

}  // namespace zs::train
