// SPDX-License-Identifier: Apache-2.0
// Quantization to integers of 8 or 4 bits for collectives, as in ZeRO++: the rounding is the same on every number of
// ranks, because blocks never cross a tile.
//
//   numbers of a unit   | tile 0          | tile 1          | ... kTiles tiles: slices of all of them
//                       | block | block | | block | block | | blocks of kBlock numbers, the last one of a tile shorter
//   bytes that are sent | scales | codes  | scales | codes  | the same number for every tile
//
// A block's scale is its largest magnitude / the largest code (127 or 7), float32; a code is the nearest integer to
// number / scale, ties to even; decoding gives code * scale. A block with a number that is not finite decodes to NaN.
#pragma once
#include "comm/group.hpp"

namespace zs::comm {

class Codec {
 public:
  static constexpr std::int64_t kBlock = 128;

  /// For units of n numbers. REQUIRES: bits is 8 or 4.
  Codec(int bits, std::int64_t n);

  /// Bytes of the whole unit; a rank's slice of them encodes its numbers, if a power of two of ranks share it.
  std::int64_t bytes() const { return kTiles * tile_bytes_; }
  /// Converts numbers to bytes of the tiles [tiles.begin, tiles.end), and back. The numbers may have any type.
  void encode(const device::View& numbers, Slice tiles, const device::View& bytes) const;
  void decode(const device::View& bytes, Slice tiles, const device::View& numbers) const;
  /// The tiles of a rank.
  static Slice tiles(std::int64_t rank, std::int64_t ranks) { return slice(kTiles, rank, ranks); }

  /// The largest possible error of each decoded number, computed only from the numbers: float32, 0 for those not
  /// finite. Includes the rounding of a sum of up to kTiles of them.
  void bound(const device::View& numbers, Slice tiles, const device::View& bounds) const;

 private:
  int bits_;
  std::int64_t n_, widest_, blocks_, tile_bytes_;  // of a tile: most numbers, blocks, bytes
};

}  // namespace zs::comm
