// SPDX-License-Identifier: Apache-2.0
// A fault put into the target on purpose, to see the checker find it.
#pragma once
#include <cstdint>
#include <string>

#include "setup/settings.hpp"
#include "zero/engine.hpp"

namespace zs::verify {

/// The lowest bit of one element of a gradient sum, flipped after reduction and before clipping; or what a disk does to
/// a unit that is offloaded; or a wrong scale of a unit that travels as integers; or another number in what a unit's
/// forward gives.
struct InjectedFault {
  enum class Kind { bit, stale, swapped, torn, scale, output };
  Kind kind = Kind::bit;
  std::int64_t step = 0;
  int unit = -1;
  std::int64_t element = 0;  ///< within the unit's flat buffer
  int rank = -1;             ///< only this rank's copy; -1: whoever holds the element, or every rank

  /// Of a bit, when gradients are reduced; of a disk or a scale, before the step. Of an output see changed().
  void apply(zero::Engine& engine, int rank) const;
  /// What a unit's forward gives, with its first element a hundredth off; differentiable.
  static at::Tensor changed(const at::Tensor& output);
};

/// Reads "STEP:PARAMETER:INDEX[:RANK]", or "STEP:KIND:UNIT[:RANK]" of the other kinds. Throws UsageError at what is
/// malformed or out of range, at a kind for which the settings leave no room, and at an unknown parameter or unit, with
/// the nearest names.
InjectedFault read_fault(const std::string& text, const unit::Units& units, std::int64_t steps, int ranks,
                         const setup::Settings& settings);

}  // namespace zs::verify
