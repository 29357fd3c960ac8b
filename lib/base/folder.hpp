// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace zs {

/// A folder of one's own in $TMPDIR that goes with the object, and with it all that it holds. The constructor throws
/// Error.
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
};

}  // namespace zs
