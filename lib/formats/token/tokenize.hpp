// SPDX-License-Identifier: Apache-2.0
// Tokenizes files in batches that fit into memory.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "token/file.hpp"
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

// Work divided into pieces, shared by threads.

/// Calls `worker` in each of `threads` threads (fewer if there are fewer pieces); it takes numbers below `pieces` from
/// `take` until `take` returns false. An exception of a worker stops the work and is rethrown here.
using Take = std::function<bool(std::size_t&)>;
void share(std::size_t pieces, int threads, const std::function<void(const Take& take)>& worker);

// Ids as text, and the documents of a token file.

/// "1 2 3\n".
std::string ids_text(const std::vector<Id>& ids);

/// Passes the ids of each line of a file ("-": stdin) to `sink`. Throws Error with file and line at anything but an id
/// below `vocabulary`.
void read_ids(const std::string& path, Id vocabulary, const std::function<void(const std::vector<Id>&)>& sink);

/// Passes the ids of each document of a token file to `sink`, with the separator. Without a separator all ids are one
/// document.
void read_documents(const TokenFile& file, std::optional<Id> separator,
                    const std::function<void(const std::vector<Id>&)>& sink);

}  // namespace zs::token
