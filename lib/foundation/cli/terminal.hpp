// SPDX-License-Identifier: Apache-2.0
// The terminal that a tool writes to.
#pragma once
#include <cstddef>

namespace zs::cli {

/// Characters in a line of stdout: of its terminal, 80 where that does not say; elsewhere $COLUMNS; 0 is no limit.
std::size_t line_width();

}  // namespace zs::cli
