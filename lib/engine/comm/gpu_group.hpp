// SPDX-License-Identifier: Apache-2.0
// The common part of groups with GPU memory: a host group for ranks, hosts and control traffic.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/group.hpp"

namespace zs::comm {

class GpuGroup : public Group {
 public:
  GpuGroup(std::unique_ptr<Group> host, const device::Device& device) : host_(std::move(host)), device_(device) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  const std::string& host(int rank) const override { return host_->host(rank); }
  device::Device device() const override { return device_; }
  device::Buffer allocate(std::int64_t bytes) override { return device::allocate(device_, bytes); }
  std::vector<std::string> all_gather_object(const std::string& blob, const std::string& what) override {
    return host_->all_gather_object(blob, what);
  }
  void abort() override { host_->abort(); }

 protected:
  std::unique_ptr<Group> host_;
  device::Device device_;
};

/// Describes two ranks on one GPU ("ranks 0 and 1 share the GPU node07 0000:0f:00.0"), or "" if there are none.
/// COLLECTIVE.
std::string shared_gpu(Group& host, const device::Device& device);

/// The ranks of `host`, with memory on `device`, connected by NCCL; `host` keeps the control traffic. A reduce-scatter
/// sends slices point to point and adds them here in the canonical order, since the order of NCCL's sums depends on the
/// topology; on several nodes within each node first (nodes.hpp). Unless sums must `repeat` their bits, NCCL adds where
/// it can, in any order and in the type of the operand. Throws zs::Error if NCCL cannot start. REQUIRES: no
/// shared_gpu(). COLLECTIVE.
std::unique_ptr<Group> nccl(std::unique_ptr<Group> host, const device::Device& device, const Options& options = {},
                            bool repeat = true);

/// The ranks of `host`, with memory on `device`: collectives go through the host's memory.
std::unique_ptr<Group> staged(std::unique_ptr<Group> host, const device::Device& device);

}  // namespace zs::comm
