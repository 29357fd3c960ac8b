// SPDX-License-Identifier: Apache-2.0
// Bytes in and out: input from a file or stdin, compressed or not; output that appears whole or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/temporary.hpp"
#include "base/zstandard.hpp"

namespace zs {

/// What one input may fill of this machine's memory: a quarter of it.
std::uint64_t most_in_memory();

/// A file, or stdin for "-". Gzip and Zstandard are recognised by their magic and read through.
/// Every failure, a directory or a truncated stream included, throws Error with the path.
class Input {
 public:
  using Raw = std::function<void(std::string_view)>;

  /// `raw` is shown each byte that is read, as it lies on disk (compressed, if it is).
  explicit Input(const std::string& path, Raw raw = {});
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// Reads up to `size` > 1 bytes; 0 at the (present) end.
  std::size_t read(char* buffer, std::size_t size);
  /// All that is left. Throws Error where that is more than `most` bytes (a device without an end, a gzip bomb).
  std::string read_all(std::uint64_t most = most_in_memory());
  /// How the input is named in messages: the path, or "stdin".
  const std::string& name() const { return name_; }

  /// True for a file on disk: a read() of it does not wait for another program.
  bool on_disk() const { return on_disk_; }
  /// Bytes on disk from where reading began, as they were when it did; 0 for what is no file.
  std::int64_t size() const { return size_; }
  /// Bytes that the file lost since then, 0 in the usual case. REQUIRES: at the end.
  std::int64_t missing() const;
  /// True if the path now names another file, or the file is shorter than what was read: a rotated log.
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

/// A destination: a path, or "-" for stdout. A regular file is written beside itself, synced and renamed by
/// commit(), so a kill -9 never costs the last good file; without commit() nothing remains. A link is written through,
/// as cp does: what it leads to is replaced, the link stays. A file keeps its mode, and one that may not be written is
/// refused. Devices and pipes are written in place. Failures throw Error with the path.
class Output {
 public:
  explicit Output(const std::string& path);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view bytes);
  /// Replaces bytes written before, for a field known only after what follows it. REQUIRES: offset + bytes.size()
  /// is not past what was written. Throws Error where the destination cannot seek (a pipe, a device).
  void rewrite(std::uint64_t offset, std::string_view bytes);
  /// Hands on what was written so far, so that a reader of the pipe sees it. A file stays under its temporary name.
  void flush();
  /// Makes the file appear under its name. REQUIRES: called once, after the last write.
  void commit();

 private:
  std::string path_;                      // as given, for messages
  std::optional<Temporary> temporary_{};  // none when written in place
  std::string pending_;
  int file_ = -1;
  void put(std::string_view bytes);
};

/// Output(path), write(bytes), commit().
void write_file(const std::string& path, std::string_view bytes);

/// A file as it was read: its content, and what says who may have written it and who may read it.
struct Regular {
  std::string bytes;
  uid_t owner = 0;
  mode_t mode = 0;  ///< permissions
};

/// Reads a file in a place where others may put anything: a regular file of at most `limit` bytes. Does not wait, and
/// does not follow a link. Throws Error with the path, also where there is none.
Regular read_regular(const std::string& path, std::size_t limit);

/// Writes all of `bytes` to an open file; `name` is for the Error.
void write_all(int file, std::string_view bytes, const std::string& name);

}  // namespace zs
