// SPDX-License-Identifier: Apache-2.0
// Checks the state with which a resumed training begins.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "probe/diagnosis.hpp"

namespace zs::probe {

/// Checks that a resumed training begins with its saved state; reports the first side that does not.
std::optional<Finding> resumed_apart(std::int64_t number, const Run& a, const Run& b);

/// Checks random generators in the first step after a resume: states that differ from the other side's give other
/// dropout and other samples. A sentence, or "".
std::string generators_apart(std::int64_t number, const Side& a, const Side& b);

}  // namespace zs::probe
