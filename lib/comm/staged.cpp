// SPDX-License-Identifier: Apache-2.0
// A GPU's collectives through the host's memory: for several ranks on one GPU, which NCCL refuses, and where there is
// no NCCL. The sums are made by the ranks' processors, whose additions have a GPU's bits.
//
//   reduce_scatter   GPU full -> host full | the host group's reduce-scatter | host mine -> GPU mine, in wait()
//   all_gather       GPU mine -> host mine | the host group's all-gather     | host full -> GPU full, in wait()
//   all_to_all       the same, of full and received
#include "comm/staged.hpp"

#include "comm/gpu_group.hpp"
#include "device/tensor.hpp"

namespace zs::comm {
namespace {

/// A collective of the host's group, and where its result goes.
class Staged final : public Pending {
 public:
  Staged(device::Buffer in, device::Buffer out, const device::View& host, const device::View& target)
      : in_(std::move(in)), out_(std::move(out)), host_(host), target_(target) {}

  void start(Work work) { work_ = std::move(work); }
  void wait() override {
    work_->wait();
    device::copy(target_, host_);
  }
  bool test() override { return work_->test(); }

 private:
  device::Buffer in_, out_;
  device::View host_, target_;
  Work work_;
};

class StagedGroup final : public GpuGroup {
 public:
  using GpuGroup::GpuGroup;

  Work reduce_scatter(const device::View& full, const device::View& mine, const std::string& what) override {
    return start(full, mine,
                 [&](const device::View& in, const device::View& out) { return host_->reduce_scatter(in, out, what); });
  }
  Work all_gather(const device::View& mine, const device::View& full, const std::string& what) override {
    return start(mine, full,
                 [&](const device::View& in, const device::View& out) { return host_->all_gather(in, out, what); });
  }
  Work all_to_all(const device::View& full, const device::View& received, const std::string& what) override {
    return start(full, received,
                 [&](const device::View& in, const device::View& out) { return host_->all_to_all(in, out, what); });
  }
  std::unique_ptr<Group> split(int colour, const std::string& what) override {
    return staged(host_->split(colour, what), device_);
  }
  std::int64_t bytes_sent() const override { return host_->bytes_sent(); }
  std::int64_t bytes_between_nodes() const override { return host_->bytes_between_nodes(); }

 private:
  template <typename Collective>
  Work start(const device::View& from, const device::View& to, Collective collective) {
    device::Buffer in = host_->allocate(from.bytes()), out = host_->allocate(to.bytes());
    const device::View source = in.view(from.type, from.count), result = out.view(to.type, to.count);
    device::copy(source, from);  // waits for the GPU
    auto staged = std::make_unique<Staged>(in, out, result, to);
    staged->start(collective(source, result));
    return staged;
  }
};

}  // namespace

std::unique_ptr<Group> staged(std::unique_ptr<Group> host, const device::Device& device) {
  return std::make_unique<StagedGroup>(std::move(host), device);
}

}  // namespace zs::comm
