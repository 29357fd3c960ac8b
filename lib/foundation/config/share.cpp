// SPDX-License-Identifier: Apache-2.0
#include "config/share.hpp"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/words.hpp"

namespace zs::config {

std::string share_path(const std::string& name) {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  if (const char* const given = std::getenv("ZS_SHARE"); given && *given) {
    folders = {given};
  } else {
    std::error_code failure;
    const fs::path binary = fs::read_symlink("/proc/self/exe", failure);
    if (failure)
      throw Error("cannot find the folder of this program (" + failure.message() +
                  "): set ZS_SHARE to the share folder of zs");
    const fs::path above = binary.parent_path().parent_path();
    folders = {above / "share" / "zs", above / "share"};
    if (above.filename() == "lib") folders.push_back(above.parent_path() / "share" / "zs");  // of PREFIX/lib/zs/engine
  }
  for (const fs::path& folder : folders) {
    if (is_there(folder / name)) return (folder / name).string();
  }
  throw Error(name, 0, "not found in " + joined(folders, ", ", [](const fs::path& folder) {
                         return folder.string();
                       }) + " (ZS_SHARE names another folder)");
}

}  // namespace zs::config
