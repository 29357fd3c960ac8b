// SPDX-License-Identifier: Apache-2.0
// The layout of a unit's flat buffer of numel elements on this rank: which state is whole and which a slice, by
// plan/layout.hpp, and the elements of the slice. This rank owns and updates its slice of the optimizer state (master,
// m, v).
//
//   0                       trained                 dense          numel
//   | what is trained       | what is frozen        | in 4 bits    |
//   |    [ slice )          |       [ frozen )      |    a rank's share of each; of what is in 4 bits: zero/packed.hpp
//
// Gradients, optimizer state and updates only use the first part. If parameters are divided, a rank keeps both slices,
// concatenated, and a gather collects both.
#pragma once
#include <vector>

#include "comm/group.hpp"
#include "plan/plan.hpp"
#include "unit/unit.hpp"

namespace zs::zero {

/// The bits of ZeRO++, as in DeepSpeed.
inline constexpr int kWeightBits = 8, kGradientBits = 4;

struct Layout {
  std::int64_t numel = 0, trained = 0;        ///< elements; trained elements
  comm::Slice slice;                          ///< this rank's share of the trained elements
  comm::Slice frozen;                         ///< the same of the frozen elements
  comm::Slice owned;                          ///< the slice, or all that is trained if every rank owns it
  plan::Division divided{};                   ///< which state is a slice in memory
  device::Type type = device::Type::float32;  ///< of parameters in forward and backward
  int weight_bits = 0, gradient_bits = 0;     ///< of quantized collectives; 0: none
  bool float8_gathers = false;                ///< weights of products of 8 bits travel as these
  std::int64_t packed = 0;                    ///< the last elements, frozen: held in 4 bits
  int chunks = 1;                             ///< of a micro-batch on this rank, each a leaf of the sum of gradients
  /// Elements that are not held in 4 bits.
  std::int64_t dense() const { return numel - packed; }
  /// Elements of both slices.
  std::int64_t shard() const { return slice.size() + frozen.size(); }
  /// The dense parameters that this rank keeps: its slices, or all.
  std::vector<comm::Slice> kept() const {
    return divided.parameters ? std::vector{slice, frozen} : std::vector{comm::Slice{0, dense()}};
  }
  std::int64_t kept_numel() const { return divided.parameters ? shard() : dense(); }
};

/// REQUIRES: the group has the shape's ranks.
inline Layout layout(const unit::Unit& unit, const comm::Group& group, const plan::Shape& shape, device::Type type,
                     bool shards_move = false) {
  const std::int64_t n = unit.numel(), trained = unit.trained();
  const comm::Slice slice = comm::slice(trained, group.rank(), group.size());
  const comm::Slice frozen = comm::slice(n - unit.packed() - trained, group.rank(), group.size());
  const plan::Division divided = plan::divided_in_memory(shape, shards_move);
  return {n,
          trained,
          slice,
          {trained + frozen.begin, trained + frozen.end},
          divided.optimizer_state ? slice : comm::Slice{0, trained},
          divided,
          type,
          shape.quantized_weights ? kWeightBits : 0,
          shape.quantized_gradients ? kGradientBits : 0,
          shape.float8_gathers,
          unit.packed(),
          shape.chunks_of_rank()};
}

/// Gathers the slices of all ranks, on the group's device; `mine` is the slice or, on every rank, already the whole.
/// COLLECTIVE.
at::Tensor gather(comm::Group& group, const device::View& mine, std::int64_t numel, const std::string& what);

}  // namespace zs::zero
