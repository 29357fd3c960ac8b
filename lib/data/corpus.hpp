// SPDX-License-Identifier: Apache-2.0
// Text to train on, its bytes as tokens.
#pragma once
#include <vector>

#include "data/tokens.hpp"

namespace zs::data {

/// Text that every Debian machine has, used when nothing else is named.
inline constexpr const char* kDefaultDataset = "/usr/share/common-licenses";

/// The token between two files.
inline constexpr std::uint8_t kSeparator = 0;

class Corpus final : public Tokens {
 public:
  /// Reads a text file (gzip or not), or every regular file below a folder in the order of their paths (no links, no
  /// files with NUL bytes), takes the first `percentage` of the tokens and of these the first `most` (0: all).
  /// Throws zs::Error at what cannot be read, at a folder without text, and where nothing is left.
  Corpus(const std::string& path, double percentage, std::int64_t most);

  std::int64_t count() const override { return static_cast<std::int64_t>(bytes_.size()); }
  void copy(std::int64_t first, std::span<std::int64_t> out) const override;
  std::int64_t vocabulary() const override { return 256; }
  const std::string& sha256() const override { return sha256_; }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  std::vector<std::uint8_t> bytes_;
  std::string sha256_;

  void append(const std::string& text);
};

}  // namespace zs::data
