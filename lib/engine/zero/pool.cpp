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
    if (!memory) memory = group_.allocate(bytes);
  }
  // A GPU's allocator keeps memory itself, and lends what gradients leave to activations: here is only noted how much.
  const bool kept = group_.device().kind == device::Device::Kind::cpu;
  return memory.owned_by({memory.data(), [this, memory, kept](std::byte*) {
                            free_[memory.bytes()].push_back(kept ? memory : device::Buffer());
                          }});
}

}  // namespace zs::zero
