// SPDX-License-Identifier: Apache-2.0
// How many bytes of tensors this process holds, as torch.cuda.memory_allocated does for a GPU: exact, not sampled.
#pragma once
#include <cstdint>

namespace zs::unit::memory {

/// Puts a counting allocator before LibTorch's CPU allocator. Call once, before the first tensor.
void install();

/// Bytes held now, and the most since the last reset_peak().
std::int64_t allocated();
std::int64_t peak();
void reset_peak();

/// Counts memory that tensors use but LibTorch did not allocate (shared windows); negative when it is given back.
void count(std::int64_t bytes);

}  // namespace zs::unit::memory
