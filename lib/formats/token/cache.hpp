// SPDX-License-Identifier: Apache-2.0
// A cache of tokenized text: token files named by a checksum of everything that they depend on.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "token/tokenizer.hpp"

namespace zs::token {

/// The token file of one part of a data set.
struct Tokenized {
  std::string name;  ///< the division: "train", "val", "test", or "" for all
  std::string path;
};

/// The token files of the text at `path`, a file or a folder as divisions() reads it, with the end-of-text token after
/// each document; `text_key` as in DocumentReader. Uses the files in `folder`, or creates them there. Their names are
/// checksums of the texts and of the tokenizer's files, so that changed text is tokenized again. If several processes
/// want the same file, one creates it; a file appears whole. `left_out` gets the files that divisions() leaves out.
/// Throws Error as open_tokenizer(), tokenize() and TokenWriter do, and if the tokenizer has no end-of-text token.
std::vector<Tokenized> tokenized(const std::string& path, const std::string& tokenizer, const std::string& folder,
                                 int threads, std::vector<std::string>& left_out, const std::string& text_key = "");

/// How the token file of a part is created.
struct Making {
  std::string base;                       ///< identifies the method
  std::vector<std::string> depends_on{};  ///< files besides the texts and the tokenizer's
  std::function<void(const std::vector<std::string>& files, const Tokenizer& tokenizer, const std::string& path)> make;
};
/// Like tokenized(), with another method.
std::vector<Tokenized> cached(const std::string& path, const std::string& tokenizer, const std::string& folder,
                              const Making& making, std::vector<std::string>& left_out);
/// The local date: "2026-11-23".
std::string today();

/// $ZS_CACHE/tokens, else zs/tokens in $XDG_CACHE_HOME, else in ~/.cache. Throws Error if none of them is set.
std::string token_cache();

}  // namespace zs::token
