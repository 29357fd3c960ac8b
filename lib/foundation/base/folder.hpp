// SPDX-License-Identifier: Apache-2.0
// Folders, and what is in them.
#pragma once
#include <optional>
#include <string>

#include "base/temporary.hpp"

namespace zs {

/// Whether there is a file, a folder or anything else of that path, as far as the caller may see.
bool is_there(const std::string& path);

/// A folder of one's own in $TMPDIR that goes with the object, and with it all that it holds, also by a signal. The
/// constructor throws Error.
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
