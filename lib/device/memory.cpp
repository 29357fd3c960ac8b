// SPDX-License-Identifier: Apache-2.0
#include "device/memory.hpp"

#include <c10/core/CPUAllocator.h>
#include <torch/version.h>

#include <atomic>
#include <cstdlib>

#include "base/error.hpp"
#include "base/number.hpp"
#include "device/backend.hpp"
#include "device/out_of_memory.hpp"

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

void* aligned(std::size_t bytes) {
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

/// Aligned memory with its size in front of it.
class CountingAllocator final : public at::Allocator {
 public:
  static void* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    char* const start = static_cast<char*>(aligned(bytes + kAlignment));
    if (!start) throw OutOfMemory({}, static_cast<std::int64_t>(bytes));
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

bool on_gpu(const Device& device) { return device.kind != Device::Kind::cpu; }

}  // namespace

OutOfMemory::OutOfMemory(const Device& device, std::int64_t asked)
    : Error("no room for " + to_bytes_text(static_cast<double>(asked)) + " on " + to_text(device) + ", where " +
            to_bytes_text(static_cast<double>(statistics(device).allocated)) + " are held") {}

Buffer allocate(const Device& device, std::int64_t bytes) {
  if (on_gpu(device)) return cuda::backend().allocate(device, bytes);
  auto* const memory = static_cast<std::byte*>(aligned(static_cast<std::size_t>(bytes) + (bytes == 0)));
  if (!memory) throw OutOfMemory(device, bytes);
  return counted({memory, std::free}, bytes, device);
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

}  // namespace zs::device
