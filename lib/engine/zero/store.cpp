// SPDX-License-Identifier: Apache-2.0
#include "zero/store.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "zero/offloadable.hpp"

namespace zs::zero {
namespace {

class HostStore final : public Store {
 public:
  explicit HostStore(const device::Device& device) : Store(device) {}

  int add(const std::string&, std::int64_t bytes) override {
    blocks_.push_back(at::empty({bytes}, at::kByte));
    added(bytes);
    return static_cast<int>(blocks_.size()) - 1;
  }
  void start_load(int) override {}
  void finish_load(int block, const device::View& to) override { device::copy(to, device::view(of(block))); }
  void start_store(int block, const device::View& from) override { device::copy(device::view(of(block)), from); }
  void plant(int, DiskFault) override { throw Error("the offloaded state is not on a disk: use nvme instead of cpu"); }

 private:
  std::vector<at::Tensor> blocks_;

  const at::Tensor& of(int block) const { return blocks_[static_cast<std::size_t>(block)]; }
};

}  // namespace

void Store::added(std::int64_t bytes) {
  bytes_ += bytes;
  largest_ = std::max(largest_, bytes);
}

device::Buffer Store::borrow(std::int64_t bytes) {
  // One that is too small was lent before a larger block was added.
  std::erase_if(free_, [&](const device::Buffer& one) {
    if (one.bytes() >= largest_) return false;
    staging_bytes_ -= one.bytes();
    return true;
  });
  device::Buffer memory;
  if (free_.empty()) {
    memory = device::allocate(device_, std::max(bytes, largest_));
    staging_bytes_ += memory.bytes();
  } else {
    memory = std::move(free_.back());
    free_.pop_back();
  }
  return memory.owned_by({memory.data(), [this, memory](std::byte*) { free_.push_back(memory); }});
}

device::Buffer Store::fetch(int block, std::int64_t bytes) {
  device::Buffer memory = borrow(bytes);
  finish_load(block, memory.view(device::Type::byte, bytes));
  return memory;
}

void Store::give(int block, device::Buffer memory, std::int64_t bytes) {
  start_store(block, memory.view(device::Type::byte, bytes));
}

std::unique_ptr<Store> host_store(const device::Device& device) {
  if (device.kind != device::Device::Kind::cpu) return travelling_store(device);
  return std::make_unique<HostStore>(device);
}

OffloadableBuffer::OffloadableBuffer(const Residency& residency, const std::string& name, const device::Device& device,
                                     std::int64_t bytes)
    : residency_(residency), bytes_(bytes), device_(device) {
  if (residency.store) block_ = residency.store->add(name, bytes);
  memory_ = take();
  device::clear(memory_.view(device::Type::byte, bytes));
  put_back();
}

/// A buffer that is here between steps has separate memory, which others get while it is away.
device::Buffer OffloadableBuffer::take() const {
  return residency_.here ? device::allocate(device_, bytes_) : residency_.store->borrow(bytes_);
}

void OffloadableBuffer::start_load() {
  if (residency_.store && !memory_) residency_.store->start_load(block_);
}

void OffloadableBuffer::load() {
  if (!residency_.store || memory_) return;
  if (!residency_.here) {
    memory_ = residency_.store->fetch(block_, bytes_);
    return;
  }
  device::Buffer memory = take();
  residency_.store->finish_load(block_, memory.view(device::Type::byte, bytes_));
  memory_ = std::move(memory);
}

void OffloadableBuffer::put_back() {
  if (!residency_.here) move_out();
}

void OffloadableBuffer::move_out() {
  if (!residency_.here) {
    residency_.store->give(block_, std::exchange(memory_, {}), bytes_);
    return;
  }
  residency_.store->start_store(block_, memory_.view(device::Type::byte, bytes_));
  memory_.reset();
}

void OffloadableBuffer::drop() {
  if (residency_.store) memory_.reset();
}

}  // namespace zs::zero
