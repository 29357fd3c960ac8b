// SPDX-License-Identifier: Apache-2.0
// The gradient of one unit's trained parameters, numel elements, from backward to the update. Its memory in each state:
//
//   none ----------> leaf ----------> reducing ----------> shard ----------> gathering ----------> whole
//        backward    numel elements   start_reduce         this rank's       start_gather          numel, summed
//                    in the layout's                       slice, summed                           over ranks
//                    type                                  over ranks
//
// accumulate() adds the leaf (stages 0 and 1) or the shard (2 and 3) to the sum over micro-steps, float32 in the
// canonical tree, and goes back to none; after the last micro-step the sum takes the place of the leaf or shard. The
// plan decides the order. If the leaves of a rank, or of one micro-step, do not form one subtree, the buffer holds one
// partial sum for each subtree. If a micro-step has several chunks, each is a leaf until join() adds them up to the
// sums of their subtrees. A leaf of 16 bits keeps its type until it is added, here or by the rank that receives it. If
// leaves are sent as integers, each is rounded once, also on one rank: the sum does not depend on the ranks.
#pragma once
#include <optional>
#include <vector>

#include "comm/codec.hpp"
#include "device/tree.hpp"
#include "zero/layout.hpp"
#include "zero/pool.hpp"

namespace zs::zero {

class Gradient {
 public:
  enum class State { none, leaf, reducing, shard, gathering, whole };

  Gradient(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout);

  State state() const { return state_; }
  /// none -> leaf: the memory of the gradients of `chunks` leaves, zeros if it was none. Each leaf is a list of tensors
  /// in the unit's order, in one storage, and autograd adds into them; the tensors of frozen parameters are undefined.
  /// REQUIRES: none or leaf, not joined.
  std::vector<std::vector<at::Tensor>> leaf(int chunks);
  /// All gradients of the leaves are there, of which `first` is the first: several of them become sums.
  void join(const plan::Shape& shape, std::int64_t first);
  /// leaf or shard -> none, and the same again at this rank's last micro-step.
  void accumulate(const plan::Shape& shape, int micro);
  /// leaf, or none on a rank that has none -> reducing -> shard: of a micro-step, or of the whole step (micro -1).
  /// COLLECTIVE.
  void start_reduce(const plan::Shape& shape, int micro);
  /// With `self_test` throws zs::Error where leaves travel as integers, and their sum differs from the exact one by
  /// more than rounding to them may; it names unit and element.
  void finish_reduce(bool self_test = false);
  /// shard -> gathering -> whole. COLLECTIVE.
  void start_gather();
  void finish_gather();
  /// Any -> none: drops the sum over micro-steps too.
  void drop();

  /// The present value: numel elements, or the slice's in state shard; of several sums all, one after another in state
  /// shard, the first in state leaf. REQUIRES: leaf, shard or whole.
  const device::View& value() const { return value_; }
  /// The partial sums, each of all its elements, or value().
  std::vector<device::View> parts() const;
  /// The value as float32 on the host: a copy, or a tensor over its memory; empty for a unit that is frozen whole.
  /// Several sums are joined, the last two first.
  at::Tensor on_host() const;
  /// The gradient summed over all leaves, whole, on the host. REQUIRES: shard or whole. COLLECTIVE.
  at::Tensor gather();
  /// Flips the lowest bit of one element of the sum, by its index in the unit, if it is on this rank.
  void flip_bit(std::int64_t element);

 private:
  const unit::Unit* unit_;
  comm::Group* group_;
  Pool* pool_;
  Layout layout_;
  State state_ = State::none;
  device::View value_;
  device::Buffer memory_;   // of value_, unless that is the tree's sum
  device::Buffer reduced_;  // output of a reduction, unless it is in place
  device::Buffer whole_;    // output of a gather, if only the shard was there
  std::optional<device::TreeAccumulator> tree_;
  std::vector<device::Buffer> chunks_;             // of the leaves of a micro-step, where it has several
  std::optional<device::TreeAccumulator> joined_;  // of them
  bool added_ = false;                             // value_ is the first sum of the tree
  std::vector<tree::Leaves> sums_;                 // of value_, in state shard
  comm::Work work_;
  std::optional<comm::Codec> codec_;   // of leaves that travel as integers
  device::Buffer encoded_, received_;  // this rank's leaf, and its slice of all ranks' leaves
  device::View leaf_;                  // the exact one, while it travels

  void require(bool holds, const char* call) const;
  void start_encoded_reduce();
  void add_encoded();
  device::View take(device::Buffer& memory, device::Type type, std::int64_t count);
};

}  // namespace zs::zero
