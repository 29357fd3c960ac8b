// SPDX-License-Identifier: Apache-2.0
// A group of one rank. It sends nothing.
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

}  // namespace zs::comm
