// SPDX-License-Identifier: Apache-2.0
#include "plan/stage.hpp"

#include "plan/plan.hpp"

namespace zs::plan {

Division divided_in_memory(const Shape& shape, bool shards_move) {
  const Division stage = shape.divided();
  const bool several = shape.ranks > 1;
  const bool come_and_go = several || shards_move || shape.quantized_weights || shape.secondary > 0;
  return {stage.optimizer_state && several, stage.gradients && several, stage.parameters && come_and_go};
}

}  // namespace zs::plan
