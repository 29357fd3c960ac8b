// SPDX-License-Identifier: Apache-2.0
// Text as tokenizers take it: UTF-8, and the characters that this machine's PCRE2 is too old to know.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zs::token {

/// `text` if it is UTF-8; else, made in `room`, a copy in which U+FFFD stands for what is broken, as Python's
/// bytes.decode(errors="replace") has it: one for each longest beginning of a character, one for each other byte.
std::string_view as_utf8(std::string_view text, std::string& room);

/// The code point of the character at the front of `text`. REQUIRES: text is UTF-8 and not empty.
char32_t front(std::string_view text);

using Range = std::pair<char32_t, char32_t>;

/// The characters of a general category ("Lu") or a group of them ("L") that Unicode 15.0 to 16.0 added. Debian 12's
/// PCRE2 10.42 knows Unicode 14, the Python package tokenizers 0.23 Unicode 16. Throws nothing: of an unknown
/// category there are none.
std::vector<Range> newer(std::string_view category);

/// White_Space of Unicode, as \s is for Oniguruma and Rust. PCRE2's \s has U+180E besides.
const std::vector<Range>& white_space();

bool is_white_space(char32_t character);

}  // namespace zs::token
