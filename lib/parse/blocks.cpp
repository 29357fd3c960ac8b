// SPDX-License-Identifier: Apache-2.0
#include "parse/blocks.hpp"

#include <cstring>

namespace zs::parse {

Blocks::Blocks(Source& source, std::size_t size, bool ahead)
    : source_(source), size_(size), ahead_(ahead && source.on_disk()) {}

Blocks::~Blocks() {
  if (!reader_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

void Blocks::fill(Buffer& buffer) {
  if (!buffer.bytes) buffer.bytes = std::make_unique_for_overwrite<char[]>(size_ + kSlack);
  buffer.used = source_.read(buffer.bytes.get(), size_);
  std::memset(buffer.bytes.get() + buffer.used, 0, kSlack);
}

/// Fills buffers up to the end of the source; the last one is empty.
void Blocks::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || filled_ - released_ < kBuffers; });
    if (closing_) return;
    Buffer& buffer = buffers_[filled_ % kBuffers];
    lock.unlock();
    try {
      fill(buffer);
    } catch (...) {
      failure_ = std::current_exception();
      buffer.used = 0;
    }
    lock.lock();
    ++filled_;
    changed_.notify_all();
    if (buffer.used == 0) return;
  }
}

std::string_view Blocks::next() {
  if (!reader_.joinable()) {
    Buffer& buffer = buffers_[0];
    fill(buffer);
    if (ahead_ && buffer.used == size_) {  // most logs are smaller: not worth a thread
      filled_ = taken_ = 1;
      reader_ = std::thread([this] { work(); });
    }
    return {buffer.bytes.get(), buffer.used};
  }
  std::unique_lock lock(mutex_);
  ++released_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return filled_ > taken_; });
  const Buffer& buffer = buffers_[taken_++ % kBuffers];
  if (failure_ && buffer.used == 0) std::rethrow_exception(failure_);
  return {buffer.bytes.get(), buffer.used};
}

}  // namespace zs::parse
