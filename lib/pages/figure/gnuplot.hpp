// SPDX-License-Identifier: Apache-2.0
// gnuplot, the program: runs a script and gives back the picture.
#pragma once
#include <string>

namespace zs::figure {

/// The bytes of the picture that `script` draws on its stdout. Throws Error if gnuplot is not installed (naming
/// the package), if it fails (with its own words), or if it draws nothing. Nothing remains on disk.
std::string run_gnuplot(const std::string& script);

}  // namespace zs::figure
