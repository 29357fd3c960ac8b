// SPDX-License-Identifier: Apache-2.0
#include "base/folder.hpp"

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"

namespace zs {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() : path_((fs::temp_directory_path() / "zs-XXXXXX").string()) {
  if (!::mkdtemp(path_.data())) throw Error(path_, 0, "cannot make a temporary folder: " + errno_text());
  guard_.emplace(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace zs
