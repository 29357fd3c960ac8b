// SPDX-License-Identifier: Apache-2.0
// Buffers that collectives move, lent to units as they come and go: a host's are taken once, and kept by size.
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
  /// The most that was lent of each size, together: on a host all that was taken, as nothing goes back before the pool.
  std::int64_t bytes() const { return bytes_; }

 private:
  comm::Group& group_;
  std::int64_t bytes_ = 0;
  std::map<std::int64_t, std::vector<device::Buffer>> free_;
};

}  // namespace zs::zero
