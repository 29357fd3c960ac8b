// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run as folders: their names, their checksums, their removal.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zs::checkpoint {

/// Steps of the checkpoint_STEP folders in `run_folder`, ascending.
std::vector<std::int64_t> steps(const std::string& run_folder);

/// Every regular file below `folder`, as paths relative to it, in order.
std::vector<std::string> files(const std::string& folder);

/// Whether the folder has a state of zs to go on from, or its SHA256SUMS says that it should; else only weights are
/// there.
bool has_state(const std::string& folder);

/// SHA256SUMS as path -> digest. Throws zs::Error where it is missing or malformed, at a file that it lists and the
/// folder lacks, and at one that it does not list and that a reader of checkpoints would take; a tokenizer or a README
/// is none.
std::map<std::string, std::string> read_sums(const std::string& folder);

/// Throws zs::Error, naming the file, if its content does not have the digest.
void verify(const std::string& folder, const std::string& file, const std::string& digest);

/// Makes files and folder entries last through a power cut.
void sync_folder(const std::string& folder);

}  // namespace zs::checkpoint
