// SPDX-License-Identifier: Apache-2.0
// For tests: the checkpoints that the packages themselves wrote (tests/data/checkpoints).
#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::state {

/// Writes the files of a .tar.gz below `folder`.
inline void unpack(const std::string& archive, const std::string& folder) {
  constexpr std::size_t kBlock = 512;
  const std::string bytes = Input(archive).read_all();
  for (std::size_t at = 0; at + kBlock <= bytes.size() && bytes[at] != '\0';) {
    const std::string prefix(bytes.substr(at + 345, 155).c_str()), name(bytes.substr(at, 100).c_str());
    const std::string path = folder + "/" + (prefix.empty() ? name : prefix + "/" + name);
    const std::size_t size = std::stoul(bytes.substr(at + 124, 12), nullptr, 8);
    if (bytes[at + 156] == '5') std::filesystem::create_directories(path);
    if (bytes[at + 156] == '0' || bytes[at + 156] == '\0') {
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      write_file(path, bytes.substr(at + kBlock, size));
    }
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
}

/// The archives of checkpoints, by name.
inline std::vector<std::string> archives() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/checkpoints")) {
    if (entry.path().extension() == ".gz") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The checkpoints in an unpacked archive.
inline std::vector<std::string> checkpoints_of(const std::string& unpacked) {
  std::vector<std::string> inner;
  for (const auto& entry : std::filesystem::directory_iterator(unpacked + "/checkpoint")) {
    if (entry.is_directory()) inner.push_back(entry.path().string());
  }
  std::sort(inner.begin(), inner.end());
  return inner.empty() ? std::vector<std::string>{unpacked + "/checkpoint"} : inner;
}

}  // namespace zs::state
