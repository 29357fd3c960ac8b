// SPDX-License-Identifier: Apache-2.0
// Files to ids, in batches that fit into memory.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "token/tokenizer.hpp"

namespace zs::token {

/// What is read how.
struct Texts {
  std::vector<std::string> files{};  ///< "-" for stdin
  std::string text_key{};            ///< as DocumentReader has it
};

/// Tokenises every document of the files and hands its ids to `sink`, in order. Throws Error led by the file's name.
void tokenize(const Tokenizer& tokenizer, const Texts& texts, int threads,
              const std::function<void(std::vector<Id>& ids)>& sink);

/// Processors that this process may use.
int processors();

}  // namespace zs::token
