// SPDX-License-Identifier: Apache-2.0
// Text that comes from files and from other people, as a terminal may have it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace zs {

/// Bytes of the UTF-8 character at the front of `text`; 0 where there is none: an overlong or cut form, a surrogate,
/// a byte that begins nothing, an empty text.
std::size_t utf8_size(std::string_view text);

/// Characters (code points) in UTF-8 text.
std::size_t characters(std::string_view text);
/// The first `count` characters of UTF-8 text, all where it has no more.
std::string_view first_characters(std::string_view text, std::size_t count);

/// Whether the character (as utf8_size() cut it) acts on a terminal instead of being seen: a control character (C0,
/// DEL, C1), a line separator, or one that turns the direction of writing.
bool is_control(std::string_view character);

/// `text` as one line that steers no terminal: control characters as \n, \t, \x1B or \u202E, a byte that is not UTF-8
/// as \x9B. Every name or value that people see in a table, a picture or a message goes through this.
std::string printable(std::string_view text);

/// `text` with tab, line feed, carriage return and backslash as \t, \n, \r and \\.
std::string backslashed(std::string_view text);

}  // namespace zs
