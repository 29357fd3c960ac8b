// SPDX-License-Identifier: Apache-2.0
// The text of a source, block after block. Of a file on disk a second thread reads (checksum and gzip included) while
// the caller uses the block before.
#pragma once
#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "parse/source.hpp"

namespace zs::parse {

class Blocks {
 public:
  /// Bytes behind a block that may be read; they are 0.
  static constexpr std::size_t kSlack = 64;

  /// Blocks of at most `size` bytes. The source outlives this, and is not to be used until this is gone.
  /// `ahead`: a second thread may read; then next() is not to be called again after the end.
  Blocks(Source& source, std::size_t size, bool ahead);
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  /// The next block, empty at the (present) end; the one before is no longer valid. Throws what the source throws.
  std::string_view next();

 private:
  static constexpr std::size_t kBuffers = 8;
  struct Buffer {
    std::unique_ptr<char[]> bytes;
    std::size_t used = 0;
  };
  void fill(Buffer& buffer);
  void work();

  Source& source_;
  const std::size_t size_;
  const bool ahead_;
  std::array<Buffer, kBuffers> buffers_;
  std::thread reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t filled_ = 0, taken_ = 0, released_ = 0;  // buffers so far
  bool closing_ = false;
  std::exception_ptr failure_;
};

}  // namespace zs::parse
