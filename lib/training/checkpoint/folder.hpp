// SPDX-License-Identifier: Apache-2.0
// The folders of a run's checkpoints: names, removal.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::checkpoint {

/// The matrices of a training that holds them in 4 bits: bytes by name.
inline constexpr const char* kPackedFile = "/nf4.bin";

/// Steps of the checkpoint_STEP folders in `run_folder`, ascending.
std::vector<std::int64_t> steps(const std::string& run_folder);

/// Whether the folder has a state of zs to resume from, or should have one by its SHA256SUMS; else it has only weights.
bool has_state(const std::string& folder);

/// Syncs files and folder entries to disk, so that they survive a power failure.
void sync_folder(const std::string& folder);

/// The newest checkpoint_STEP of a run's folder, else its final_checkpoint; "" if there is neither.
std::string latest(const std::string& run_folder);

/// Removes what killed writers left in a run's folder; restores a checkpoint that one was about to replace. REQUIRES:
/// no process writes there.
void remove_leftovers(const std::string& run_folder);

/// Removes all but the newest `keep` checkpoint_STEP folders.
void prune(const std::string& run_folder, std::int64_t keep);

}  // namespace zs::checkpoint
