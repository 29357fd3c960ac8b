// SPDX-License-Identifier: Apache-2.0
// A training that still runs beside a finished one: told at its first wrong step, so that it can be stopped there.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "probe/answer.hpp"

namespace zs::comparison {

struct Follow {
  std::string reference;  ///< a probe whose training has ended
  std::string live;       ///< a probe that is written, or will be
  std::string floor{};    ///< or ""
  zs::compare::Tolerance tolerance{};
  double patience = 600;  ///< seconds in which nothing is added before it ends
};

/// Waits for steps of `live` and compares them, until one is wrong, the training has ended, or nothing is added any
/// more, which is said. `told` is called with the number of steps that are equal so far. Throws Error where the
/// reference is no probe with sketches or has no end, or where a record is damaged.
probe::Answer follow(const Follow& request, const std::function<void(std::int64_t)>& told);

}  // namespace zs::comparison
