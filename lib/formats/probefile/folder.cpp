// SPDX-License-Identifier: Apache-2.0
#include "probefile/folder.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/folder.hpp"
#include "base/number.hpp"

namespace zs::probefile {

std::string path_of(const std::string& folder, int rank) { return folder + "/rank-" + std::to_string(rank) + ".jsonl"; }

std::vector<std::int64_t> ranks_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::int64_t> ranks;
  for (const fs::path& entry : entries_of(folder)) {
    std::string_view name = entry.native();
    name.remove_prefix(name.rfind('/') + 1);
    if (!name.starts_with("rank-") || !name.ends_with(".jsonl") || !is_file(entry)) continue;
    if (const auto rank = parse_int(name.substr(5, name.size() - 11)); rank && *rank >= 0) ranks.push_back(*rank);
  }
  std::ranges::sort(ranks);
  return ranks;
}

}  // namespace zs::probefile
