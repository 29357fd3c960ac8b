// SPDX-License-Identifier: Apache-2.0
// Checksums of content: they link a record to its log, and a checkpoint to its files.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace zs {

/// SHA-256 of `bytes` (FIPS 180-4) as 64 hex digits.
std::string sha256(std::string_view bytes);

/// CRC-32C (Castagnoli), as in iSCSI and TFRecord.
std::uint32_t crc32c(std::string_view bytes);

/// Checksum of a stream: SHA-256 up to kLargest bytes; above, 128-bit XXH3, since SHA-256 is slower than reading.
class Checksum {
 public:
  static constexpr std::int64_t kLargest = 64 << 20;

  /// `expected`: the size of the stream in bytes, as far as known. Only the checksum that it needs is computed.
  explicit Checksum(std::int64_t expected);
  ~Checksum();

  void add(std::string_view bytes);
  /// "sha256" or "xxh128": the algorithm of text().
  std::string name() const;
  /// Hex digits, as sha256sum and xxh128sum print them. REQUIRES: called once, after the last add().
  std::string text();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zs
