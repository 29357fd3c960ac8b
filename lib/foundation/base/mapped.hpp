// SPDX-License-Identifier: Apache-2.0
// Files mapped for reading, and which file a mapped address belongs to: when another program cuts a mapped file short,
// the next read of it raises SIGBUS, and whoever catches that can say of which file.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace zs {

/// Says, for as long as it lives, that the bytes from `begin` on are those of the file `path`.
class MappedRange {
 public:
  MappedRange(const void* begin, std::size_t size, const std::string& path);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  void* entry_;
};

/// A file mapped for reading, so that its bytes come from disk when they are first looked at.
/// A file that another process cuts short afterwards raises SIGBUS, which cli::run reports with the path; files of ours
/// are replaced, never cut.
class Mapping {
 public:
  /// Throws Error with the path: no such file, a directory, no regular file.
  static std::shared_ptr<const Mapping> open(const std::string& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::string_view bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  Mapping() = default;
  std::string path_;
  std::string_view bytes_;
  std::unique_ptr<MappedRange> range_;
};

/// The path of the mapped file that holds `address`, or null. A signal handler may call it.
const char* mapped_file(const void* address) noexcept;

}  // namespace zs
