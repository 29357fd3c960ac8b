// SPDX-License-Identifier: Apache-2.0
// Runs gnuplot on a script and returns the picture.
#pragma once
#include <string>

namespace zs::figure {

/// The bytes of the picture that `script` draws on its stdout. Throws Error if gnuplot is not installed (naming the
/// package), if it fails (with its message), or if it draws nothing. Leaves nothing on disk.
std::string run_gnuplot(const std::string& script);

}  // namespace zs::figure
