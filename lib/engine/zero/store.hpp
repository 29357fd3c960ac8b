// SPDX-License-Identifier: Apache-2.0
// Stores offloaded state: in the host's memory, or in a file on a disk. State consists of blocks, each loaded and
// stored as a whole; a load returns the content of the last store of that block.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "device/memory.hpp"

namespace zs::zero {

enum class Place { device, host, disk };

/// Injected faults of a disk: the next write is lost, the next read returns another block, the next write is torn.
enum class DiskFault { stale, swapped, torn };

class Store {
 public:
  virtual ~Store() = default;

  /// Reserves a block of `bytes`, called `name` in errors. Throws zs::Error if there is no room.
  virtual int add(const std::string& name, std::int64_t bytes) = 0;
  /// Starts to read a block, if that takes time; otherwise finish_load() does.
  virtual void start_load(int block) = 0;
  /// Copies the block to `to`, of its size. Throws zs::Error, naming the block, if it cannot be read or is not what was
  /// last stored: another block's, an earlier version, or torn.
  virtual void finish_load(int block, const device::View& to) = 0;
  /// Takes `from`, whose memory is then free, and starts to write it. Any later call may report an error.
  virtual void start_store(int block, const device::View& from) = 0;
  /// Injects the fault into a block, once. Throws zs::Error if there is no disk, or no other block.
  virtual void plant(int block, DiskFault fault) = 0;
  /// finish_load() into the store's memory, which its last owner returns before the store is destroyed.
  virtual device::Buffer fetch(int block, std::int64_t bytes);
  /// start_store() of that memory, after changes.
  virtual void give(int block, device::Buffer memory, std::int64_t bytes);
  /// Sets how many bytes of device memory blocks in transfer may use, if more makes transfers faster; two of the
  /// largest are always allowed.
  virtual void allow(std::int64_t) {}
  /// The bytes that they currently use.
  virtual std::int64_t lent() const { return 0; }
  /// Bytes of all blocks.
  std::int64_t bytes() const { return bytes_; }

  /// Device memory for a loaded block, of `bytes` or more; its last owner returns it before the store is destroyed. It
  /// is as large as the largest block, so that it can be reused for all.
  virtual device::Buffer borrow(std::int64_t bytes);
  /// The peak bytes of this memory.
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

/// In the host's memory; computation is on `device`.
std::unique_ptr<Store> host_store(const device::Device& device);
/// The same for a GPU: in pinned host memory; blocks are copied in both directions while the GPU computes.
std::unique_ptr<Store> travelling_store(const device::Device& device);
/// In a file in `folder`, which is created if missing; the file is unnamed, so nothing remains when the process ends in
/// any way. Blocks have checksums. Uses io_uring and direct I/O if the system supports them. Throws zs::Error if it
/// cannot be created.
std::unique_ptr<Store> file_store(const device::Device& device, const std::string& folder);

}  // namespace zs::zero
