// SPDX-License-Identifier: Apache-2.0
// Ids as text, and the documents of a token file.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "token/file.hpp"

namespace zs::token {

/// "1 2 3\n".
std::string ids_text(const std::vector<Id>& ids);

/// Hands the ids of each line of a file ("-": stdin) to `sink`. Throws Error with file and line at what is no id below
/// `vocabulary`.
void read_ids(const std::string& path, Id vocabulary, const std::function<void(const std::vector<Id>&)>& sink);

/// Hands the ids of each document of a token file to `sink`, the separator with it. Without a separator all are one
/// document.
void read_documents(const TokenFile& file, std::optional<Id> separator,
                    const std::function<void(const std::vector<Id>&)>& sink);

}  // namespace zs::token
