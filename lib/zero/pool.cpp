// SPDX-License-Identifier: Apache-2.0
#include "zero/pool.hpp"

namespace zs::zero {

device::Buffer Pool::take(std::int64_t bytes) {
  auto& free = free_[bytes];
  device::Buffer memory;
  if (free.empty()) {
    memory = group_.allocate(bytes);
    bytes_ += bytes;
  } else {
    memory = std::move(free.back());
    free.pop_back();
  }
  return memory.owned_by({memory.data(), [this, memory](std::byte*) { free_[memory.bytes()].push_back(memory); }});
}

}  // namespace zs::zero
