// SPDX-License-Identifier: Apache-2.0
// File input and output: input from a file or stdin, compressed or not; output that appears whole or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/compressed.hpp"
#include "base/folder.hpp"
#include "base/input.hpp"

namespace zs {

/// A destination: a path, or "-" for stdout. A regular file is written under a temporary name in the same folder,
/// synced, and renamed by commit(), so a kill -9 never destroys the last good file; without commit() nothing remains. A
/// symbolic link is followed, as cp does: its target is replaced. A file keeps its mode; a read-only file is refused.
/// Devices and pipes are written in place. Failures throw Error with the path.
class Output {
 public:
  explicit Output(const std::string& path);
  ~Output();

  void write(std::string_view bytes);
  /// Overwrites bytes written before, for a field that is known later. REQUIRES: offset + bytes.size() is not past what
  /// was written. Throws Error if the destination cannot seek (a pipe, a device).
  void rewrite(std::uint64_t offset, std::string_view bytes);
  /// Flushes, so that a reader of the pipe sees what was written. A file keeps its temporary name.
  void flush();
  /// Renames the file to its final name. REQUIRES: called once, after the last write.
  void commit();

 private:
  std::string path_;                      // as given, for messages
  std::optional<Temporary> temporary_{};  // none if written in place
  std::string pending_;
  int file_ = -1;
  void put(std::string_view bytes);
};

/// Output(path), write(bytes), commit().
void write_file(const std::string& path, std::string_view bytes);
/// The same to stdout.
void print(std::string_view text);

/// A file's content, and who may have written it and may read it.
struct Regular {
  std::string bytes;
  uid_t owner = 0;
  mode_t mode = 0;  ///< permissions
};

/// Reads a file from a folder in which other users can write: a regular file of at most `limit` bytes. Does not block
/// and does not follow symbolic links. Throws Error with the path, also if there is no file.
Regular read_regular(const std::string& path, std::size_t limit);

/// Writes all of `bytes` to an open file; `name` is used in the Error.
void write_all(int file, std::string_view bytes, const std::string& name);

}  // namespace zs
