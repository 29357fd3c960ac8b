// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process, for tests: a message is a copy in the receiver's mailbox, so that no thread
// ever touches the memory of another, which may be unwinding.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/host.hpp"
#include "comm/message_group.hpp"

namespace zs::comm {
namespace {

struct Letter {
  int from, tag;
  std::vector<std::byte> bytes;
};

struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Letter> letters;
  std::uint64_t version = 0;  // counts what may end a wait
};

struct World {
  explicit World(std::vector<std::string> names) : boxes(names.size()), hosts(std::move(names)) {}

  void wake_all() {
    for (Mailbox& box : boxes) {
      const std::lock_guard lock(box.mutex);
      ++box.version;
      box.changed.notify_all();
    }
  }

  std::vector<Mailbox> boxes;
  std::vector<std::string> hosts;
  std::mutex mutex;     // of what follows
  std::string failure;  // the first
  std::vector<int> gone;
  std::map<std::pair<int, int>, std::shared_ptr<World>> parts;  // by number of the split and lowest member
};

class Delivered : public Message {
 public:
  bool done() override { return true; }
};

class ThreadTransport;

class Awaited : public Message {
 public:
  Awaited(ThreadTransport& transport, int from, int tag, void* data, std::size_t bytes)
      : transport_(transport), from_(from), tag_(tag), data_(data), bytes_(bytes) {}
  ~Awaited() override;

  bool done() override;
  bool matches(const Letter& letter) const { return letter.from == from_ && letter.tag == tag_; }
  void take(Letter letter) {
    letter_ = std::move(letter.bytes);
    arrived_ = true;
  }

 private:
  ThreadTransport& transport_;
  int from_, tag_;
  void* data_;
  std::size_t bytes_;
  bool arrived_ = false;
  std::vector<std::byte> letter_;
};

class ThreadTransport : public Transport {
 public:
  ThreadTransport(std::shared_ptr<World> world, int rank)
      : world_(std::move(world)), rank_(rank), box_(world_->boxes[static_cast<std::size_t>(rank)]) {}
  ~ThreadTransport() override {
    {
      const std::lock_guard lock(world_->mutex);
      world_->gone.push_back(rank_);
    }
    world_->wake_all();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_->boxes.size()); }
  const std::string& host(int rank) const override { return world_->hosts[static_cast<std::size_t>(rank)]; }

  std::unique_ptr<Message> send(int to, int tag, const void* data, std::int64_t bytes) override {
    const auto* begin = static_cast<const std::byte*>(data);
    Mailbox& box = world_->boxes[static_cast<std::size_t>(to)];
    Letter letter{rank_, tag, std::vector<std::byte>(begin, begin + bytes)};
    const std::lock_guard lock(box.mutex);
    box.letters.push_back(std::move(letter));
    ++box.version;
    box.changed.notify_all();
    return std::make_unique<Delivered>();
  }

  std::unique_ptr<Message> receive(int from, int tag, void* data, std::int64_t bytes) override {
    auto message = std::make_unique<Awaited>(*this, from, tag, data, static_cast<std::size_t>(bytes));
    const auto early = std::find_if(early_.begin(), early_.end(), [&](const Letter& l) { return message->matches(l); });
    if (early != early_.end()) {
      message->take(std::move(*early));
      early_.erase(early);
    } else {
      awaited_.push_back(message.get());
    }
    return message;
  }

  // Gives the letters that have come to those who wait, in the order in which they began to.
  void deliver() {
    std::deque<Letter> letters;
    {
      const std::lock_guard lock(box_.mutex);
      letters.swap(box_.letters);
    }
    for (Letter& letter : letters) {
      const auto waiting =
          std::find_if(awaited_.begin(), awaited_.end(), [&](Awaited* a) { return a->matches(letter); });
      if (waiting == awaited_.end()) {
        early_.push_back(std::move(letter));
      } else {
        (*waiting)->take(std::move(letter));
        awaited_.erase(waiting);
      }
    }
  }
  void forget(Awaited* message) { std::erase(awaited_, message); }

  // Sleeps until something has changed since the last call; wakes now and then for the caller's deadline.
  void idle(int) override {
    std::unique_lock lock(box_.mutex);
    box_.changed.wait_for(lock, std::chrono::milliseconds(20), [this] { return box_.version != seen_; });
    seen_ = box_.version;
  }

  std::string failure() const override {
    const std::lock_guard lock(world_->mutex);
    return world_->failure;
  }
  std::vector<int> left() const override {
    const std::lock_guard lock(world_->mutex);
    return world_->gone;
  }
  void fail(const std::string& why) noexcept override {
    {
      const std::lock_guard lock(world_->mutex);
      if (world_->failure.empty()) world_->failure = "rank " + std::to_string(rank_) + " failed: " + why;
    }
    world_->wake_all();
  }
  void abort() override { fail("aborted"); }

  std::unique_ptr<Transport> split(const std::vector<int>& members) override {
    const std::lock_guard lock(world_->mutex);
    auto& part = world_->parts[{splits_++, members.front()}];
    std::vector<std::string> hosts;
    for (const int member : members) hosts.push_back(host(member));
    if (!part) part = std::make_shared<World>(hosts);
    const auto place = std::find(members.begin(), members.end(), rank_) - members.begin();
    return std::make_unique<ThreadTransport>(part, static_cast<int>(place));
  }

 private:
  std::shared_ptr<World> world_;
  int rank_;
  Mailbox& box_;
  std::uint64_t seen_ = 0;
  int splits_ = 0;                 // so far, the same on every rank
  std::vector<Awaited*> awaited_;  // in the order asked for
  std::deque<Letter> early_;       // came before they were asked for
};

Awaited::~Awaited() {
  if (!arrived_) transport_.forget(this);
}

bool Awaited::done() {
  if (!arrived_) transport_.deliver();
  if (!arrived_) return false;
  if (letter_.size() != bytes_) throw Error(length_text(from_, letter_.size(), bytes_));
  if (bytes_ > 0) std::memcpy(data_, letter_.data(), bytes_);
  return true;
}

}  // namespace

std::vector<std::unique_ptr<Group>> in_process(int ranks, const Options& options) {
  if (ranks < 1) throw Error("a group needs at least one rank, not " + std::to_string(ranks));
  std::vector<std::string> hosts(static_cast<std::size_t>(ranks), host_name());
  for (int rank = 0; rank < ranks && options.ranks_of_host > 0; ++rank)
    hosts[static_cast<std::size_t>(rank)] = "host" + std::to_string(rank / options.ranks_of_host);
  const auto world = std::make_shared<World>(std::move(hosts));
  std::vector<std::unique_ptr<Group>> groups;
  groups.reserve(world->boxes.size());
  for (int rank = 0; rank < ranks; ++rank) {
    auto transport = std::make_unique<ThreadTransport>(world, rank);
    groups.push_back(std::make_unique<MessageGroup>(std::make_shared<Progress>(std::move(transport), options)));
  }
  return groups;
}

void run_in_process(int ranks, const std::function<void(Group&)>& body, const Options& options) {
  std::vector<std::unique_ptr<Group>> groups = in_process(ranks, options);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  threads.reserve(groups.size());
  for (std::unique_ptr<Group>& group : groups) {
    threads.emplace_back([&] {
      try {
        body(*group);
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        group->abort();
      }
      group.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace zs::comm
