// SPDX-License-Identifier: Apache-2.0
// A fault put into the target on purpose, to see the checker find it.
#pragma once
#include <cstdint>
#include <string>

#include "zero/engine.hpp"

namespace zs::verify {

/// The lowest bit of one element of a gradient sum, flipped after reduction and before clipping.
struct InjectedFault {
  std::int64_t step = 0;
  int unit = -1;
  std::int64_t element = 0;  ///< within the unit's flat buffer
  int rank = -1;             ///< only this rank's copy; -1: whoever holds the element

  void apply(zero::Engine& engine, int rank) const;
};

/// Reads "STEP:PARAMETER:INDEX[:RANK]". Throws UsageError at what is malformed or out of range, and at an unknown
/// parameter, with the nearest names.
InjectedFault read_fault(const std::string& text, const unit::Units& units, std::int64_t steps, int ranks, int stage);

}  // namespace zs::verify
