// SPDX-License-Identifier: Apache-2.0
#include "comm/store_transport.hpp"

#include <c10/util/Flags.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/number.hpp"

C10_DECLARE_int(caffe2_log_level);

namespace zs::comm {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// The store takes no more at once (libuv's, 8 MiB).
constexpr std::int64_t kPiece = std::int64_t{4} << 20;
/// For the others to read the last messages: whoever has the store leaves last.
constexpr std::chrono::seconds kFarewell{20};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  if (!value || !*value)
    throw Error(std::string(name) +
                " is not set, though RANK and WORLD_SIZE are: start the ranks with torchrun, mpirun or srun");
  return value;
}

int number(const char* name, int least, int most) {
  const std::string text = variable(name);
  const auto value = parse_int(text);
  if (!value || *value < least || *value > most)
    throw Error(std::string(name) + "=" + text + " is not a number from " + std::to_string(least) + " to " +
                std::to_string(most));
  return static_cast<int>(*value);
}

std::int64_t pieces(std::int64_t bytes) { return bytes == 0 ? 1 : (bytes + kPiece - 1) / kPiece; }

class Sent final : public Message {
 public:
  bool done() override { return true; }
};

class AwaitedInStore final : public Message {
 public:
  AwaitedInStore(c10d::TCPStore& store, std::string key, int from, void* data, std::int64_t bytes)
      : store_(store), key_(std::move(key)), from_(from), data_(static_cast<std::byte*>(data)), bytes_(bytes) {}

  bool done() override {
    for (; taken_ < pieces(bytes_); ++taken_) {
      const std::string key = key_ + "/" + std::to_string(taken_);
      if (!store_.check({key})) return false;
      const Bytes piece = store_.get(key);
      store_.deleteKey(key);
      // The first byte says whether more pieces follow, so that any piece shows a difference in length.
      const std::int64_t begin = taken_ * kPiece, size = static_cast<std::int64_t>(piece.size()) - 1;
      const bool last = taken_ + 1 == pieces(bytes_);
      if (size != std::min(kPiece, bytes_ - begin) || (piece[0] == 0) != last)
        throw Error(length_text(from_, static_cast<std::size_t>(begin + size), static_cast<std::size_t>(bytes_)));
      if (size > 0) std::memcpy(data_ + begin, piece.data() + 1, static_cast<std::size_t>(size));
    }
    return true;
  }

 private:
  c10d::TCPStore& store_;
  std::string key_;
  int from_;
  std::byte* data_;
  std::int64_t bytes_, taken_ = 0;
};

}  // namespace

StoreTransport::StoreTransport(double timeout) : whole_(true) {
  const int ranks = number("WORLD_SIZE", 1, 1 << 20);
  rank_ = number("RANK", 0, ranks - 1);
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(number("MASTER_PORT", 1, 65535));
  // torchrun's agent has the store already, and one attempt after another finds its own place in it.
  const char* const agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  const char* const attempt = std::getenv("TORCHELASTIC_RESTART_COUNT");
  options.isServer = rank_ == 0 && !(agent && std::string(agent) == "True");
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000));
  const std::string address = variable("MASTER_ADDR");
  place_ = std::string("zs/") + (attempt ? attempt : "0") + "/";
  hosts_.resize(static_cast<std::size_t>(ranks));
  FLAGS_caffe2_log_level = 3;  // the store logs what it throws, with pages of addresses
  try {
    store_ = std::make_shared<c10d::TCPStore>(address, options);
    const std::string host = host_name();
    store_->set(place_ + "host/" + std::to_string(rank_), Bytes(host.begin(), host.end()));
    for (int rank = 0; rank < ranks; ++rank) {
      const Bytes theirs = store_->get(place_ + "host/" + std::to_string(rank));
      hosts_[static_cast<std::size_t>(rank)].assign(theirs.begin(), theirs.end());
    }
  } catch (const c10::Error& error) {
    throw Error("the ranks do not meet at " + address + ":" + std::to_string(options.port) +
                " (MASTER_ADDR, MASTER_PORT) within " + to_text(timeout) +
                " s: " + std::string(error.what_without_backtrace()).substr(0, 200));
  }
}

StoreTransport::StoreTransport(std::shared_ptr<c10d::TCPStore> store, std::string place, int rank,
                               std::vector<std::string> hosts)
    : store_(std::move(store)), place_(std::move(place)), rank_(rank), hosts_(std::move(hosts)) {}

StoreTransport::~StoreTransport() {
  if (!whole_ || failed_ || std::uncaught_exceptions() > 0) return;
  try {
    store_->set(place_ + "left/" + std::to_string(rank_), {1});
    std::vector<std::string> left;
    for (int rank = 0; rank < size(); ++rank) left.push_back(place_ + "left/" + std::to_string(rank));
    if (rank_ == 0) store_->wait(left, kFarewell);
  } catch (const std::exception&) {
    // Another rank has failed, and says so.
  }
}

std::string StoreTransport::key(int from, int to, int tag, std::int64_t number) const {
  return place_ + std::to_string(from) + "/" + std::to_string(to) + "/" + std::to_string(tag) + "/" +
         std::to_string(number);
}

std::unique_ptr<Message> StoreTransport::send(int to, int tag, const void* data, std::int64_t bytes) {
  const std::string name = key(rank_, to, tag, sent_[{to, tag}]++);
  const auto* const from = static_cast<const std::uint8_t*>(data);
  for (std::int64_t i = 0; i < pieces(bytes); ++i) {
    const std::int64_t begin = i * kPiece, end = std::min(bytes, begin + kPiece);
    Bytes piece(static_cast<std::size_t>(1 + end - begin));
    piece[0] = i + 1 < pieces(bytes) ? 1 : 0;
    if (end > begin) std::memcpy(&piece[1], from + begin, static_cast<std::size_t>(end - begin));
    store_->set(name + "/" + std::to_string(i), piece);
  }
  return std::make_unique<Sent>();
}

std::unique_ptr<Message> StoreTransport::receive(int from, int tag, void* data, std::int64_t bytes) {
  return std::make_unique<AwaitedInStore>(*store_, key(from, rank_, tag, received_[{from, tag}]++), from, data, bytes);
}

void StoreTransport::idle(int rounds) {
  std::this_thread::sleep_for(std::chrono::microseconds(std::min(2000, 50 * (rounds + 1))));
}

std::string StoreTransport::failure() const {
  const std::string place = place_ + "failed";
  if (!store_->check({place})) return "";
  const Bytes text = store_->get(place);
  return {text.begin(), text.end()};
}

void StoreTransport::fail(const std::string& why) noexcept {
  failed_ = true;
  try {
    const std::string text = "rank " + std::to_string(rank_) + " failed: " + why;
    store_->set(place_ + "failed", Bytes(text.begin(), text.end()));
  } catch (const std::exception&) {
    // The store has gone with its rank: the launcher ends the others.
  }
}

void StoreTransport::abort() {
  fail("gave up");
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(Status::failed));
}

std::unique_ptr<Transport> StoreTransport::split(const std::vector<int>& members) {
  std::vector<std::string> hosts;
  for (const int member : members) hosts.push_back(host(member));
  const auto index = std::find(members.begin(), members.end(), rank_) - members.begin();
  const std::string place = place_ + "part" + std::to_string(splits_++) + "." + std::to_string(members.front()) + "/";
  return std::unique_ptr<Transport>(new StoreTransport(store_, place, static_cast<int>(index), std::move(hosts)));
}

}  // namespace zs::comm
