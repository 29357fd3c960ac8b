// SPDX-License-Identifier: Apache-2.0
// How bytes travel between the ranks of a group: the only thing that threads of one process and MPI do differently.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zs::comm {

/// The largest message in bytes; the collectives cut what is larger. (MPI counts are 32 bits.)
inline constexpr std::int64_t kMessageBytes = std::int64_t{1} << 30;
/// Tags are 0 ... kTags - 1. (MPI promises 32767.)
inline constexpr int kTags = 32000;

/// A message under way. Its memory must stay until done() is true; destroying it before gives the message up.
class Message {
 public:
  virtual ~Message() = default;
  /// True once the memory is free again. Does not block. Throws zs::Error if the message has not the length expected.
  virtual bool done() = 0;
};

/// One rank's end. Messages of one sender with one tag arrive in the order sent. Not for use by two threads.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& host(int rank) const = 0;

  virtual std::unique_ptr<Message> send(int to, int tag, const void* data, std::int64_t bytes) = 0;
  virtual std::unique_ptr<Message> receive(int from, int tag, void* data, std::int64_t bytes) = 0;

  /// Called when nothing moved, for the `rounds`th time in a row: gives the core to whoever needs it.
  virtual void idle(int rounds) = 0;
  /// Why the group cannot go on, in words that name the rank; empty while it can.
  virtual std::string failure() const { return {}; }
  /// The ranks that have left the group for good: what has not come from them will not come.
  virtual std::vector<int> left() const { return {}; }
  /// Tells the other ranks that this one gives up, where there is a way.
  virtual void fail(const std::string& /*why*/) noexcept {}
  virtual void abort() = 0;

  /// This rank's end of a transport between `members` alone, ascending ranks of which it is one. All members call it,
  /// in the same order, after a collective that shows that they are in step.
  virtual std::unique_ptr<Transport> split(const std::vector<int>& members) = 0;
};

/// The error text for a message of `bytes` bytes from `from` where `expected` were due.
std::string length_text(int from, std::size_t bytes, std::size_t expected);

}  // namespace zs::comm
