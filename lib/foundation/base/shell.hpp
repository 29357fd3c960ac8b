// SPDX-License-Identifier: Apache-2.0
// Words for a shell.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs {

/// `words` as one line that a shell reads back as the same words.
std::string shell_quoted(const std::vector<std::string>& words);

/// The words of `line` as a shell would read them: blanks between, quotes and backslashes as there; nothing is
/// expanded. Throws Error at a quote without its match.
std::vector<std::string> shell_words(std::string_view line);

}  // namespace zs
