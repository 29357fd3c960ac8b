// SPDX-License-Identifier: Apache-2.0
// Gzip compression of files.
#pragma once
#include <string>

namespace zs {

/// Compresses the file `from` into the file `to`, which appears whole or not at all. Throws Error.
void gzip(const std::string& from, const std::string& to);

}  // namespace zs
