// SPDX-License-Identifier: Apache-2.0
// Marks of a token file: which tokens the loss counts, and where conversations begin.
#pragma once
#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "token/file.hpp"

namespace zs::token {

/// The marks of a token, as bits.
using Mark = std::uint8_t;
inline constexpr Mark kTrained = 1;  ///< the loss counts it
inline constexpr Mark kBegins = 2;   ///< the first token of a conversation: without context, so no loss counts it

/// "train.mask" of "train.bin".
std::string marks_path(const std::string& token_file);

/// The marks of a token file, mapped. Format: "zs marks 1\n", 5 bytes of 0, the number of tokens (uint64,
/// little-endian), the 128-bit XXH3 of their ids as uint32 (canonical), then a byte per token.
class Marks {
 public:
  /// Throws Error with the path: no such file, another kind, truncated, of other tokens than the file's.
  explicit Marks(const TokenFile& tokens);
  /// REQUIRES: they exist.
  void copy(std::int64_t first, std::span<Mark> out) const;
  /// The first `n` as in the file.
  std::string_view bytes(std::int64_t n) const { return marks_.substr(0, static_cast<std::size_t>(n)); }

 private:
  std::shared_ptr<const Mapping> mapping_;
  std::string_view marks_;
};

/// Writes a token file and its marks; each appears whole, the marks first.
class MarkedWriter {
 public:
  MarkedWriter(const std::string& path, Layout layout, Id vocabulary);
  ~MarkedWriter();
  /// REQUIRES: both have the same size.
  void write(const std::vector<Id>& ids, const std::vector<Mark>& marks);
  void commit();

 private:
  TokenWriter tokens_;
  Output marks_;
  XXH3_state_t* sum_;
};

}  // namespace zs::token
