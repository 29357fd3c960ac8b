// SPDX-License-Identifier: Apache-2.0
// The text of an input in blocks. For a file on disk a second thread reads ahead (checksum and gzip included) while the
// caller processes the block before.
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
  /// Zero bytes after a block that may be read.
  static constexpr std::size_t kSlack = 64;

  /// Blocks of at most `size` bytes. The input must outlive this object, and must not be used while it exists. `ahead`:
  /// a second thread may read; then next() must not be called after the end.
  Blocks(Input& input, std::size_t size, bool ahead) : input_(input), size_(size), ahead_(ahead && input.on_disk()) {}
  ~Blocks();

  /// The next block, empty at the (current) end; invalidates the previous one. Throws what the input throws.
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
