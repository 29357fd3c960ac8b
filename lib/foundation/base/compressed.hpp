// SPDX-License-Identifier: Apache-2.0
// Compression: streams of Zstandard are read, files of gzip written.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace zs {

/// Whether a file that begins so may be of Zstandard: its first four bytes are of a frame, or of one to be skipped, as
/// pzstd writes it before each.
bool may_be_zstandard(std::string_view begin);
inline constexpr std::size_t kZstandardMagic = 4;  ///< the bytes that decide

/// The content of a Zstandard stream. Throws Error, which begins with `name`, if it is damaged or truncated.
class Unzstd {
 public:
  /// Reads up to `size` bytes of the compressed stream; 0 at its end.
  using Read = std::function<std::size_t(char* buffer, std::size_t size)>;

  /// `begin`: bytes of the stream that were read before.
  Unzstd(Read read, std::string_view begin, std::string name);
  ~Unzstd();
  Unzstd(const Unzstd&) = delete;
  Unzstd& operator=(const Unzstd&) = delete;

  /// Reads up to `size` bytes; 0 at the end.
  std::size_t read(char* buffer, std::size_t size);

 private:
  Read read_;
  std::string name_;
  std::vector<char> input_;
  std::size_t begin_ = 0, end_ = 0;  // of input_: the unread part
  bool within_ = true;               // inside a frame
  void* stream_ = nullptr;           // ZSTD_DStream
};

/// Compresses the file `from` into the file `to`, which appears whole or not at all. Throws Error.
void gzip(const std::string& from, const std::string& to);

}  // namespace zs
