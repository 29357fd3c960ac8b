// SPDX-License-Identifier: Apache-2.0
// Gzip, written as a stream.
#pragma once
#include <string>

namespace zs {

/// Writes the content of the file `from` to the file `to`, compressed, whole or not at all. Throws Error.
void gzip(const std::string& from, const std::string& to);

}  // namespace zs
