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

/// Passes the ids of each line of a file ("-": stdin) to `sink`. Throws Error with file and line at anything but an id
/// below `vocabulary`.
void read_ids(const std::string& path, Id vocabulary, const std::function<void(const std::vector<Id>&)>& sink);

/// Passes the ids of each document of a token file to `sink`, with the separator. Without a separator all ids are one
/// document.
void read_documents(const TokenFile& file, std::optional<Id> separator,
                    const std::function<void(const std::vector<Id>&)>& sink);

}  // namespace zs::token
