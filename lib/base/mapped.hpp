// SPDX-License-Identifier: Apache-2.0
// Which file a mapped address belongs to: when another program cuts a mapped file short, the next read of it raises
// SIGBUS, and whoever catches that can say of which file.
#pragma once
#include <cstddef>
#include <string>

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

/// The path of the mapped file that holds `address`, or null. A signal handler may call it.
const char* mapped_file(const void* address) noexcept;

}  // namespace zs
