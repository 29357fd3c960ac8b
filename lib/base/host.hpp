// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace zs {

/// This machine's name, as gethostname(2) has it; "" if it has none.
std::string host_name();

}  // namespace zs
