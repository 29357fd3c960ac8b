// SPDX-License-Identifier: Apache-2.0
// Escapes names and texts in the text form and in HDF5 names.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace zs::metric {

/// `text` as a field of the text form: \t \n \r \\ for tab, newline, carriage return, backslash; \# for a leading '#';
/// \xNN for the bytes of other control characters (base/text.hpp) and for invalid UTF-8, so that the text cannot
/// control a terminal.
std::string escaped(std::string_view text);

/// Like escaped(), with \s for a blank and \= for '=' too: for names in "#@" and "#:" lines.
std::string escaped_name(std::string_view text);

/// The original of escaped() or escaped_name(); nothing at an unknown escape.
std::optional<std::string> unescaped(std::string_view text);

/// `name` as an HDF5 link: '/', '%', NUL, and the names "" and "." become %XX.
std::string link_name(std::string_view name);

/// The original of link_name(). A '%' that begins no escape stays.
std::string unlink_name(std::string_view link);

}  // namespace zs::metric
