// SPDX-License-Identifier: Apache-2.0
// How a unit's flat buffer of numel elements is divided among the ranks: the one place where a ZeRO stage becomes
// memory.
//
//   stage           0        1        2        3
//   master, m, v    whole    slice    slice    slice     fp32: what this rank owns, and updates
//   gradient        whole    whole    slice    slice     between the micro-steps
//   parameters      whole    whole    whole    slice     between their uses
#pragma once
#include "comm/group.hpp"
#include "plan/plan.hpp"
#include "unit/unit.hpp"

namespace zs::zero {

/// Of ZeRO++, as DeepSpeed has them.
inline constexpr int kWeightBits = 8, kGradientBits = 4;

struct Layout {
  std::int64_t numel = 0;
  comm::Slice slice;                          ///< this rank's share
  comm::Slice owned;                          ///< all of it in stage 0, else the slice
  bool owns_all = true;                       ///< and so does every rank
  bool shards_gradient = false;               ///< it is whole only in a micro-step
  bool shards_parameters = false;             ///< they are whole only between gather and release
  device::Type type = device::Type::float32;  ///< of parameters in forward and backward
  int weight_bits = 0, gradient_bits = 0;     ///< of integers as which they travel; 0: as they are
};

/// Where shards of stage 3 move, are partitioned twice or travel as integers, parameters come and go on one rank too.
inline Layout layout(const unit::Unit& unit, const comm::Group& group, const plan::Shape& shape, device::Type type,
                     bool shards_move = false) {
  const std::int64_t n = unit.numel();
  const int stage = shape.stage;
  const comm::Slice slice = comm::slice(n, group.rank(), group.size());
  const bool many = group.size() > 1;
  return {n,
          slice,
          stage == 0 ? comm::Slice{0, n} : slice,
          stage == 0 || !many,
          stage >= 2 && many,
          stage == 3 && (many || shards_move || shape.quantized_weights || shape.secondary > 0),
          type,
          shape.quantized_weights ? kWeightBits : 0,
          shape.quantized_gradients ? kGradientBits : 0};
}

/// The whole of what each rank has its slice of, on the host; `mine` is its slice or, on every rank, already the whole.
/// COLLECTIVE.
at::Tensor gather(comm::Group& group, const device::View& mine, std::int64_t numel, const std::string& what);

}  // namespace zs::zero
