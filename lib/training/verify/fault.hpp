// SPDX-License-Identifier: Apache-2.0
// A fault injected into the target, to test the checker.
#pragma once
#include <cstdint>
#include <string>

#include "setup/settings.hpp"
#include "zero/engine.hpp"

namespace zs::verify {

/// A flipped lowest bit of one element of a gradient sum, after reduction and before clipping; or damage by a disk to
/// an offloaded unit; or a wrong scale of a quantized unit; or a wrong number in the output of a unit's forward; or
/// numbers of queries in each other's place, of a unit whose heads ranks or chunks share.
struct InjectedFault {
  enum class Kind { bit, stale, swapped, torn, scale, output, heads };
  Kind kind = Kind::bit;
  std::int64_t step = 0;
  int unit = -1;
  std::int64_t element = 0;  ///< within the unit's flat buffer
  int rank = -1;             ///< only this rank's copy; -1: the rank that holds the element, or every rank

  /// For a bit, when gradients are reduced; for a disk or a scale, before the step. For an output see changed().
  void apply(zero::Engine& engine, int rank) const;
  /// The output of a unit's forward with its first element a hundredth off; differentiable.
  static at::Tensor changed(const at::Tensor& output);
};

/// Parses "STEP:PARAMETER:INDEX[:RANK]", or "STEP:KIND:UNIT[:RANK]" for the other kinds. Throws UsageError if it is
/// malformed or out of range, if the kind is impossible with the settings, and at an unknown parameter or unit, with
/// the nearest names.
InjectedFault read_fault(const std::string& text, const unit::Units& units, std::int64_t steps, int ranks,
                         const setup::Settings& settings);

}  // namespace zs::verify
