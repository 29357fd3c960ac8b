// SPDX-License-Identifier: Apache-2.0
#include "zero/pool.hpp"

#include "unit/memory.hpp"

namespace zs::zero {

Buffer Pool::take(std::int64_t bytes) {
  auto& free = free_[bytes];
  std::shared_ptr<std::byte> memory;
  if (free.empty()) {
    const std::shared_ptr<std::byte> owned = group_.allocate(bytes);
    bytes_ += bytes;
    unit::memory::count(bytes);  // until the pool goes: a buffer at rest still takes memory
    memory = {owned.get(), [owned, bytes](std::byte*) { unit::memory::count(-bytes); }};
  } else {
    memory = std::move(free.back());
    free.pop_back();
  }
  return {memory.get(), [this, bytes, memory](std::byte*) { free_[bytes].push_back(memory); }};
}

}  // namespace zs::zero
