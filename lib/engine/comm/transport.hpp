// SPDX-License-Identifier: Apache-2.0
// Point-to-point messages between the ranks of a group: all that differs between threads of one process and MPI.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zs::comm {

/// The largest message in bytes; the collectives divide larger ones. (MPI counts are 32 bits.)
inline constexpr std::int64_t kMessageBytes = std::int64_t{1} << 30;
/// Tags are 0 ... kTags - 1. (MPI guarantees 32767.)
inline constexpr int kTags = 32000;

/// A message in flight. Its memory must not change until done() is true; destroying it before cancels the message.
class Message {
 public:
  virtual ~Message() = default;
  /// True once the memory is free again. Does not block. Throws zs::Error if the message has an unexpected length.
  virtual bool done() = 0;
};

/// One rank's end. Messages from one sender with one tag arrive in order. Not thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& host(int rank) const = 0;

  virtual std::unique_ptr<Message> send(int to, int tag, const void* data, std::int64_t bytes) = 0;
  virtual std::unique_ptr<Message> receive(int from, int tag, void* data, std::int64_t bytes) = 0;

  /// Called when nothing advanced, for the `rounds`th time in a row: yields the core.
  virtual void idle(int rounds) = 0;
  /// Why the group cannot continue, naming the rank; empty while it can.
  virtual std::string failure() const { return {}; }
  /// The ranks that have left the group for good: no further messages will come from them.
  virtual std::vector<int> left() const { return {}; }
  /// Notifies the other ranks that this one gives up, if possible.
  virtual void fail(const std::string& /*why*/) noexcept {}
  virtual void abort() = 0;

  /// This rank's end of a transport between `members`, ascending ranks that include this one. All members call it, in
  /// the same order, after a collective that shows that they are in step.
  virtual std::unique_ptr<Transport> split(const std::vector<int>& members) = 0;
};

/// The error for a message of `bytes` bytes from `from` instead of `expected`.
std::string length_text(int from, std::size_t bytes, std::size_t expected);

}  // namespace zs::comm
