// SPDX-License-Identifier: Apache-2.0
#include "device/memory.hpp"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <torch/version.h>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "base/error.hpp"
#include "base/number.hpp"
#include "device/backend.hpp"

namespace zs::device {
namespace {

std::atomic<std::int64_t> held = 0, most = 0;

constexpr std::size_t kAlignment = 64;

/// Negative when they are given back.
void count(std::int64_t bytes) {
  const std::int64_t now = held += bytes;
  std::int64_t before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
}

/// Comes before the aligned memory.
struct Header {
  void* start;
  std::size_t bytes;
};

/// Uses malloc: aligned_alloc does not reuse a free block of the same size (glibc before 2.38). Null if there is no
/// memory.
void* aligned(std::size_t bytes) {
  void* const start = std::malloc(bytes + sizeof(Header) + kAlignment);
  if (!start) return nullptr;
  const auto least = reinterpret_cast<std::uintptr_t>(start) + sizeof(Header);
  auto* const data = static_cast<char*>(start) + sizeof(Header) + (kAlignment - least % kAlignment) % kAlignment;
  reinterpret_cast<Header*>(data)[-1] = {start, bytes};
  return data;
}
const Header& header_of(void* data) { return static_cast<Header*>(data)[-1]; }
void free_aligned(void* data) {
  if (data) std::free(header_of(data).start);
}

class CountingAllocator final : public at::Allocator {
 public:
  static void* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* const data = aligned(bytes);
    if (!data) throw OutOfMemory({}, static_cast<std::int64_t>(bytes));
    count(static_cast<std::int64_t>(bytes));
    return data;
  }

  static void give_back(void* data) {
    if (!data) return;
    count(-static_cast<std::int64_t>(header_of(data).bytes));
    free_aligned(data);
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

bool on_gpu(const Device& device) { return device.kind != Device::Kind::cpu; }

}  // namespace

OutOfMemory::OutOfMemory(const Device& device, std::int64_t asked)
    : Error("no room for " + to_bytes_text(static_cast<double>(asked)) + " on " + to_text(device) + ", where " +
            to_bytes_text(static_cast<double>(statistics(device).allocated)) + " are held") {}

Buffer allocate(const Device& device, std::int64_t bytes) {
  if (on_gpu(device)) return cuda::backend().allocate(device, bytes);
  auto* const memory = static_cast<std::byte*>(aligned(static_cast<std::size_t>(bytes)));
  if (!memory) throw OutOfMemory(device, bytes);
  return counted({memory, free_aligned}, bytes, device);
}

Buffer counted(std::shared_ptr<std::byte> memory, std::int64_t bytes, const Device& device) {
  if (on_gpu(device)) throw Error("memory of " + to_text(device) + " is counted where it is allocated");
  count(bytes);
  std::byte* const data = memory.get();
  return {{data, [memory = std::move(memory), bytes](std::byte*) { count(-bytes); }}, bytes, device};
}

std::int64_t capacity(const Device& device) { return cuda::backend().capacity(device); }

Statistics statistics(const Device& device) {
  if (on_gpu(device)) return cuda::backend().statistics(device);
  return {held, most};
}

void reset_peak(const Device& device) {
  if (on_gpu(device)) return cuda::backend().reset_peak(device);
  most = held.load();
}

std::map<std::string, std::string> arithmetic(const Device& device) {
  if (on_gpu(device)) return cuda::backend().arithmetic(device);
  return {{"device", "cpu"}};
}

void count_tensors() {
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace zs::device
