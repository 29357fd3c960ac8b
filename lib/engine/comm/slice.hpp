// SPDX-License-Identifier: Apache-2.0
// The part of a tensor that a rank owns.
#pragma once
#include <cstdint>

namespace zs::comm {

/// The elements [begin, end) of n that `rank` of `ranks` owns: balanced to one element, no padding, and nested:
/// a rank of N/2 owns exactly what two neighbours of N own. begin = floor(n * rank / ranks).
struct Slice {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
Slice slice(std::int64_t n, std::int64_t rank, std::int64_t ranks);
/// The index of a rank's slice if each `among` consecutive ranks divide the memory: the slices of the first rank of
/// each such set come first, then the slices of the second.
inline int place_of(int rank, int ranks, int among) { return rank % among * (ranks / among) + rank / among; }

/// Tiles are slices of n by a fixed number. If the number of ranks is a power of two up to it, tiles are nested in the
/// slice of every rank, and results defined by tiles do not depend on the number of ranks. Otherwise ranks share a tile
/// (zero/norm.hpp).
inline constexpr std::int64_t kTiles = 256;

}  // namespace zs::comm
