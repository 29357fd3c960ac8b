// SPDX-License-Identifier: Apache-2.0
// The files of a recording: FOLDER/rank-R.jsonl.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::probefile {

std::string path_of(const std::string& folder, int rank);

/// The ranks whose files are in a folder, in order; empty for a folder without a recording.
std::vector<std::int64_t> ranks_in(const std::string& folder);

}  // namespace zs::probefile
