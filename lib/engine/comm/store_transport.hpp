// SPDX-License-Identifier: Apache-2.0
// Messages through the store of PyTorch's launchers (torchrun, accelerate): the
// sender puts a message there, the receiver removes it. Everything passes
// through one process, so it is only for control traffic; GPU data goes by NCCL.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace c10d {
class TCPStore;
}

namespace zs::comm {

class StoreTransport : public Transport {
 public:
  /// For all ranks, from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Throws zs::Error if one is missing or the store
  /// is not reached within `timeout` seconds.
  explicit StoreTransport(double timeout);
  ~StoreTransport() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hosts_.size()); }
  const std::string& host(int rank) const override { return hosts_[static_cast<std::size_t>(rank)]; }
  std::unique_ptr<Message> send(int to, int tag, const void* data, std::int64_t bytes) override;
  std::unique_ptr<Message> receive(int from, int tag, void* data, std::int64_t bytes) override;
  void idle(int rounds) override;
  std::string failure() const override;
  void fail(const std::string& why) noexcept override;
  void abort() override;
  std::unique_ptr<Transport> split(const std::vector<int>& members) override;

 private:
  StoreTransport(std::shared_ptr<c10d::TCPStore> store, std::string place, int rank, std::vector<std::string> hosts);

  std::shared_ptr<c10d::TCPStore> store_;
  std::string place_;  // prefix of this group's keys
  int rank_ = 0;
  std::vector<std::string> hosts_;
  bool whole_ = false, failed_ = false;
  int splits_ = 0;
  std::map<std::pair<int, int>, std::int64_t> sent_, received_;  // messages so far, by rank and tag

  std::string key(int from, int to, int tag, std::int64_t number) const;
};

}  // namespace zs::comm
