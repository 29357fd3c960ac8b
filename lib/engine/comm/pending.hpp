// SPDX-License-Identifier: Apache-2.0
// A collective under way, and the operands of one.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/slice.hpp"
#include "device/view.hpp"
#include "tree/tree.hpp"

namespace zs::comm {

class Group;

/// A collective under way. It begins behind what the device was given before it, and the memory given to it must stay
/// as it is until wait() has returned.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Completes it for all later work of the device: on a CPU the host waits, on a GPU LibTorch's stream does. Throws
  /// zs::Error, which names the late rank, its host and the collective, after the group's timeout.
  virtual void wait() = 0;
  /// Makes progress without blocking; true once wait() would return at once.
  virtual bool test() = 0;
};
using Work = std::unique_ptr<Pending>;

/// One tensor of an all-gather: `mine` of each rank goes into its slice of `full`.
struct Gathered {
  device::View mine, full;
};

/// The operands of a reduction. Only `terms` differs between ranks: each rank has its own.
struct Summands {
  std::int64_t count = 0;             ///< numbers of a term
  device::Type type{};                ///< of all terms
  tree::Addends addends;              ///< which nodes of the tree each rank brings, and which sums they make up
  std::vector<device::View> terms{};  ///< this rank's: `count` numbers for each of its nodes
};

/// The places of a part of each sum, where `mine` has the whole slice `local` of each.
std::vector<device::View> parts_of_sums(const device::View& mine, std::size_t sums, Slice local, Slice part);

/// Throws zs::Error unless an all-to-all has a part for each rank on both sides, and for this rank itself as much on
/// either.
void require_parts(const Group& group, std::span<const device::View> to, std::span<const device::View> from,
                   const std::string& what);

}  // namespace zs::comm
