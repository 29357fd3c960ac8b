// SPDX-License-Identifier: Apache-2.0
// How names and texts are written where some bytes have a meaning: in the text form, and as HDF5 names.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace zs::metric {

/// `text` as a field of the text form: \t \n \r \\ for tab, newline, carriage return, backslash; \# for a '#' in front;
/// \xNN for the bytes of other control characters (base/text.hpp) and those that are not UTF-8, so that the text steers
/// no terminal.
std::string escaped(std::string_view text);

/// As escaped(), also \s for a blank and \= for '=': for names in "#@" and "#:" lines.
std::string escaped_name(std::string_view text);

/// What escaped() or escaped_name() was given; nothing at an escape that neither writes.
std::optional<std::string> unescaped(std::string_view text);

/// `name` as an HDF5 link: '/', '%', NUL, and names that are "" or ".", as %XX.
std::string link_name(std::string_view name);

/// What link_name() was given. A '%' that begins no escape stays.
std::string unlink_name(std::string_view link);

}  // namespace zs::metric
