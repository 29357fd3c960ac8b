// SPDX-License-Identifier: Apache-2.0
// Buffers that collectives move: taken from the group once, kept by size, and lent to units as they come and go.
#pragma once
#include <map>
#include <vector>

#include "comm/group.hpp"

namespace zs::zero {

class Pool {
 public:
  explicit Pool(comm::Group& group) : group_(group) {}

  /// A buffer of `bytes`, not initialised, which its last owner gives back (the pool must outlive it). COLLECTIVE:
  /// every rank takes and gives back the same sizes in the same order, as one plan makes them do.
  device::Buffer take(std::int64_t bytes);
  comm::Group& group() const { return group_; }
  device::Buffer take(device::Type type, std::int64_t count) { return take(count * device::size(type)); }
  /// All that was taken from the group: nothing goes back before the pool does, so this is the peak as well.
  std::int64_t bytes() const { return bytes_; }

 private:
  comm::Group& group_;
  std::int64_t bytes_ = 0;
  std::map<std::int64_t, std::vector<device::Buffer>> free_;
};

}  // namespace zs::zero
