// SPDX-License-Identifier: Apache-2.0
// The bytes of a log: a file or stdin, gzip or not, with the SHA-256 of what lies on disk, which a second
// thread computes while the first one parses.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace zs::parse {

/// SHA-256 over blocks that stay in the caller's memory while they are hashed.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  /// Queues a block. REQUIRES: the bytes stay as they are until wait(the ticket returned).
  std::int64_t add(const char* bytes, std::size_t size);
  /// Blocks until the block of `ticket` (and all before it) is hashed.
  void wait(std::int64_t ticket);
  /// 64 hex digits. REQUIRES: called once, after the last add().
  std::string digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A log being read. Every failure, a directory and truncated gzip data included, throws Error with the path.
class Source {
 public:
  explicit Source(const std::string& path);  ///< "-" is stdin
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// Reads up to `size` > 1 bytes of text; 0 at the (present) end. The bytes are being hashed until release().
  std::size_t read(char* buffer, std::size_t size);
  /// A ticket for release(): all that was read so far.
  std::int64_t ticket() const { return ticket_; }
  /// Blocks until the bytes read up to `ticket` may be overwritten.
  void release(std::int64_t ticket) { hasher_.wait(ticket); }

  /// SHA-256 of the file as it lies on disk (compressed, if it is). REQUIRES: called once, at the end.
  std::string sha256() { return hasher_.digest(); }
  /// Bytes that the file lost since it was opened, 0 in the usual case. REQUIRES: at the end.
  std::int64_t missing() const;
  /// True if the path now names another file, or the file is shorter than what was read: a rotated log.
  bool replaced() const;
  /// How the input is named in messages: the path, or "stdin".
  const std::string& name() const { return name_; }

 private:
  struct Inflater;
  std::size_t read_raw(char* buffer, std::size_t size);
  std::size_t inflate(char* buffer, std::size_t size);

  std::string name_, path_;
  int file_ = -1;
  std::int64_t size_at_open_ = 0, raw_read_ = 0, ticket_ = 0;
  bool started_ = false;
  std::unique_ptr<Inflater> inflater_;
  Hasher hasher_;
};

}  // namespace zs::parse
