// SPDX-License-Identifier: Apache-2.0
#include "zero/norm.hpp"

#include <algorithm>

#include "device/operations.hpp"

namespace zs::zero {

namespace {

/// The tiles of numel elements that overlap a slice: [first, last).
struct Tiles {
  Tiles(std::int64_t numel, comm::Slice slice) {
    first = slice.begin * kTiles / std::max<std::int64_t>(numel, 1);  // or the one after, if it ends there
    while (first < kTiles && comm::slice(numel, first, kTiles).end <= slice.begin) ++first;
    last = first;
    while (last < kTiles && comm::slice(numel, last, kTiles).begin < slice.end) ++last;
  }
  std::int64_t first = 0, last = 0;
};

}  // namespace

double sum_of_squares(comm::Group& group, const std::vector<Shard>& shards, bool replicated) {
  std::vector<device::View> values;
  for (const Shard& shard : shards) {
    const Tiles tiles(shard.numel, shard.slice);
    for (std::int64_t i = tiles.first; i < tiles.last; ++i) {
      const comm::Slice tile = comm::slice(shard.numel, i, kTiles);
      const std::int64_t begin = std::max(tile.begin, shard.slice.begin), end = std::min(tile.end, shard.slice.end);
      values.push_back(shard.values.part(begin - shard.slice.begin, end - shard.slice.begin));
    }
  }
  const std::vector<double> sums = device::operations(group.device()).sums_of_squares(values);
  const std::vector<std::vector<double>> parts =
      replicated ? std::vector<std::vector<double>>{sums}
                 : group.all_gather<double>(sums, "all-gather of the gradient norm's tiles");

  double sum = 0;
  std::vector<std::size_t> read(parts.size());  // by rank
  for (const Shard& shard : shards) {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const Tiles tiles(shard.numel, replicated
                                         ? shard.slice
                                         : comm::slice(shard.numel, static_cast<std::int64_t>(rank), group.size()));
      for (std::int64_t i = tiles.first; i < tiles.last; ++i) sum += parts[rank][read[rank]++];
    }
  }
  return sum;
}

}  // namespace zs::zero
