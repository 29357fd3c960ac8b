// SPDX-License-Identifier: Apache-2.0
// Offloads a GPU's state to the host's memory. Loads and stores use separate streams, so that both directions of the
// bus are busy at once while the GPU computes:
//
//   load stream   ... wait a, block 2 comes: event b ...
//   computing     ... event a | wait b, block 2 is updated: event c ...
//   store stream                       ... wait c, block 2 goes: event d ...
//
// After event d its memory is free, and the block may be loaded again. The host waits for an event d if blocks use more
// of the GPU's memory than they may.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <deque>
#include <thread>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "zero/store.hpp"

namespace zs::zero {
namespace {

using Event = std::shared_ptr<c10::Event>;

class TravellingStore final : public Store {
 public:
  explicit TravellingStore(const device::Device& device)
      : Store(device),
        streams_(device::torch_device(device).type()),
        comes_(streams_.getStreamFromGlobalPool(device::torch_device(device))),
        goes_(streams_.getStreamFromGlobalPool(device::torch_device(device))) {}
  ~TravellingStore() override {
    while (!going_.empty()) end_first();
  }

  int add(const std::string&, std::int64_t bytes) override {
    blocks_.push_back({at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true)), {}, {}, {}});
    added(bytes);
    return static_cast<int>(blocks_.size()) - 1;
  }

  void start_load(int index) override {
    Block& block = at(index);
    if (block.memory) return;
    block.memory = borrow(block.home.numel());
    // Earlier computations may still use the memory, and the block may be on its way to the host.
    comes_.wait(*after(computing()));
    if (block.went) comes_.wait(*block.went);
    copy(comes_, device::tensor(view(block)), block.home);
    block.came = after(comes_);
  }

  device::Buffer fetch(int index, std::int64_t) override {
    start_load(index);
    Block& block = at(index);
    computing().wait(*block.came);
    return std::exchange(block.memory, {});
  }
  void finish_load(int index, const device::View& to) override {
    const device::Buffer memory = fetch(index, to.count);
    device::copy(to, memory.view(device::Type::byte, to.count));
  }

  void give(int index, device::Buffer memory, std::int64_t bytes) override {
    Block& block = at(index);
    goes_.wait(*after(computing()));
    copy(goes_, block.home, device::tensor(memory.view(device::Type::byte, bytes)));
    block.went = after(goes_);
    going_.push_back({block.went, std::move(memory)});
  }
  void start_store(int index, const device::View& from) override {
    device::Buffer memory = borrow(from.count);
    device::copy(memory.view(device::Type::byte, from.count), from);
    give(index, std::move(memory), from.count);
  }

  device::Buffer borrow(std::int64_t bytes) override {
    make_room(bytes);
    device::Buffer memory = device::allocate(device(), bytes);
    lends(lent_ += bytes);
    return memory.owned_by({memory.data(), [this, memory](std::byte*) { lent_ -= memory.bytes(); }});
  }
  void allow(std::int64_t bytes) override {
    allowed_ = bytes;
    make_room(0);
  }
  std::int64_t lent() const override { return lent_; }

  void plant(int, DiskFault) override { throw Error("the offloaded state is not on a disk: use nvme instead of cpu"); }

 private:
  struct Block {
    at::Tensor home;
    device::Buffer memory;  // while it comes
    Event came, went;       // the last time
  };
  struct Going {
    Event gone;
    device::Buffer memory;
  };
  c10::impl::VirtualGuardImpl streams_;
  c10::Stream comes_, goes_;
  std::int64_t lent_ = 0, allowed_ = 0;
  std::vector<Block> blocks_;
  std::deque<Going> going_;

  Block& at(int index) { return blocks_[static_cast<std::size_t>(index)]; }
  static device::View view(const Block& block) { return block.memory.view(device::Type::byte, block.home.numel()); }

  /// The stream that LibTorch computes on.
  c10::Stream computing() const { return streams_.getStream(device::torch_device(device())); }
  /// An event after everything that the stream has been given so far.
  static Event after(const c10::Stream& stream) {
    auto event = std::make_shared<c10::Event>(stream.device_type());
    event->record(stream);
    return event;
  }
  static void copy(const c10::Stream& stream, const at::Tensor& to, const at::Tensor& from) {
    const c10::StreamGuard guard(stream);
    to.copy_(from, /*non_blocking=*/true);
  }

  /// Waits until outgoing blocks leave this number of bytes free, or until there is nothing to wait for.
  void make_room(std::int64_t bytes) {
    while (!going_.empty() && going_.front().gone->query()) going_.pop_front();
    while (!going_.empty() && lent_ + bytes > std::max(allowed_, 2 * largest())) end_first();
  }
  void end_first() {
    while (!going_.front().gone->query()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    going_.pop_front();
  }
};

}  // namespace

std::unique_ptr<Store> travelling_store(const device::Device& device) {
  return std::make_unique<TravellingStore>(device);
}

}  // namespace zs::zero
