// SPDX-License-Identifier: Apache-2.0
// Memory-mapped files, and which file an address belongs to: if another program truncates a mapped file, the next read
// raises SIGBUS, and the handler can name the file.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace zs {

/// Registers the bytes from `begin` as the bytes of the file `path`, for the lifetime of the object.
class MappedRange {
 public:
  MappedRange(const void* begin, std::size_t size, const std::string& path);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  void* entry_;
};

/// A file mapped for reading: its bytes are read from disk on first access. If another process truncates the file, the
/// access raises SIGBUS, which cli::run reports with the path; zs itself replaces files and never truncates them.
class Mapping {
 public:
  /// Throws Error with the path if it does not exist or is not a regular file.
  static std::shared_ptr<const Mapping> open(const std::string& path);
  ~Mapping();

  std::string_view bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  Mapping() = default;
  std::string path_;
  std::string_view bytes_;
  std::unique_ptr<MappedRange> range_;
};

/// The path of the mapped file that contains `address`, or null. Async-signal-safe.
const char* mapped_file(const void* address) noexcept;

}  // namespace zs
