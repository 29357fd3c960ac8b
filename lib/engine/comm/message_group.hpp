// SPDX-License-Identifier: Apache-2.0
// The collectives over messages between two ranks, written once for every transport. A reduction sends each rank its
// slice of each term and adds there, in the order of device/tree.hpp: of one term n (N-1)/N elements sent, as few as
// there can be.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "comm/progress.hpp"

namespace zs::comm {

/// A rank's slice of `full`.
device::View part_of(const device::View& full, int rank, int ranks);

class MessageGroup : public Group {
 public:
  explicit MessageGroup(std::shared_ptr<Progress> progress) : progress_(std::move(progress)) {}

  int rank() const override { return transport().rank(); }
  int size() const override { return transport().size(); }
  const std::string& host(int rank) const override { return transport().host(rank); }
  device::Buffer allocate(std::int64_t bytes) override;
  using Group::reduce_scatter;
  Work reduce_scatter(const Summands& summands, const device::View& mine, const std::string& what) override;
  Work all_gather_coalesced(std::span<const Gathered> gathers, const std::string& what) override;
  using Group::all_to_all;
  Work all_to_all(std::span<const device::View> to, std::span<const device::View> from,
                  const std::string& what) override;
  std::vector<std::string> all_gather_object(const std::string& blob, const std::string& what) override;
  std::unique_ptr<Group> split(int colour, const std::string& what) override;
  std::int64_t bytes_sent() const override { return bytes_sent_; }
  std::int64_t bytes_between_nodes() const override { return bytes_between_nodes_; }
  std::int64_t collectives() const override { return collectives_; }
  void abort() override { transport().abort(); }

 protected:
  /// A group of the same class.
  virtual std::unique_ptr<Group> make(std::shared_ptr<Progress> progress) const {
    return std::make_unique<MessageGroup>(std::move(progress));
  }
  /// The collective by messages, not started. Takes a tag, so every rank must make it.
  virtual std::unique_ptr<Collective> make_reduce_scatter(const Summands& summands, const device::View& mine,
                                                          const std::string& what);
  virtual std::unique_ptr<Collective> make_all_gather(std::span<const Gathered> gathers, const std::string& what);
  virtual std::unique_ptr<Collective> make_all_to_all(std::span<const device::View> to,
                                                      std::span<const device::View> from, const std::string& what);
  Transport& transport() const { return progress_->transport(); }
  const std::shared_ptr<Progress>& progress() const { return progress_; }

 private:
  std::shared_ptr<Progress> progress_;
  std::int64_t bytes_sent_ = 0, bytes_between_nodes_ = 0, collectives_ = 0;

  /// Counts a collective and its bytes to each other rank.
  void count(const std::function<std::int64_t(int rank)>& bytes);
};

}  // namespace zs::comm
