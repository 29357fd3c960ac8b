// SPDX-License-Identifier: Apache-2.0
// Text from files and from other people, made safe for a terminal.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace zs {

/// Bytes of the first UTF-8 character of `text`; 0 if there is none: an overlong or truncated form, a surrogate, an
/// invalid first byte, an empty text.
std::size_t utf8_size(std::string_view text);

/// Characters (code points) in UTF-8 text.
std::size_t characters(std::string_view text);
/// The first `count` characters of UTF-8 text, or all if it has fewer.
std::string_view first_characters(std::string_view text, std::size_t count);

/// Whether the character (as utf8_size() cut it) controls a terminal instead of being visible: a control character (C0,
/// DEL, C1), a line separator, or a change of the direction of writing.
bool is_control(std::string_view character);

/// `text` as one line that cannot control a terminal: control characters as \n, \t, \x1B or \u202E, invalid UTF-8 bytes
/// as \x9B. Every name or value in a table, a picture or a message goes through this.
std::string printable(std::string_view text);

/// `text` with tab, line feed, carriage return and backslash as \t, \n, \r and \\.
std::string backslashed(std::string_view text);

/// Base64 of RFC 4648, section 4: with padding, without line breaks.
std::string to_base64(std::string_view bytes);
/// The decoded bytes. Throws zs::Error if `text` is not base64.
std::string from_base64(std::string_view text);

}  // namespace zs
