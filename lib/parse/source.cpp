// SPDX-License-Identifier: Apache-2.0
#include "parse/source.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace zs::parse {

// ---- Hasher
// ---------------------------------------------------------------------------------------------------------- OpenSSL's
// SHA-256, since it uses the processor's SHA instructions where there are any.

struct Hasher::State {
  struct Block {
    const char* bytes;
    std::size_t size;
  };
  EVP_MD_CTX* context = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Block> queue;
  std::int64_t added = 0, hashed = 0;
  bool closing = false;
  std::thread worker;

  void update(const Block& block) {
    if (!context) {
      context = EVP_MD_CTX_new();
      if (!context || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) throw Error("openssl has no SHA-256");
    }
    if (block.bytes) EVP_DigestUpdate(context, block.bytes, block.size);
  }
  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return closing || !queue.empty(); });
      if (queue.empty()) return;
      const Block block = queue.front();
      queue.pop_front();
      lock.unlock();
      update(block);
      lock.lock();
      ++hashed;
      changed.notify_all();
    }
  }
  void close() {
    if (!worker.joinable()) return;
    {
      const std::lock_guard lock(mutex);
      closing = true;
      changed.notify_all();
    }
    worker.join();
  }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}

Hasher::~Hasher() {
  state_->close();
  EVP_MD_CTX_free(state_->context);
}

std::int64_t Hasher::add(const char* bytes, std::size_t size) {
  State& state = *state_;
  if (state.added == 0) {  // most logs are one block: not worth a thread
    state.update({bytes, size});
    state.hashed = 1;
    return state.added = 1;
  }
  if (!state.worker.joinable()) state.worker = std::thread([&state] { state.work(); });
  const std::lock_guard lock(state.mutex);
  state.queue.push_back({bytes, size});
  state.changed.notify_all();
  return ++state.added;
}

void Hasher::wait(std::int64_t ticket) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->hashed >= ticket; });
}

std::string Hasher::digest() {
  state_->close();
  state_->update({nullptr, 0});
  std::array<unsigned char, 32> bytes;
  EVP_DigestFinal_ex(state_->context, bytes.data(), nullptr);
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// ---- Source
// ----------------------------------------------------------------------------------------------------------

struct Source::Inflater {
  z_stream stream{};
  std::vector<char> raw = std::vector<char>(1 << 18);
  bool ended = false;  // at the end of a gzip member, where the file may end
  std::int64_t ticket = 0;

  Inflater() {
    if (inflateInit2(&stream, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

Source::Source(const std::string& path) : name_(path == "-" ? "stdin" : path), path_(path) {
  file_ = path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw Error(name_, 0, errno_text());
  struct stat status {};
  if (::fstat(file_, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(file_);
    throw Error(name_, 0, "is a directory, expected a file");
  }
  // Of a file on stdin, another program may have read the start.
  if (S_ISREG(status.st_mode)) size_at_open_ = status.st_size - std::max<off_t>(0, ::lseek(file_, 0, SEEK_CUR));
}

Source::~Source() { ::close(file_); }

std::size_t Source::read_raw(char* buffer, std::size_t size) {
  while (true) {
    const ssize_t count = ::read(file_, buffer, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(name_, 0, errno_text());
    if (count > 0) {
      ticket_ = hasher_.add(buffer, static_cast<std::size_t>(count));
      raw_read_ += count;
    }
    return static_cast<std::size_t>(count);
  }
}

std::size_t Source::read(char* buffer, std::size_t size) {
  if (inflater_) return inflate(buffer, size);
  std::size_t count = read_raw(buffer, size);
  if (started_ || count == 0) return count;
  if (count == 1) count += read_raw(buffer + 1, size - 1);  // a pipe may give less than the magic
  started_ = true;
  if (count < 2 || buffer[0] != '\x1f' || buffer[1] != '\x8b') return count;
  inflater_ = std::make_unique<Inflater>();
  if (inflater_->raw.size() < count) inflater_->raw.resize(count);
  std::memcpy(inflater_->raw.data(), buffer, count);
  inflater_->stream.next_in = reinterpret_cast<Bytef*>(inflater_->raw.data());
  inflater_->stream.avail_in = static_cast<uInt>(count);
  release(ticket_);
  return inflate(buffer, size);
}

std::size_t Source::inflate(char* buffer, std::size_t size) {
  Inflater& gzip = *inflater_;
  gzip.stream.next_out = reinterpret_cast<Bytef*>(buffer);
  gzip.stream.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1U << 30));
  const std::size_t asked = gzip.stream.avail_out;
  while (gzip.stream.avail_out == asked) {
    if (gzip.stream.avail_in == 0) {
      release(gzip.ticket);
      const std::size_t count = read_raw(gzip.raw.data(), gzip.raw.size());
      gzip.ticket = ticket_;
      if (count == 0) {
        if (!gzip.ended) throw Error(name_, 0, "truncated gzip data");
        return 0;
      }
      gzip.stream.next_in = reinterpret_cast<Bytef*>(gzip.raw.data());
      gzip.stream.avail_in = static_cast<uInt>(count);
    }
    if (gzip.ended) {  // another member, as `cat a.gz b.gz` makes them
      inflateReset(&gzip.stream);
      gzip.ended = false;
    }
    const int code = ::inflate(&gzip.stream, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      gzip.ended = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      throw Error(name_, 0,
                  std::string("corrupt gzip data: ") + (gzip.stream.msg ? gzip.stream.msg : "no gzip member"));
    }
  }
  return asked - gzip.stream.avail_out;
}

std::int64_t Source::missing() const { return std::max<std::int64_t>(0, size_at_open_ - raw_read_); }

bool Source::replaced() const {
  struct stat by_path {
  }, open{};
  if (path_ == "-" || ::stat(path_.c_str(), &by_path) != 0 || ::fstat(file_, &open) != 0) return false;
  return by_path.st_ino != open.st_ino || by_path.st_dev != open.st_dev || open.st_size < raw_read_;
}

}  // namespace zs::parse
