// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

#ifndef ZS_VERSION
#define ZS_VERSION "unknown"
#endif

namespace zs::cli {

const char* version() { return ZS_VERSION; }

}  // namespace zs::cli
