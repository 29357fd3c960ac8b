// SPDX-License-Identifier: Apache-2.0
#include "parse/source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.hpp"

namespace zs::parse {

struct Source::Inflater {
  z_stream stream{};
  std::vector<char> raw = std::vector<char>(1 << 18);
  bool ended = false;  // at the end of a gzip member, where the file may end

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
  on_disk_ = S_ISREG(status.st_mode);
  if (on_disk_) size_at_open_ = status.st_size - std::max<off_t>(0, ::lseek(file_, 0, SEEK_CUR));
  checksum_ = std::make_unique<Checksum>(size_at_open_);
}

Source::~Source() { ::close(file_); }

std::size_t Source::read_raw(char* buffer, std::size_t size) {
  while (true) {
    const ssize_t count = ::read(file_, buffer, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(name_, 0, errno_text());
    checksum_->add(buffer, static_cast<std::size_t>(count));
    raw_read_ += count;
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
  return inflate(buffer, size);
}

std::size_t Source::inflate(char* buffer, std::size_t size) {
  Inflater& gzip = *inflater_;
  gzip.stream.next_out = reinterpret_cast<Bytef*>(buffer);
  gzip.stream.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1U << 30));
  const std::size_t asked = gzip.stream.avail_out;
  while (gzip.stream.avail_out == asked) {
    if (gzip.stream.avail_in == 0) {
      const std::size_t count = read_raw(gzip.raw.data(), gzip.raw.size());
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
