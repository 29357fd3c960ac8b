// SPDX-License-Identifier: Apache-2.0
// Tokenizes files in batches that fit into memory.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "token/tokenizer.hpp"

namespace zs::token {

/// The input, and how to read it.
struct Texts {
  std::vector<std::string> files{};  ///< "-" for stdin
  std::string text_key{};            ///< as in DocumentReader
};

/// Tokenizes every document of the files and passes its ids to `sink`, in order. An Error begins with the file's name.
void tokenize(const Tokenizer& tokenizer, const Texts& texts, int threads,
              const std::function<void(std::vector<Id>& ids)>& sink);

/// The number of processors that this process may use.
int processors();

}  // namespace zs::token
