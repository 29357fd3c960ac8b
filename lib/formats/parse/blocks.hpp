// SPDX-License-Identifier: Apache-2.0
// The text of an input, block after block. Of a file on disk a second thread reads (checksum and gzip included) while
// the caller uses the block before.
#pragma once
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <semaphore>
#include <string_view>
#include <thread>

#include "base/file.hpp"

namespace zs::parse {

class Blocks {
 public:
  /// Bytes behind a block that may be read; they are 0.
  static constexpr std::size_t kSlack = 64;

  /// Blocks of at most `size` bytes. The input outlives this, and is not to be used until this is gone.
  /// `ahead`: a second thread may read; then next() is not to be called again after the end.
  Blocks(Input& input, std::size_t size, bool ahead) : input_(input), size_(size), ahead_(ahead && input.on_disk()) {}
  ~Blocks();

  /// The next block, empty at the (present) end; the one before is no longer valid. Throws what the input throws.
  std::string_view next();

 private:
  static constexpr std::ptrdiff_t kBuffers = 8;
  struct Buffer {
    std::unique_ptr<char[]> bytes;
    std::size_t used = 0;
  };
  void fill(Buffer& buffer);
  void work();

  Input& input_;
  const std::size_t size_;
  const bool ahead_;
  std::array<Buffer, kBuffers> buffers_;
  std::size_t taken_ = 0;  // buffers so far
  std::counting_semaphore<kBuffers> free_{kBuffers - 1}, filled_{0};
  std::atomic<bool> closing_ = false;
  std::exception_ptr failure_;
  std::thread reader_;
};

}  // namespace zs::parse
