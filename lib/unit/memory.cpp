// SPDX-License-Identifier: Apache-2.0
#include "unit/memory.hpp"

#include <c10/core/CPUAllocator.h>
#include <torch/version.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace zs::unit::memory {
namespace {

std::atomic<std::int64_t> held = 0, most = 0;

constexpr std::size_t kAlignment = 64;

/// Aligned memory with its size in front of it.
class CountingAllocator final : public at::Allocator {
 public:
  static void* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    const std::size_t whole = (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
    char* const start = static_cast<char*>(std::aligned_alloc(kAlignment, whole));
    if (!start) throw std::bad_alloc();
    *reinterpret_cast<std::size_t*>(start) = bytes;
    count(static_cast<std::int64_t>(bytes));
    return start + kAlignment;
  }

  static void give_back(void* data) {
    if (!data) return;
    char* const start = static_cast<char*>(data) - kAlignment;
    count(-static_cast<std::int64_t>(*reinterpret_cast<std::size_t*>(start)));
    std::free(start);
  }

  static at::DataPtr taken(std::size_t bytes) {
    void* const data = take(bytes);
    return {data, data, &give_back, at::Device(at::DeviceType::CPU)};
  }

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
  at::DataPtr allocate(std::size_t bytes) override { return taken(bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
#else
  at::DataPtr allocate(std::size_t bytes) const override { return taken(bytes); }
#endif
  at::DeleterFnPtr raw_deleter() const override { return &give_back; }
};

}  // namespace

void install() {
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
}

std::int64_t allocated() { return held; }
std::int64_t peak() { return most; }
void reset_peak() { most = held.load(); }

void count(std::int64_t bytes) {
  const std::int64_t now = held += bytes;
  std::int64_t before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
}

}  // namespace zs::unit::memory
