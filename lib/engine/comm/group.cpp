// SPDX-License-Identifier: Apache-2.0
// A group of one rank. It sends nothing.
#include "comm/group.hpp"
#include "base/error.hpp"
#include "base/host.hpp"
#include "comm/message_group.hpp"

namespace zs::comm {
namespace {

class SingleTransport : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& host(int) const override { return host_; }
  std::unique_ptr<Message> send(int, int, const void*, std::int64_t) override { return none(); }
  std::unique_ptr<Message> receive(int, int, void*, std::int64_t) override { return none(); }
  void idle(int) override {}
  std::string failure() const override { return failure_; }
  void fail(const std::string& why) noexcept override {
    if (failure_.empty()) failure_ = "rank 0 failed: " + why;
  }
  void abort() override { fail("aborted"); }
  std::unique_ptr<Transport> split(const std::vector<int>&) override { return std::make_unique<SingleTransport>(); }

 private:
  std::string host_ = host_name(), failure_;

  static std::unique_ptr<Message> none() { throw Error("a rank that is alone has no messages"); }
};

}  // namespace

std::unique_ptr<Group> single(const Options& options) {
  return std::make_unique<MessageGroup>(std::make_shared<Progress>(std::make_unique<SingleTransport>(), options));
}

Slice slice(std::int64_t n, std::int64_t rank, std::int64_t ranks) {
  return {n * rank / ranks, n * (rank + 1) / ranks};
}

std::vector<device::View> parts_of_sums(const device::View& mine, std::size_t sums, Slice local, Slice part) {
  std::vector<device::View> views;
  for (std::size_t i = 0; i < sums; ++i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * local.size() - local.begin;
    views.push_back(mine.part(begin + part.begin, begin + part.end));
  }
  return views;
}

Work Group::reduce_scatter(const device::View& full, const device::View& mine, const std::string& what) {
  return reduce_scatter({full.count, full.type, tree::Addends::one_each(size()), {full}}, mine, what);
}

Work Group::all_gather(const device::View& mine, const device::View& full, const std::string& what) {
  const Gathered one{mine, full};
  return all_gather_coalesced({&one, 1}, what);
}

Work Group::all_to_all(const device::View& full, const device::View& received, const std::string& what) {
  std::vector<device::View> to, from;
  for (int other = 0; other < size(); ++other) {
    const Slice part = slice(full.count, other, size());
    to.push_back(full.part(part.begin, part.end)), from.push_back(received.part(part.begin, part.end));
  }
  return all_to_all(to, from, what);
}

void require_parts(const Group& group, std::span<const device::View> to, std::span<const device::View> from,
                   const std::string& what) {
  const auto ranks = static_cast<std::size_t>(group.size()), local = static_cast<std::size_t>(group.rank());
  if (to.size() != ranks || from.size() != ranks)
    throw Error(what + ": " + std::to_string(to.size()) + " parts go and " + std::to_string(from.size()) +
                " come, of " + std::to_string(ranks) + " ranks");
  if (to[local].bytes() != from[local].bytes())
    throw Error(what + ": rank " + std::to_string(local) + " has " + std::to_string(to[local].bytes()) +
                " bytes for itself and expects " + std::to_string(from[local].bytes()));
}

}  // namespace zs::comm
