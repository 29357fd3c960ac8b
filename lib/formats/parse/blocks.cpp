// SPDX-License-Identifier: Apache-2.0
#include "parse/blocks.hpp"

#include <cstring>

namespace zs::parse {

Blocks::~Blocks() {
  closing_ = true;
  free_.release();
  if (reader_.joinable()) reader_.join();
}

void Blocks::fill(Buffer& buffer) {
  if (!buffer.bytes) buffer.bytes = std::make_unique_for_overwrite<char[]>(size_ + kSlack);
  buffer.used = input_.read(buffer.bytes.get(), size_);
  std::memset(buffer.bytes.get() + buffer.used, 0, kSlack);
}

/// Fills the buffers after the first up to the end of the input; the last one is empty.
void Blocks::work() {
  for (std::size_t at = 1;; ++at) {
    free_.acquire();
    if (closing_) return;
    Buffer& buffer = buffers_[at % kBuffers];
    try {
      fill(buffer);
    } catch (...) {
      failure_ = std::current_exception();
      buffer.used = 0;
    }
    const bool last = buffer.used == 0;
    filled_.release();
    if (last) return;
  }
}

std::string_view Blocks::next() {
  if (!reader_.joinable()) {
    fill(buffers_[0]);
    if (ahead_ && buffers_[0].used == size_) reader_ = std::thread([this] { work(); });  // not worth it for less
    return {buffers_[0].bytes.get(), buffers_[0].used};
  }
  free_.release();
  filled_.acquire();
  const Buffer& buffer = buffers_[++taken_ % kBuffers];
  if (buffer.used == 0 && failure_) std::rethrow_exception(failure_);
  return {buffer.bytes.get(), buffer.used};
}

}  // namespace zs::parse
