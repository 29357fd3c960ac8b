// SPDX-License-Identifier: Apache-2.0
// Quoting and splitting of shell words.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs {

/// `words` as one line that a shell splits into the same words.
std::string shell_quoted(const std::vector<std::string>& words);

/// The words of `line`, split as by a shell, with its quotes and backslashes; nothing is expanded. Throws Error at an
/// unmatched quote.
std::vector<std::string> shell_words(std::string_view line);

}  // namespace zs
