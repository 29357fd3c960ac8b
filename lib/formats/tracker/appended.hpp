// SPDX-License-Identifier: Apache-2.0
// A file that grows during a training, and keeps everything written to it if the process is killed.
#pragma once
#include <string>
#include <string_view>

#include "base/descriptor.hpp"

namespace zs::tracker {

class AppendedFile {
 public:
  enum class Begin { as_new, behind };
  /// Creates the file and its folders, or appends to an existing one. Throws Error, also if the file exists and must
  /// not.
  explicit AppendedFile(const std::string& path, Begin begin = Begin::as_new);

  const std::string& path() const { return path_; }
  /// Passes `bytes` to the system. Throws Error.
  void append(std::string_view bytes);
  /// Syncs the file to disk. Throws Error.
  void sync();

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace zs::tracker
