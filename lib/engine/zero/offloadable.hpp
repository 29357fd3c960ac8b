// SPDX-License-Identifier: Apache-2.0
// A buffer that is in device memory, or in a store and in device memory only while it is used.
#pragma once
#include <cstdint>
#include <string>

#include "device/memory.hpp"
#include "zero/store.hpp"

namespace zs::zero {

/// The place of a buffer between steps, and the one to which it can be moved.
struct Residency {
  Store* store = nullptr;  ///< may hold it, and must outlive it; null: it stays in device memory
  bool here = true;        ///< between steps it is in device memory, else in the store
};

/// A unit's buffer that stays in device memory, or is in a store and in device memory only while used.
class OffloadableBuffer {
 public:
  /// `bytes`; zeros.
  OffloadableBuffer(const Residency& residency, const std::string& name, const device::Device& device,
                    std::int64_t bytes);

  /// Whether it can be moved.
  bool moves() const { return residency_.store != nullptr; }
  std::int64_t bytes() const { return bytes_; }
  /// Starts to load it, and completes the load, if it is in the store.
  void start_load();
  void load();
  /// Returns the changed buffer to its place between steps.
  void put_back();
  /// Stores the changed buffer and frees its device memory. REQUIRES: it moves.
  void move_out();
  /// Drops the loaded, unchanged content.
  void drop();
  /// Store::plant. REQUIRES: it moves.
  void plant(DiskFault fault) { residency_.store->plant(block_, fault); }
  /// REQUIRES: in device memory.
  const device::Buffer& memory() const { return memory_; }
  /// Bytes in device memory between steps, and now.
  std::int64_t resident_bytes() const { return residency_.here ? bytes_ : 0; }
  std::int64_t bytes_here() const { return memory_ ? bytes_ : 0; }

 private:
  Residency residency_;
  int block_ = -1;
  std::int64_t bytes_;
  device::Device device_;
  device::Buffer memory_;

  device::Buffer take() const;
};

/// Keeps an offloadable buffer in device memory while it is read.
class ScopedLoad {
 public:
  explicit ScopedLoad(OffloadableBuffer& buffer) : buffer_(buffer), was_here_(static_cast<bool>(buffer.memory())) {
    buffer.load();
  }
  ~ScopedLoad() {
    if (!was_here_) buffer_.drop();
  }
  ScopedLoad(const ScopedLoad&) = delete;
  ScopedLoad& operator=(const ScopedLoad&) = delete;

 private:
  OffloadableBuffer& buffer_;
  bool was_here_;
};

}  // namespace zs::zero
