// SPDX-License-Identifier: Apache-2.0
// Where state that is offloaded lies between its uses: in the host's memory, or in a file on a disk. It is kept in
// blocks, each loaded and stored as a whole; what a load brings is what the last store of that block was given.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "device/memory.hpp"

namespace zs::zero {

enum class Place { device, host, disk };

/// What a disk does wrong: the next write is lost, the next read brings another block, the next write is cut in half.
enum class DiskFault { stale, swapped, torn };

class Store {
 public:
  virtual ~Store() = default;

  /// Makes room for a block of `bytes`; `name` stands for it in errors. Throws zs::Error where there is none.
  virtual int add(const std::string& name, std::int64_t bytes) = 0;
  /// Begins to read a block, where that takes time; finish_load() does so too where it was not begun.
  virtual void start_load(int block) = 0;
  /// Puts the block into `to`, of its size. Throws zs::Error, naming the block, where it cannot be read or is not what
  /// was stored last: another block's, an earlier one, or torn.
  virtual void finish_load(int block, const device::View& to) = 0;
  /// Takes `from`, whose memory is free afterwards, and begins to write it. An error may show at any later call.
  virtual void start_store(int block, const device::View& from) = 0;
  /// Has the disk do that to a block, once, to see it found. Throws zs::Error where there is no disk, or no other
  /// block.
  virtual void plant(int block, DiskFault fault) = 0;
  /// finish_load() into memory of the store's own, which its last owner gives back before the store goes.
  virtual device::Buffer fetch(int block, std::int64_t bytes);
  /// start_store() of that memory, changed.
  virtual void give(int block, device::Buffer memory, std::int64_t bytes);
  /// How much of the device's memory blocks may have on their way, where more makes them faster; two of the largest
  /// they have at any rate.
  virtual void allow(std::int64_t) {}
  /// What they have now.
  virtual std::int64_t lent() const { return 0; }
  /// Bytes of all blocks.
  std::int64_t bytes() const { return bytes_; }

  /// Memory on the device that computes for a block that is loaded, of `bytes` or more; its last owner gives it back,
  /// before the store goes. What was taken is as large as the largest block, so that one serves all in turn.
  virtual device::Buffer borrow(std::int64_t bytes);
  /// Of all that was lent at one time.
  std::int64_t staging_bytes() const { return staging_bytes_; }

 protected:
  explicit Store(const device::Device& device) : device_(device) {}
  void added(std::int64_t bytes);
  void lends(std::int64_t bytes) { staging_bytes_ = std::max(staging_bytes_, bytes); }
  std::int64_t largest() const { return largest_; }
  const device::Device& device() const { return device_; }

 private:
  device::Device device_;
  std::int64_t bytes_ = 0, largest_ = 0, staging_bytes_ = 0;
  std::vector<device::Buffer> free_;
};

/// In the host's memory; `device` computes.
std::unique_ptr<Store> host_store(const device::Device& device);
/// The same beside a GPU: its memory is locked in its place, and blocks come and go beside what the GPU computes, both
/// ways at once.
std::unique_ptr<Store> travelling_store(const device::Device& device);
/// In a file of its own in `folder`, which is made if it is not there; the file has no name, so nothing is left of it
/// when the process ends in any way. Blocks have checksums. By io_uring, and past the page cache, where the system
/// lets it. Throws zs::Error where it cannot be made.
std::unique_ptr<Store> file_store(const device::Device& device, const std::string& folder);

/// Where a buffer lies between steps, and where else it can be.
struct Residency {
  Store* store = nullptr;  ///< that may have them, and outlives them; null: they stay in device memory
  bool here = true;        ///< between steps they are in device memory, else in the store
};

/// A buffer of a unit that lies in device memory, or in a store and in device memory only while it is used.
class OffloadableBuffer {
 public:
  /// `bytes`; zeros.
  OffloadableBuffer(const Residency& residency, const std::string& name, const device::Device& device,
                    std::int64_t bytes);

  /// Whether its memory comes and goes.
  bool moves() const { return residency_.store != nullptr; }
  std::int64_t bytes() const { return bytes_; }
  /// Begins to load it, and loads it, if it is in the store.
  void start_load();
  void load();
  /// Gives it back changed to where it is between steps.
  void put_back();
  /// Stores it, changed, and leaves device memory. REQUIRES: it moves.
  void move_out();
  /// Forgets what was loaded, unchanged.
  void drop();
  /// Store::plant. REQUIRES: it moves.
  void plant(DiskFault fault) { residency_.store->plant(block_, fault); }
  /// REQUIRES: in device memory.
  const device::Buffer& memory() const { return memory_; }
  /// In device memory between steps, and now.
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
