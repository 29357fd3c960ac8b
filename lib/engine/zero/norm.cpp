// SPDX-License-Identifier: Apache-2.0
#include "zero/norm.hpp"

#include <algorithm>
#include <array>

#include "device/operations.hpp"
#include "device/tensor.hpp"

namespace zs::zero {

namespace {

using comm::Slice;
using Lanes = std::array<double, device::kLanes>;

Slice tile_of(std::int64_t numel, std::int64_t tile) { return comm::slice(numel, tile, kTiles); }

/// The tile that element `at` is in. REQUIRES: at < numel.
std::int64_t tile_at(std::int64_t numel, std::int64_t at) {
  std::int64_t tile = at * kTiles / numel;
  while (tile_of(numel, tile).end <= at) ++tile;
  return tile;
}

/// A unit in slices of ranks.
struct Cuts {
  std::int64_t numel;
  int ranks;

  std::int64_t border(int rank) const { return comm::slice(numel, rank, ranks).begin; }
  /// The begin of the tile that is cut in two in front of a rank; -1 if none is.
  std::int64_t cut(int rank) const {
    if (rank <= 0 || rank >= ranks || border(rank) >= numel) return -1;
    const std::int64_t begin = tile_of(numel, tile_at(numel, border(rank))).begin;
    return begin < border(rank) ? begin : -1;
  }
  /// The number of ranks that have earlier shares of the tile that is cut at this rank; 0 if none is cut.
  int depth(int rank) const {
    int depth = 0;
    for (const std::int64_t begin = cut(rank); begin >= 0 && rank > 0 && cut(rank) == begin; --rank) ++depth;
    return depth;
  }
  /// The most over all ranks.
  int deepest() const {
    int most = 0;
    for (int rank = 1; kTiles % ranks != 0 && rank < ranks; ++rank) most = std::max(most, depth(rank));
    return most;
  }
  /// The tiles that end in a rank's slice and are not empty: it has their sums.
  std::vector<std::int64_t> finished(Slice slice) const {
    std::vector<std::int64_t> tiles;
    if (slice.size() == 0) return tiles;
    for (std::int64_t tile = tile_at(numel, slice.begin); tile < kTiles && tile_of(numel, tile).end <= slice.end;
         ++tile) {
      if (tile_of(numel, tile).size() > 0) tiles.push_back(tile);
    }
    return tiles;
  }
};

/// Continues a tile's lanes over elements [begin, end) of the unit, which the shard has.
void add_squares(Lanes& lanes, const Shard& shard, std::int64_t tile_begin, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  const at::Tensor host =
      device::tensor(shard.values.part(begin - shard.slice.begin, end - shard.slice.begin)).to(at::kCPU).to(at::kFloat);
  const float* value = host.data_ptr<float>();
  for (std::int64_t i = begin; i < end; ++i)
    lanes[static_cast<std::size_t>((i - tile_begin) % device::kLanes)] += device::square(*value++);
}

double sum_of(Lanes lanes) {
  for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

/// Ranks in the order of their slices: the ranks form sets of this many consecutive ranks; first the first rank of each
/// set, then the second of each, and so on.
struct Order {
  int ranks, among;
  int place(int rank) const { return comm::place_of(rank, ranks, among); }
  std::size_t rank(int place) const {
    return static_cast<std::size_t>(place % (ranks / among) * among + place / (ranks / among));
  }
};

/// Partial lane sums of the tile that starts on a lower rank, for each unit. Each rank passes its lanes on to the next
/// rank. COLLECTIVE.
std::vector<Lanes> lanes_before(comm::Group& group, const std::vector<Shard>& shards, const Order& order) {
  std::vector<Lanes> before(shards.size(), Lanes{});
  int deepest = 0;
  for (const Shard& shard : shards) deepest = std::max(deepest, Cuts{shard.numel, group.size()}.deepest());
  const int place = order.place(group.rank()), next = place + 1;
  for (int depth = 1; depth <= deepest; ++depth) {
    std::vector<Lanes> passed;
    for (std::size_t unit = 0; unit < shards.size(); ++unit) {
      const Cuts cuts{shards[unit].numel, group.size()};
      if (cuts.depth(next) != depth) continue;
      const std::int64_t begin = cuts.cut(next);
      passed.push_back(depth == 1 ? Lanes{} : before[unit]);
      add_squares(passed.back(), shards[unit], begin, std::max(begin, shards[unit].slice.begin), cuts.border(next));
    }
    const auto gathered = group.all_gather(std::span<const Lanes>(passed), "exchange of the gradient norm's cut tiles");
    std::size_t read = 0;
    for (std::size_t unit = 0; unit < shards.size(); ++unit) {
      if (Cuts{shards[unit].numel, group.size()}.depth(place) == depth)
        before[unit] = gathered[order.rank(place - 1)].at(read++);
    }
  }
  return before;
}

}  // namespace

double sum_of_squares(comm::Group& group, const std::vector<Shard>& shards, bool replicated, int among) {
  const Order order{group.size(), among};
  const std::vector<Lanes> before = replicated ? std::vector<Lanes>(shards.size()) : lanes_before(group, shards, order);
  const int ranks = replicated ? 1 : group.size();
  std::vector<std::vector<std::int64_t>> tiles;  // that this rank finishes, by unit
  std::vector<std::size_t> counts;               // of those that each rank finishes, by unit, in the order of slices
  std::vector<device::View> values;              // of those that this rank has whole
  for (const Shard& shard : shards) {
    tiles.push_back(Cuts{shard.numel, 1}.finished(shard.slice));
    for (const std::int64_t tile : tiles.back()) {
      const Slice bounds = tile_of(shard.numel, tile);
      if (bounds.begin >= shard.slice.begin)
        values.push_back(shard.values.part(bounds.begin - shard.slice.begin, bounds.end - shard.slice.begin));
    }
    for (int place = 0; place < ranks; ++place) {
      const Slice owned = replicated ? shard.slice : comm::slice(shard.numel, place, ranks);
      counts.push_back(Cuts{shard.numel, 1}.finished(owned).size());
    }
  }
  // From here on a GPU waits. Only the border of a unit's first tile is checked: no other tile can be cut.
  const std::vector<double> whole = device::operations(group.device()).sums_of_squares(values);
  std::vector<double> sums;
  auto next = whole.begin();
  for (std::size_t unit = 0; unit < shards.size(); ++unit) {
    const Shard& shard = shards[unit];
    std::size_t left = tiles[unit].size();
    const Slice bounds = left > 0 ? tile_of(shard.numel, tiles[unit][0]) : shard.slice;
    if (bounds.begin < shard.slice.begin) {
      Lanes lanes = before[unit];
      add_squares(lanes, shard, bounds.begin, shard.slice.begin, bounds.end);
      sums.push_back(sum_of(lanes));
      --left;
    }
    for (; left > 0; --left) sums.push_back(*next++);
  }
  const std::vector<std::vector<double>> parts =
      replicated ? std::vector<std::vector<double>>{sums}
                 : group.all_gather<double>(sums, "all-gather of the gradient norm's tiles");

  double sum = 0;
  std::vector<std::size_t> read(parts.size());  // by rank
  auto count = counts.begin();
  for (std::size_t unit = 0; unit < shards.size(); ++unit) {
    for (std::size_t place = 0; place < parts.size(); ++place) {
      const std::size_t rank = replicated ? 0 : order.rank(static_cast<int>(place));
      for (std::size_t left = *count++; left > 0; --left) sum += parts[rank][read[rank]++];
    }
  }
  return sum;
}

}  // namespace zs::zero
