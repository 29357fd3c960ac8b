// SPDX-License-Identifier: Apache-2.0
// Words for a shell.
#pragma once
#include <string>
#include <vector>

namespace zs {

/// `words` as one line that a shell reads back as the same words.
std::string shell_quoted(const std::vector<std::string>& words);

}  // namespace zs
