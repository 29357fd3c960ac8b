// SPDX-License-Identifier: Apache-2.0
// Text to train on, as tokens.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::data {

/// Text that every Debian machine has, used when nothing else is named.
inline constexpr const char* kDefaultDataset = "/usr/share/common-licenses";

/// The token between two files.
inline constexpr std::uint8_t kSeparator = 0;

/// A data set's tokens: bytes of its text.
struct Corpus {
  std::string path;
  std::vector<std::uint8_t> tokens;
  std::int64_t files = 0;
  std::string sha256;  ///< of the tokens

  static constexpr std::int64_t kVocabulary = 256;
};

/// Reads a text file (gzip or not), or every regular file below a folder in the order of their paths (no links, no
/// files with NUL bytes), takes the first `percentage` of the tokens and of these the first `most` (0: all).
/// Throws zs::Error at what cannot be read, at a folder without text, and where nothing is left.
Corpus read_corpus(const std::string& path, double percentage, std::int64_t most);

}  // namespace zs::data
