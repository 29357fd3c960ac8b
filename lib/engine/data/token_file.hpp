// SPDX-License-Identifier: Apache-2.0
// Token ids to train on, from a token file of llm.c or nanoGPT, or from text through a tokenizer: mapped, so that only
// accessed pages are in memory.
#pragma once
#include <optional>
#include <string>

#include "data/tokens.hpp"
#include "token/file.hpp"

namespace zs::data {

/// Whether a path counts as a token file: a regular file whose name ends with .bin.
bool is_token_file(const std::string& path);

class TokenFile final : public Tokens {
 public:
  /// The first `percentage` of the ids, and of these the first `most` (0: all). Throws zs::Error, located, if the file
  /// is no token file or truncated, if an id is not below `vocabulary`, and if nothing remains. path() is `name`, if
  /// given. Reads marks if there are any next to it; with `whole` every token is trained on.
  TokenFile(const std::string& path, std::int64_t vocabulary, double percentage, std::int64_t most,
            const std::string& name = "", bool whole = false);

  std::int64_t count() const override { return count_; }
  void copy(std::int64_t first, std::span<std::int64_t> out) const override {
    file_.copy(first, static_cast<std::int64_t>(out.size()), out.data());
  }
  bool marked() const override { return marks_.has_value(); }
  void copy_marks(std::int64_t first, std::span<token::Mark> out) const override;
  std::int64_t vocabulary() const override { return vocabulary_; }
  const std::string& sha256() const override { return sha256_; }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  token::TokenFile file_;
  std::optional<token::Marks> marks_;
  bool all_;
  std::int64_t vocabulary_, count_;
  std::string sha256_;  // of the ids as uint32, whatever their width in the file; of many with "xxh128:" in front; then
                        // of marks
};

}  // namespace zs::data
