// SPDX-License-Identifier: Apache-2.0
// Folders and their content.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/temporary.hpp"

namespace zs {

/// Whether the path exists (file, folder or anything else), as far as the caller may see. Links are followed.
bool is_there(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
/// The entries of a folder, sorted; none if it is not there. Throws Error with its path if it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
/// The files in a folder and in its folders, sorted; links to folders are not followed. `hidden`: also those whose name
/// begins with a dot, and what such folders hold. Throws as entries_of() does.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, bool hidden = true);

/// A new private folder in $TMPDIR. It is removed with all its content when the object is destroyed or a signal ends
/// the process. The constructor throws Error.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::optional<RemovedBySignal> guard_;
};

}  // namespace zs
