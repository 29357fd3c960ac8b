// SPDX-License-Identifier: Apache-2.0
// A file that grows while a training runs, and that holds all that was written to it when the process is killed.
#pragma once
#include <string>
#include <string_view>

namespace zs::tracker {

class AppendedFile {
 public:
  enum class Begin { as_new, behind };
  /// A new file, or behind what a file has; its folders are made. Throws Error, also where there is a file and is to be
  /// none.
  explicit AppendedFile(const std::string& path, Begin begin = Begin::as_new);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  const std::string& path() const { return path_; }
  /// Hands `bytes` to the system. Throws Error.
  void append(std::string_view bytes);
  /// Has all of it on the disk. Throws Error.
  void sync();

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace zs::tracker
