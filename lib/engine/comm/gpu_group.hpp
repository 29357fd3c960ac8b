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

}  // namespace zs::comm
