// SPDX-License-Identifier: Apache-2.0
// Sequences that ranks share: each has some chunks of every sequence, and for attention the same number of blocks.
//
//   forward    chunks of all heads  --all-to-all-->  blocks of all tokens, attended  --all-to-all-->  chunks
//   backward   the same two, with gradients, the other way round
#pragma once
#include <cstdint>

#include "comm/group.hpp"
#include "unit/sequence.hpp"

namespace zs::zero {

class SharedSequence final : public unit::Sequence {
 public:
  /// Each rank of the group has `chunks` chunks, in the order of the ranks. The group outlives it.
  SharedSequence(comm::Group& group, int chunks) : group_(&group), own_(chunks) {}

  std::int64_t chunks() const override { return std::int64_t{own_} * group_->size(); }
  std::vector<at::Tensor> attend(const std::vector<std::vector<at::Tensor>>& parts, std::span<const std::int64_t> heads,
                                 const Attend& attend) const override;
  std::vector<at::Tensor> of_all(const std::vector<at::Tensor>& local) const override;

  /// For tests: the halves of the first block's queries come in each other's place, in attention number `call` from now
  /// on, counted from 0.
  void plant_swap(int call) const { swaps_ = call; }

  /// Chunk by chunk part by part [B, T/C, heads[p] * D], to block by block part by part [B, T, heads of a block * D].
  std::vector<at::Tensor> to_blocks(const std::vector<at::Tensor>& chunks, std::span<const std::int64_t> heads) const;
  /// And back: what several blocks have of a head is added up, the last block's first.
  std::vector<at::Tensor> to_chunks(const std::vector<at::Tensor>& blocks, std::span<const std::int64_t> heads) const;

 private:
  comm::Group* group_;
  int own_;
  mutable int swaps_ = -1;
  mutable device::Buffer sent_, received_;  // kept for the next

  std::size_t own() const { return static_cast<std::size_t>(own_); }
  /// Memory for `count` numbers of each rank but this one, in `buffer`.
  std::vector<device::View> regions(device::Buffer& buffer, std::int64_t count, device::Type type) const;
};

}  // namespace zs::zero
