// SPDX-License-Identifier: Apache-2.0
// Input from a file or stdin, compressed or not.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/compressed.hpp"

namespace zs {

/// Bytes of memory that one input may use: a quarter of this machine's.
std::uint64_t most_in_memory();

/// A file's name without the .gz or .zst at its end.
std::string uncompressed_name(std::string name);

/// A file, or stdin for "-". Gzip and Zstandard are recognised by their first bytes and decompressed. Every failure,
/// including a directory or a truncated stream, throws Error with the path.
class Input {
 public:
  using Raw = std::function<void(std::string_view)>;

  /// `raw` gets every byte as it is on disk (compressed, if the file is).
  explicit Input(const std::string& path, Raw raw = {});
  ~Input();

  /// Reads up to `size` > 1 bytes; 0 at the (current) end.
  std::size_t read(char* buffer, std::size_t size);
  /// Reads the rest. Throws Error if that is more than `most` bytes (an endless device, a gzip bomb).
  std::string read_all(std::uint64_t most = most_in_memory());
  /// The name in messages: the path, or "stdin".
  const std::string& name() const { return name_; }

  /// True for a file on disk: read() does not wait for another program.
  bool on_disk() const { return on_disk_; }
  /// Bytes on disk from the start of reading, measured then; 0 if this is not a regular file.
  std::int64_t size() const { return size_; }
  /// Bytes that the file lost since then, usually 0. REQUIRES: at the end.
  std::int64_t missing() const;
  /// True if the path now names another file, or if the file is shorter than the part that was read: the log was
  /// rotated.
  bool replaced() const;

 private:
  struct Inflater;
  std::size_t read_raw(char* buffer, std::size_t size);
  std::size_t inflate(char* buffer, std::size_t size);

  std::string name_, path_;
  Raw raw_;
  int file_ = -1;
  bool on_disk_ = false, started_ = false;
  std::int64_t size_ = 0, raw_read_ = 0;
  std::unique_ptr<Inflater> inflater_;
  std::unique_ptr<Unzstd> unzstd_;
};

/// Up to `bytes` of an input's content. A packed file may be cut: it gives what can be unpacked. Throws Error if that
/// is nothing.
std::string read_start(Input& input, std::size_t bytes);

/// Called after each read of a file on disk: its name, bytes read so far, and its size, both as on disk. At the end of
/// the file the two are equal. Called by the thread that reads.
using ReadWatcher = std::function<void(const std::string& name, std::int64_t read, std::int64_t size)>;

/// Sets the callback; empty: none. REQUIRES: no thread reads.
void watch_reading(ReadWatcher watcher);

}  // namespace zs
