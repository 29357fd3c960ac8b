// SPDX-License-Identifier: Apache-2.0
// Blocks in a file. Each has a page in front that says which it is, which write it was and what its bytes hash to: a
// disk that returns another block, an older one or half of one is found out when it is read.
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "zero/disk.hpp"
#include "zero/store.hpp"

namespace zs::zero {
namespace {

struct Label {
  static constexpr std::uint64_t kMagic = 0x6b636f6c62737a31;
  std::uint64_t magic = kMagic, block = 0, write = 0, bytes = 0;
  XXH128_hash_t hash{};
};

class FileStore final : public Store {
 public:
  FileStore(const device::Device& device, const std::string& folder) : Store(device), disk_(folder) {}

  int add(const std::string& name, std::int64_t bytes) override {
    blocks_.push_back({name, bytes, end_});
    end_ += whole(bytes);
    if (const std::string error = disk_.reserve(end_); !error.empty()) fail(blocks_.back(), "no room", error);
    added(bytes);
    return static_cast<int>(blocks_.size()) - 1;
  }

  void start_load(int index) override {
    Block& block = at(index);
    if (block.reading) return;
    end_write(index);  // what is on its way to the disk is not there yet
    block.memory = take();
    block.reading = true;
    std::int64_t offset = block.offset;
    if (took(block, DiskFault::swapped)) offset = other_than(index).offset;
    disk_.start(false, index, block.memory.data(), whole(block.bytes), offset);
  }

  void finish_load(int index, const device::View& to) override {
    start_load(index);
    Block& block = at(index);
    block.reading = false;
    const device::Buffer memory = std::exchange(block.memory, {});
    const std::string error = disk_.wait(index);
    if (error.empty()) {
      require(block, static_cast<std::uint64_t>(index), memory.data());
      device::copy(to, data(memory, block));
    }
    give_back(memory);
    if (!error.empty()) fail(block, "cannot be read", error);
  }

  void start_store(int index, const device::View& from) override {
    constexpr std::size_t kAtOnce = 2;  // one is written while the next one is made
    end_write(index);
    while (writing_.size() >= kAtOnce) end_write(writing_.front());
    Block& block = at(index);
    block.memory = take();
    device::copy(data(block.memory, block), from);
    Label label;
    label.block = static_cast<std::uint64_t>(index);
    label.write = ++block.writes;
    label.bytes = static_cast<std::uint64_t>(block.bytes);
    label.hash = XXH3_128bits(block.memory.data() + Disk::kPage, static_cast<std::size_t>(block.bytes));
    std::memcpy(block.memory.data(), &label, sizeof label);
    if (took(block, DiskFault::stale)) return give_back(std::exchange(block.memory, {}));
    const std::int64_t pages = took(block, DiskFault::torn) ? 1 : whole(block.bytes) / Disk::kPage;
    writing_.push_back(index);
    disk_.start(true, index, block.memory.data(), pages * Disk::kPage, block.offset);
  }

  void plant(int index, DiskFault fault) override {
    if (fault == DiskFault::swapped) other_than(index);
    at(index).fault = fault;
  }

 private:
  struct Block {
    std::string name;
    std::int64_t bytes, offset;
    std::uint64_t writes = 0;
    bool reading = false;
    device::Buffer memory{};  // memory of a transfer in flight
    std::optional<DiskFault> fault{};
  };
  std::vector<Block> blocks_;
  std::deque<int> writing_;
  std::int64_t end_ = 0;
  std::vector<device::Buffer> free_;
  Disk disk_;  // destroyed first: it waits for transfers in flight, which use the memory above

  Block& at(int index) { return blocks_[static_cast<std::size_t>(index)]; }
  static bool took(Block& block, DiskFault fault) {
    if (block.fault != fault) return false;
    block.fault.reset();
    return true;
  }
  /// Another block with the same number of pages, for a planted fault.
  const Block& other_than(int index) {
    for (const Block& other : blocks_) {
      if (&other != &at(index) && whole(other.bytes) == whole(at(index).bytes)) return other;
    }
    throw Error("no other block is as large as the " + at(index).name + ": none can be swapped with it");
  }
  /// With its label, in pages.
  static std::int64_t whole(std::int64_t bytes) {
    return Disk::kPage + (bytes + Disk::kPage - 1) / Disk::kPage * Disk::kPage;
  }
  static device::View data(const device::Buffer& memory, const Block& block) {
    return {memory.data() + Disk::kPage, block.bytes, device::Type::byte, {}};
  }

  [[noreturn]] void fail(const Block& block, const std::string& what, const std::string& why) const {
    throw Error(disk_.folder(), 0, "the " + block.name + " that is offloaded there: " + what + ": " + why);
  }

  void require(const Block& block, std::uint64_t index, const std::byte* memory) const {
    Label label;
    std::memcpy(&label, memory, sizeof label);
    const char* const kNotStored = "it is not what was stored";
    if (label.magic != Label::kMagic) fail(block, kNotStored, "it has no label of zs");
    if (label.block != index) {
      const bool ours = label.block < blocks_.size();
      fail(block, kNotStored,
           "it is swapped with " + (ours ? "the " + blocks_[label.block].name : std::string("another file's")));
    }
    if (label.write != block.writes) {
      fail(block, kNotStored,
           "it is stale: write " + std::to_string(label.write) + " of " + std::to_string(block.writes));
    }
    const auto hash = XXH3_128bits(memory + Disk::kPage, static_cast<std::size_t>(block.bytes));
    if (label.bytes != static_cast<std::uint64_t>(block.bytes) || !XXH128_isEqual(hash, label.hash))
      fail(block, kNotStored, "it is torn: its bytes have another checksum than when they were stored");
  }

  void end_write(int index) {
    const auto found = std::find(writing_.begin(), writing_.end(), index);
    if (found == writing_.end()) return;
    writing_.erase(found);
    Block& block = at(index);
    const std::string error = disk_.wait(index);
    give_back(std::exchange(block.memory, {}));
    if (!error.empty()) fail(block, "cannot be written", error);
  }

  /// Memory for the largest block and its label.
  device::Buffer take() {
    const std::int64_t bytes = whole(largest());
    std::erase_if(free_, [&](const device::Buffer& one) { return one.bytes() < bytes; });
    if (!free_.empty()) {
      device::Buffer memory = std::move(free_.back());
      free_.pop_back();
      return memory;
    }
    if (device().kind != device::Device::Kind::cpu) {
      const at::Tensor pinned = at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
      auto* const start = static_cast<std::byte*>(pinned.data_ptr());
      return {{start, [pinned](std::byte*) {}}, bytes, {}};
    }
    auto* const start = static_cast<std::byte*>(std::aligned_alloc(Disk::kPage, static_cast<std::size_t>(bytes)));
    if (!start) throw Error("no room for " + std::to_string(bytes) + " bytes that are offloaded");
    std::memset(start, 0, static_cast<std::size_t>(bytes));
    return device::counted({start, std::free}, bytes, {});
  }
  void give_back(const device::Buffer& memory) { free_.push_back(memory); }
};

}  // namespace

std::unique_ptr<Store> file_store(const device::Device& device, const std::string& folder) {
  return std::make_unique<FileStore>(device, folder);
}

}  // namespace zs::zero
