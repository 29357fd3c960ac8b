// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run as folders: their names, their removal.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::checkpoint {

/// Steps of the checkpoint_STEP folders in `run_folder`, ascending.
std::vector<std::int64_t> steps(const std::string& run_folder);

/// Whether the folder has a state of zs to go on from, or its SHA256SUMS says that it should; else only weights are
/// there.
bool has_state(const std::string& folder);

/// Makes files and folder entries last through a power cut.
void sync_folder(const std::string& folder);

}  // namespace zs::checkpoint
