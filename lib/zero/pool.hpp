// SPDX-License-Identifier: Apache-2.0
// Buffers that collectives move: taken from the group once, kept by size, and lent to units as they come and go.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "comm/group.hpp"

namespace zs::zero {

/// Memory of a buffer; its last owner gives it back to the pool it came from (the pool must outlive it).
using Buffer = std::shared_ptr<std::byte>;

class Pool {
 public:
  explicit Pool(comm::Group& group) : group_(group) {}

  /// A buffer of at least `bytes`, not initialised. COLLECTIVE: every rank takes and gives back the same sizes in the
  /// same order, as one plan makes them do.
  Buffer take(std::int64_t bytes);
  /// All that was taken from the group: nothing goes back before the pool does, so this is the peak as well.
  std::int64_t bytes() const { return bytes_; }

 private:
  comm::Group& group_;
  std::int64_t bytes_ = 0;
  std::map<std::int64_t, std::vector<std::shared_ptr<std::byte>>> free_;
};

/// The buffer as numbers of type T.
template <typename T>
T* as(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.get());
}

}  // namespace zs::zero
