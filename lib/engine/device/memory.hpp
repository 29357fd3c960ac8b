// SPDX-License-Identifier: Apache-2.0
// Memory on a device, and the number of bytes that this process uses, by LibTorch's tensors and zs's buffers, as
// torch.cuda.memory_allocated counts them for a GPU: exact, not sampled.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "device/view.hpp"

namespace zs::device {

/// Reference-counted bytes. Copies share them; the last one frees them.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<std::byte> memory, std::int64_t bytes, const Device& device)
      : memory_(std::move(memory)), bytes_(bytes), device_(device) {}

  explicit operator bool() const { return memory_ != nullptr; }
  std::byte* data() const { return memory_.get(); }
  std::int64_t bytes() const { return bytes_; }
  const Device& device() const { return device_; }
  void reset() { *this = {}; }
  std::int64_t owners() const { return memory_.use_count(); }

  /// The first `count` numbers. REQUIRES: the buffer is large enough.
  View view(Type type, std::int64_t count) const { return {memory_.get(), count, type, device_}; }
  /// The same bytes, keeping `owner` alive as long as they are.
  Buffer owned_by(std::shared_ptr<std::byte> owner) const { return {std::move(owner), bytes_, device_}; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::int64_t bytes_ = 0;
  Device device_;
};

/// Memory aligned to 64 bytes (on a GPU: 256), uninitialised, counted. Throws zs::Error if there is none.
Buffer allocate(const Device& device, std::int64_t bytes);

/// Counts `memory` (a part of a shared window) as long as it is referenced.
Buffer counted(std::shared_ptr<std::byte> memory, std::int64_t bytes, const Device& device);

/// Total bytes of a GPU. REQUIRES: a GPU.
std::int64_t capacity(const Device& device);

/// Bytes of a device in use, and of a GPU those that LibTorch's allocator holds, as torch.cuda.memory_reserved counts
/// them; each with its peak since reset_peak().
struct Statistics {
  std::int64_t allocated = 0, peak = 0, reserved = 0, peak_reserved = 0;
};
Statistics statistics(const Device& device);
void reset_peak(const Device& device);

/// The device's properties that affect rounding, by the names of attributes: "device" is its kind, and for a GPU its
/// name and the versions of the driver and of the computing libraries.
std::map<std::string, std::string> arithmetic(const Device& device);

/// Also counts LibTorch's CPU tensors. Call it once, before the first tensor.
void count_tensors();

/// Keeps freed host memory in this process: every step allocates and frees the same blocks, and new pages from the
/// system cost 6 % of a step, for a small batch 18 %.
void keep_freed_memory();

/// Thrown by allocate() without memory: the text has the requested bytes, and those that this process uses there.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const Device& device, std::int64_t asked);
};

}  // namespace zs::device
