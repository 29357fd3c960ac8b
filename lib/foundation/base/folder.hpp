// SPDX-License-Identifier: Apache-2.0
// Folders and their content.
#pragma once
#include <optional>
#include <string>

#include "base/temporary.hpp"

namespace zs {

/// Whether the path exists (file, folder or anything else), as far as the caller may see.
bool is_there(const std::string& path);

/// A new private folder in $TMPDIR. It is removed with all its content when the object is destroyed or a signal ends
/// the process. The constructor throws Error.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::optional<RemovedBySignal> guard_;
};

}  // namespace zs
