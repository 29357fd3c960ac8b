// SPDX-License-Identifier: Apache-2.0
// Compares a running training with a finished one, and reports its first wrong step, so that it can be stopped there.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "probe/answer.hpp"

namespace zs::comparison {

struct Follow {
  std::string reference;  ///< a probe whose training has ended; "": the live one is checked alone
  std::string live;       ///< a probe that is being written, or will be; alone it may be a dump of log-probabilities
  std::string floor{};    ///< or ""
  zs::compare::Tolerance tolerance{};
  double patience = 600;  ///< seconds without a new record after which it ends
};

/// Waits for steps of `live` and compares them, until one is wrong, the training has ended, or no record is added any
/// more (reported). Calls `told` with the number of equal steps so far. Throws Error if the reference is no probe or
/// has no end, or if a record is damaged.
probe::Answer follow(const Follow& request, const std::function<void(std::int64_t)>& told);

}  // namespace zs::comparison
