// SPDX-License-Identifier: Apache-2.0
// The checksum that ties a record to the log it came from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace zs::parse {

/// SHA-256 of at most kLargest bytes; of more, the 128 bits of XXH3, since SHA-256 is slower than reading a log.
class Checksum {
 public:
  static constexpr std::int64_t kLargest = 64 << 20;

  /// Of `expected` bytes, as far as is known: what will not be needed is not computed.
  explicit Checksum(std::int64_t expected);
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(const char* bytes, std::size_t size);
  /// "sha256" or "xxh128": what text() is.
  std::string name() const;
  /// Hex digits, as sha256sum and xxh128sum print them. REQUIRES: called once, after the last add().
  std::string text();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zs::parse
