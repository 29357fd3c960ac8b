// SPDX-License-Identifier: Apache-2.0
// What a training that was stopped and resumed begins with.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "probe/diagnosis.hpp"

namespace zs::probe {

/// A training that resumed begins with what it left; told of the first side that does not.
std::optional<Finding> resumed_apart(std::int64_t number, const Run& a, const Run& b);

/// In the first step after a resume: random generators that go on otherwise than those of the other side make other
/// dropout and other samples. A sentence, or "".
std::string generators_apart(std::int64_t number, const Side& a, const Side& b);

}  // namespace zs::probe
