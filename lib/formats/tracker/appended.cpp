// SPDX-License-Identifier: Apache-2.0
#include "tracker/appended.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"

namespace zs::tracker {

AppendedFile::AppendedFile(const std::string& path, Begin begin) : path_(path) {
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw Error(folder.string(), 0, error.message());
  }
  const int begun = begin == Begin::as_new ? O_EXCL : 0;
  file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | begun | O_APPEND | O_CLOEXEC, 0666));
  if (file_ < 0) throw Error(path, 0, errno_text());
}

void AppendedFile::append(std::string_view bytes) { write_all(file_, bytes, path_); }

void AppendedFile::sync() {
  if (::fsync(file_) != 0 && errno != EINVAL) throw Error(path_, 0, "sync: " + errno_text());
}

}  // namespace zs::tracker
