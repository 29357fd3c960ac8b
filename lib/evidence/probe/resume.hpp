// SPDX-License-Identifier: Apache-2.0
// Checks the state with which a resumed training begins.
#pragma once
#include <cstdint>
#include <optional>

#include "probe/diagnosis.hpp"

namespace zs::probe {

/// Checks that a resumed training begins with its saved state; reports the first side that does not.
std::optional<Finding> resumed_apart(std::int64_t number, const Run& a, const Run& b);

}  // namespace zs::probe
