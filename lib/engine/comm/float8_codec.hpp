// SPDX-License-Identifier: Apache-2.0
// Sends the weights of 8-bit products to other ranks as the 8 bits that the products use. No result changes: a product
// rounds its weights to q = E4M3(x s), s = 448 / the largest magnitude (current scaling, kernel/cuda_float8.hpp). For x
// the receiver gets q / s in bfloat16, within 2^-8 of it, or the largest magnitude itself if |q| is 448. The product
// then finds the same largest magnitude, and rounds x s to the same q, whose neighbours are 2^-4 of it away. Other
// numbers of the unit are sent unchanged.
//
//   numbers of a unit    | rank 0's slice                | rank 1's ...
//   bytes of a rank      | codes | numbers | codes | ... |, the same number for every rank; the last ones are unused
//
// An infinite or NaN magnitude replaces all numbers that share it. REQUIRES: a magnitude that is not 0 is at least
// 2^-110, below which bfloat16 has fewer bits.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/group.hpp"

namespace zs::comm {

class Float8Codec {
 public:
  /// Numbers [begin, end) of a unit are of weights with scale number `scale`, from 0.
  struct Weights {
    std::int64_t begin = 0, end = 0;
    int scale = 0;
  };

  /// For units of n numbers of bfloat16. REQUIRES: the weights ascend and are apart.
  Float8Codec(std::vector<Weights> weights, std::int64_t n, int ranks);

  int scales() const { return scales_; }
  /// Bytes of the whole unit, of which each rank sends its slice.
  std::int64_t bytes() const { return ranks_ * part_; }
  Slice part(int rank) const { return {rank * part_, (rank + 1) * part_}; }

  /// The largest magnitude of each scale among a rank's slice of the numbers, to float32[scales()].
  void largest(const device::View& mine, int rank, const device::View& most) const;
  /// Converts a rank's slice of the numbers to its part of the bytes, and the bytes of all to all numbers. `most`: the
  /// largest magnitudes of the whole unit.
  void encode(const device::View& mine, int rank, const device::View& most, const device::View& part) const;
  void decode(const device::View& bytes, const device::View& most, const device::View& numbers) const;
  /// All numbers of a unit on the host as they come out.
  at::Tensor travelled(const at::Tensor& numbers) const;

 private:
  /// Adjacent numbers of a slice with the same treatment: they share a scale, or (-1) they are sent unchanged.
  struct Run {
    std::int64_t begin = 0, end = 0;  ///< from the start of the slice
    std::int64_t at = 0;              ///< their first byte in the rank's part
    int scale = -1;
  };
  std::vector<std::vector<Run>> runs_;  // by rank
  std::int64_t n_, part_;
  int ranks_, scales_ = 0;
};

}  // namespace zs::comm
