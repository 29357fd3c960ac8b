// SPDX-License-Identifier: Apache-2.0
// Text that was tokenised once, kept as token files under a checksum of all that they depend on.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "token/tokenizer.hpp"

namespace zs::token {

/// The token file of one part of a data set.
struct Tokenized {
  std::string name;  ///< as Division has it: "train", "val", "test", or "" for all
  std::string path;
};

/// Token files of the text at `path`, a file or a folder as divisions() reads it, with the end of text behind each
/// document; `text_key` as DocumentReader has it: those that `folder` holds, or new ones there. Their names are
/// checksums of the bytes of the texts and of the tokenizer's files, so that what has changed is tokenised anew. Of
/// processes that want the same at once one makes it; a file appears whole. `left_out` gets what divisions() leaves
/// out. Throws Error as open_tokenizer(), tokenize() and TokenWriter do, and where the tokenizer names no end of text.
std::vector<Tokenized> tokenized(const std::string& path, const std::string& tokenizer, const std::string& folder,
                                 int threads, std::vector<std::string>& left_out, const std::string& text_key = "");

/// How the token file of a part is made of its files.
struct Making {
  std::string base;                       ///< stands for how
  std::vector<std::string> depends_on{};  ///< files beside the texts and the tokenizer's
  std::function<void(const std::vector<std::string>& files, const Tokenizer& tokenizer, const std::string& path)> make;
};
/// As tokenized(), made in another way.
std::vector<Tokenized> cached(const std::string& path, const std::string& tokenizer, const std::string& folder,
                              const Making& making, std::vector<std::string>& left_out);
/// The day, as the clock of this machine has it: "2026-11-23".
std::string today();

/// $ZS_CACHE/tokens, else zs/tokens in $XDG_CACHE_HOME, else in ~/.cache. Throws Error where none of them is set.
std::string token_cache();

}  // namespace zs::token
