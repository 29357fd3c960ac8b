// SPDX-License-Identifier: Apache-2.0
// Text to train on, with bytes as tokens.
#pragma once
#include <vector>

#include "data/tokens.hpp"

namespace zs::data {

/// Text on every Debian machine, used if no data set is named.
inline constexpr const char* kDefaultDataset = "/usr/share/common-licenses";

/// The token between two documents.
inline constexpr std::uint8_t kSeparator = 0;

class Corpus final : public Tokens {
 public:
  static constexpr std::int64_t kVocabulary = 256;

  /// The concatenated documents of `files` (token::DocumentReader: a file is one; JSON Lines, which `text_key` selects
  /// for any file, are many), of these the first `percentage` of the tokens and of these the first `most` (0: all). If
  /// there are several files, those with NUL bytes are left out and added to `no_text`. `name` is path(). Throws
  /// zs::Error if a file cannot be read, if a single file is no text, and if nothing remains.
  Corpus(const std::string& name, const std::vector<std::string>& files, const std::string& text_key, double percentage,
         std::int64_t most, std::vector<std::string>& no_text);

  std::int64_t count() const override { return static_cast<std::int64_t>(bytes_.size()); }
  void copy(std::int64_t first, std::span<std::int64_t> out) const override;
  std::int64_t vocabulary() const override { return kVocabulary; }
  const std::string& sha256() const override { return sha256_; }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  std::vector<std::uint8_t> bytes_;
  std::string sha256_;

  /// Whether the file is text, and was added.
  bool append(const std::string& file, const std::string& text_key);
};

}  // namespace zs::data
