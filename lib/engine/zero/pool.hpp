// SPDX-License-Identifier: Apache-2.0
// Reusable buffers for collectives: on a host they are allocated once, and kept by size.
#pragma once
#include <map>
#include <vector>

#include "comm/group.hpp"

namespace zs::zero {

class Pool {
 public:
  explicit Pool(comm::Group& group) : group_(group) {}

  /// A buffer of `bytes`, uninitialised; its last owner returns it (the pool must outlive it). COLLECTIVE: every rank
  /// takes and returns the same sizes in the same order, since all run one plan.
  device::Buffer take(std::int64_t bytes);
  comm::Group& group() const { return group_; }
  device::Buffer take(device::Type type, std::int64_t count) { return take(count * device::size(type)); }
  /// The sum of the peaks of each size: on a host everything allocated, as nothing is freed before the pool.
  std::int64_t bytes() const { return bytes_; }

 private:
  comm::Group& group_;
  std::int64_t bytes_ = 0;
  std::map<std::int64_t, std::vector<device::Buffer>> free_;
};

}  // namespace zs::zero
