// SPDX-License-Identifier: Apache-2.0
// The global gradient norm, summed so that its bits depend on neither rank count nor stage: each unit is cut into
// kTiles tiles; each tile is summed alone in double, and the tiles are added in index order. Tiles' borders are shard
// borders for every rank count that divides kTiles. Elsewhere ranks share a tile: the first adds its squares to the
// tile's lanes (device/arithmetic.hpp) and passes those on, 2 KiB a unit, and the last has the sum.
#pragma once
#include <vector>

#include "comm/group.hpp"

namespace zs::zero {

/// Tiles a unit.
using comm::kTiles;

/// One unit's reduced gradient on this rank: elements [slice.begin, slice.end) of numel.
struct Shard {
  device::View values;
  comm::Slice slice;
  std::int64_t numel = 0;
};

/// The sum of squares over all units and ranks in double, equal bits everywhere; NaN and infinity propagate. With
/// `replicated` every rank has whole gradients and nothing is exchanged. The slices follow the ranks' order, or, where
/// `among` consecutive ranks divide a unit: the first rank's of each such set, then the second's, and so on.
/// COLLECTIVE.
double sum_of_squares(comm::Group& group, const std::vector<Shard>& shards, bool replicated, int among = 1);

}  // namespace zs::zero
