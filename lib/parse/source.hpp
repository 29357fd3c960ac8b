// SPDX-License-Identifier: Apache-2.0
// The bytes of a log: a file or stdin, gzip or not, with the checksum of what lies on disk.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "parse/checksum.hpp"

namespace zs::parse {

/// A log being read. Every failure, a directory and truncated gzip data included, throws Error with the path.
class Source {
 public:
  explicit Source(const std::string& path);  ///< "-" is stdin
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// Reads up to `size` > 1 bytes of text; 0 at the (present) end.
  std::size_t read(char* buffer, std::size_t size);
  /// True for a file on disk: a read() of it does not wait for another program.
  bool on_disk() const { return on_disk_; }

  /// Of what was read, as it lies on disk (compressed, if it is).
  Checksum& checksum() { return *checksum_; }
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
  bool on_disk_ = false, started_ = false;
  std::int64_t size_at_open_ = 0, raw_read_ = 0;
  std::unique_ptr<Inflater> inflater_;
  std::unique_ptr<Checksum> checksum_;
};

}  // namespace zs::parse
