// SPDX-License-Identifier: Apache-2.0
// The state of a shape that its ZeRO stage divides among the ranks (stage/stage.hpp).
#pragma once
#include "stage/stage.hpp"

namespace zs::plan {

struct Shape;

using stage::divided_by;
using stage::Division;
using stage::is_stage;
using stage::kStages;

/// A rank's share of state that is divided among `ranks`, or not.
constexpr double share(double whole, bool divided, double ranks) { return divided ? whole / ranks : whole; }

/// The parts of a shape's model state of which a rank keeps only a slice in memory. On one rank there are none, except
/// parameters that come and go: they are partitioned twice or quantized, or, with `shards_move`, stored at times.
Division divided_in_memory(const Shape& shape, bool shards_move);

}  // namespace zs::plan
