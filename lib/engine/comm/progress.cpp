// SPDX-License-Identifier: Apache-2.0
#include "comm/progress.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/idle.hpp"
#include "base/number.hpp"

namespace zs::comm {
namespace {

constexpr std::size_t kNamed = 4;  // late ranks that a message names

class ProgressWork : public Pending {
 public:
  ProgressWork(std::shared_ptr<Progress> progress, std::shared_ptr<Collective> collective)
      : progress_(std::move(progress)), collective_(std::move(collective)) {}
  ~ProgressWork() override { progress_->abandon(collective_); }
  void wait() override { progress_->wait(*collective_); }
  bool test() override { return progress_->test(*collective_); }

 private:
  std::shared_ptr<Progress> progress_;
  std::shared_ptr<Collective> collective_;
};

}  // namespace

std::string length_text(int from, std::size_t bytes, std::size_t expected) {
  return "rank " + std::to_string(from) + " sent " + std::to_string(bytes) + " bytes where this rank expects " +
         std::to_string(expected) + ": the ranks are not in the same collective";
}

Progress::Progress(std::unique_ptr<Transport> transport, const Options& options)
    : transport_(std::move(transport)),
      timeout_(options.timeout),
      family_(std::make_shared<std::vector<Progress*>>(1, this)) {
  if (!(timeout_ > 0)) throw Error("the timeout of a collective must be above 0 s, not " + to_text(timeout_));
}

std::shared_ptr<Progress> Progress::split(const std::vector<int>& members) {
  auto part = std::make_shared<Progress>(transport_->split(members), Options{timeout_});
  part->family_ = family_;
  family_->push_back(part.get());
  return part;
}

bool Progress::advance_family() {
  bool moved = false;
  for (Progress* const each : *family_) moved |= each->advance();
  return moved;
}

int Progress::next_tag() {
  const int tag = tag_;
  tag_ = (tag_ + 1) % kTags;
  return tag;
}

Work Progress::start(const std::shared_ptr<Progress>& progress, std::unique_ptr<Collective> collective) {
  std::shared_ptr<Collective> shared = std::move(collective);
  progress->check(*shared);
  auto work = std::make_unique<ProgressWork>(progress, shared);
  if (!shared->done()) {
    progress->active_.push_back(shared);
    progress->advance();
  }
  return work;
}

bool Progress::advance() {
  bool moved = false;
  for (const auto& collective : active_) {
    try {
      moved |= collective->advance();
    } catch (const Error& error) {
      fail(*collective, error.what());
    }
  }
  if (moved) std::erase_if(active_, [](const auto& collective) { return collective->done(); });
  return moved;
}

void Progress::check(const Collective& collective) const {
  if (failed()) throw Error(collective.what() + ": the group has failed before: " + failure_);
}

bool Progress::test(Collective& collective) {
  if (collective.done()) return true;
  check(collective);
  advance_family();
  return collective.done();
}

void Progress::wait(Collective& collective) {
  Idle idle;
  for (int rounds = 0; !collective.done(); ++rounds) {
    check(collective);
    const int left = departed(collective);
    if (advance_family()) {
      idle.restart();
      rounds = 0;
      continue;
    }
    if (const std::string why = transport_->failure(); !why.empty()) fail(collective, why);
    if (left >= 0) fail(collective, name(left) + " has left the group");
    if (idle.seconds() > timeout_) fail(collective, late_text(collective));
    transport_->idle(rounds);
  }
}

int Progress::departed(const Collective& collective) const {
  const std::vector<int> left = transport_->left();
  if (left.empty()) return -1;
  const std::vector<int> late = collective.late();
  const auto found = std::find_first_of(left.begin(), left.end(), late.begin(), late.end());
  return found == left.end() ? -1 : *found;
}

std::string Progress::name(int rank) const { return "rank " + std::to_string(rank) + " on " + transport_->host(rank); }

std::string Progress::late_text(const Collective& collective) const {
  const std::vector<int> late = collective.late();
  std::string text = "nothing came for " + to_text(timeout_) + " s from";
  for (std::size_t i = 0; i < std::min(late.size(), kNamed); ++i) {
    text += (i ? ", " : " ") + name(late[i]);
  }
  if (late.size() > kNamed) text += " and " + std::to_string(late.size() - kNamed) + " more";
  return text + ": died, hung, or busy with something else";
}

void Progress::fail(const Collective& collective, const std::string& why) {
  failure_ = collective.what() + ": " + why;
  transport_->fail(failure_);
  throw Error(failure_);
}

void Progress::abandon(const std::shared_ptr<Collective>& collective) noexcept {
  if (collective->done()) return;
  std::erase(active_, collective);
  if (failed()) return;
  failure_ = collective->what() + ": left before it was complete";
  transport_->fail(failure_);
}

device::Buffer Progress::scratch(std::int64_t bytes) {
  for (const device::Buffer& scratch : scratch_) {
    if (scratch.owners() == 1 && scratch.bytes() >= bytes) return scratch;
  }
  return scratch_.emplace_back(device::allocate({}, bytes));
}

}  // namespace zs::comm
