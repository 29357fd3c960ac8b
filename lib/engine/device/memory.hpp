// SPDX-License-Identifier: Apache-2.0
// Memory on a device, and how many bytes of it this process holds, LibTorch's tensors and our own buffers together, as
// torch.cuda.memory_allocated counts them for a GPU: exact, not sampled.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "device/view.hpp"

namespace zs::device {

/// Bytes that somebody owns. Copies share them; the last one to go gives them back to where they came from.
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

  /// The first `count` numbers in it. REQUIRES: they have room.
  View view(Type type, std::int64_t count) const { return {memory_.get(), count, type, device_}; }
  /// The same bytes, with `owner` kept as long as they are.
  Buffer owned_by(std::shared_ptr<std::byte> owner) const { return {std::move(owner), bytes_, device_}; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::int64_t bytes_ = 0;
  Device device_;
};

/// Memory aligned to 64 bytes (on a GPU: 256), not initialised, counted. Throws zs::Error if there is none.
Buffer allocate(const Device& device, std::int64_t bytes);

/// Counts `memory` (a part of a window that ranks share) as long as it is held.
Buffer counted(std::shared_ptr<std::byte> memory, std::int64_t bytes, const Device& device);

/// Bytes that a GPU has in all. REQUIRES: a GPU.
std::int64_t capacity(const Device& device);

/// Bytes of a device held now, and the most since reset_peak().
struct Statistics {
  std::int64_t allocated = 0, peak = 0;
};
Statistics statistics(const Device& device);
void reset_peak(const Device& device);

/// What of a device decides how numbers are rounded there, by the names of attributes: "device" is its kind, and of a
/// GPU its name and the versions of the driver and of the libraries that compute.
std::map<std::string, std::string> arithmetic(const Device& device);

/// Has LibTorch's CPU tensors counted too. Call once, before the first tensor.
void count_tensors();

/// The host's memory that is freed stays with this process: every step takes and frees the same blocks, and pages that
/// the system gives anew cost 6 % of a step, of a small batch 18 %.
void keep_freed_memory();

}  // namespace zs::device
