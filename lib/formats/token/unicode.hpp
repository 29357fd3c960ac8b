// SPDX-License-Identifier: Apache-2.0
// Unicode for tokenizers: UTF-8, and characters that are too new for this machine's PCRE2.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zs::token {

/// `text` if it is UTF-8; else a copy in `room` with U+FFFD for invalid parts, as in Python's
/// bytes.decode(errors="replace"): one for each longest valid prefix of a character, one for each other byte.
std::string_view as_utf8(std::string_view text, std::string& room);

/// `text` in Unicode's normalization form C (UAX #15); a copy in `room` where it was in another.
/// REQUIRES: text is UTF-8.
std::string_view composed(std::string_view text, std::string& room);

/// The first code point of `text`. REQUIRES: text is UTF-8 and not empty.
char32_t front(std::string_view text);

using Range = std::pair<char32_t, char32_t>;

/// The characters of a general category ("Lu") or group of categories ("L") that Unicode 15.0 to 16.0 added. Debian
/// 12's PCRE2 10.42 knows Unicode 14, the Python package tokenizers 0.23 Unicode 16. Never throws: an unknown category
/// is empty.
std::vector<Range> newer(std::string_view category);

/// Unicode's White_Space, which \s matches in Oniguruma and Rust. PCRE2's \s also matches U+180E.
const std::vector<Range>& white_space();

bool is_white_space(char32_t character);

}  // namespace zs::token
