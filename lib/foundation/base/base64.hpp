// SPDX-License-Identifier: Apache-2.0
// Base64 of RFC 4648, section 4: with padding, without line breaks.
#pragma once
#include <string>
#include <string_view>

namespace zs {

std::string to_base64(std::string_view bytes);

/// The decoded bytes. Throws zs::Error if `text` is not base64.
std::string from_base64(std::string_view text);

}  // namespace zs
