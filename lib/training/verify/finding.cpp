// SPDX-License-Identifier: Apache-2.0
#include "verify/finding.hpp"

#include <array>
#include <tuple>

namespace zs::verify {

const char* name(Phase phase) {
  static constexpr std::array kNames = {
      "initialisation",     "gather",   "forward",   "backward", "local accumulation", "cross-rank reduction",
      "local accumulation", "clipping", "optimizer", "gather"};
  return kNames[static_cast<std::size_t>(phase)];
}

Phase last_of_gradient(const plan::Shape& shape) {
  return shape.divided().gradients && shape.micro_steps > 1 ? Phase::shard_accumulation : Phase::reduction;
}

const char* name(What what) {
  static constexpr std::array kNames = {"loss",       "gradient",  "norm",  "norm after clipping",
                                        "loss scale", "parameter", "output"};
  return kNames[static_cast<std::size_t>(what)];
}

bool Finding::before(const Finding& other) const {
  if (!found || !other.found) return found;
  return std::tuple(phase, order, rank) < std::tuple(other.phase, other.order, other.rank);
}

}  // namespace zs::verify
