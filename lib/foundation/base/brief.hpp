// SPDX-License-Identifier: Apache-2.0
// Numbers of tables and sentences.
#pragma once
#include <string>

#include "base/number.hpp"

namespace zs {

/// Like to_rounded_text(), but "0" for 0.
inline std::string to_brief_text(double value, int digits = 3) {
  return value == 0 ? "0" : to_rounded_text(value, digits);
}

}  // namespace zs
