// SPDX-License-Identifier: Apache-2.0
// Compiled with -ffp-contract=off: whether products are fused must not depend on the machine.
#include "zero/norm.hpp"

#include <array>
#include <cstring>

namespace zs::zero {

double sum_of_squares(const float* values, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane)
    lanes[static_cast<std::size_t>(lane)] += static_cast<double>(values[i]) * values[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

double sum_of_squares(comm::Group& group, const std::vector<Shard>& shards, bool replicated) {
  const std::int64_t own_tiles = replicated ? kTiles : kTiles / group.size();
  const std::int64_t first_tile = replicated ? 0 : own_tiles * group.rank();
  std::vector<double> tiles;
  for (const Shard& shard : shards) {
    for (std::int64_t tile = first_tile; tile < first_tile + own_tiles; ++tile) {
      const comm::Slice slice = comm::slice(shard.numel, tile, kTiles);
      tiles.push_back(sum_of_squares(shard.values + (slice.begin - shard.slice.begin), slice.size()));
    }
  }
  std::vector<std::string> parts;
  const std::string mine(reinterpret_cast<const char*>(tiles.data()), tiles.size() * sizeof(double));
  if (replicated)
    parts.push_back(mine);
  else
    parts = group.exchange(mine, "all-gather of the gradient norm's tiles");

  double sum = 0;
  for (std::size_t unit = 0; unit < shards.size(); ++unit) {
    for (const std::string& part : parts) {
      for (std::int64_t tile = 0; tile < own_tiles; ++tile) {
        double value = 0;
        std::memcpy(&value,
                    part.data() + (static_cast<std::int64_t>(unit) * own_tiles + tile) *
                                      static_cast<std::int64_t>(sizeof(double)),
                    sizeof(double));
        sum += value;
      }
    }
  }
  return sum;
}

}  // namespace zs::zero
