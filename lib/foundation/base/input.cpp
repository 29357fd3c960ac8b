// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/claim.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"

namespace zs {
namespace {

ReadWatcher watcher;

constexpr std::string_view kGzipMagic = "\x1f\x8b";

/// stdin. If another process made the pipe or terminal non-blocking, it is opened again as blocking, since zlib takes
/// "nothing yet" for an error.
int open_stdin() {
  const int file = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  const int flags = file < 0 ? 0 : ::fcntl(file, F_GETFL);
  struct stat status {};
  if (flags < 0 || (flags & O_NONBLOCK) == 0 || ::fstat(file, &status) != 0) return file;
  if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return file;
  const int reopened = ::open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (reopened < 0 || ::fcntl(reopened, F_SETFL, 0) != 0) return file;
  ::close(file);
  return reopened;
}

}  // namespace

void watch_reading(ReadWatcher to) { watcher = std::move(to); }

struct Input::Inflater {
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

Input::Input(const std::string& path, Raw raw)
    : name_(path == "-" ? "stdin" : path), path_(path), raw_(std::move(raw)) {
  if (path.empty()) throw Error("'' names no file to read: is a variable empty?");
  Descriptor file(path == "-" ? open_stdin() : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file < 0) throw Error(name_, 0, errno_text());
  struct stat status {};
  if (::fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) throw Error(name_, 0, "is a directory, expected a file");
  note_input(file, name_);
  file_ = file.release();
  // Another program may have read the start of a file on stdin.
  on_disk_ = S_ISREG(status.st_mode);
  if (on_disk_) size_ = status.st_size - std::max<off_t>(0, ::lseek(file_, 0, SEEK_CUR));
}

Input::~Input() { ::close(file_); }

std::size_t Input::read_raw(char* buffer, std::size_t size) {
  while (true) {
    const ssize_t count = ::read(file_, buffer, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(name_, 0, errno_text());
    if (raw_) raw_({buffer, static_cast<std::size_t>(count)});
    raw_read_ += count;
    if (watcher && on_disk_) watcher(name_, count == 0 ? size_ : std::min(raw_read_, size_), size_);
    return static_cast<std::size_t>(count);
  }
}

std::size_t Input::read(char* buffer, std::size_t size) {
  if (inflater_) return inflate(buffer, size);
  if (unzstd_) return unzstd_->read(buffer, size);
  std::size_t count = read_raw(buffer, size);
  if (started_ || count == 0) return count;
  const auto may_be = [&](std::string_view magic) {
    return magic.starts_with({buffer, std::min(count, magic.size())});
  };
  // A pipe may give less than the magic.
  while ((count < kGzipMagic.size() && may_be(kGzipMagic)) ||
         (count < kZstandardMagic && may_be_zstandard({buffer, count}))) {
    const std::size_t more = count < size ? read_raw(buffer + count, size - count) : 0;
    if (more == 0) break;
    count += more;
  }
  started_ = true;
  if (count >= kZstandardMagic && may_be_zstandard({buffer, count})) {
    unzstd_ = std::make_unique<Unzstd>([this](char* into, std::size_t most) { return read_raw(into, most); },
                                       std::string_view(buffer, count), name_);
    return unzstd_->read(buffer, size);
  }
  if (count < kGzipMagic.size() || !may_be(kGzipMagic)) return count;
  inflater_ = std::make_unique<Inflater>();
  if (inflater_->raw.size() < count) inflater_->raw.resize(count);
  std::memcpy(inflater_->raw.data(), buffer, count);
  inflater_->stream.next_in = reinterpret_cast<Bytef*>(inflater_->raw.data());
  inflater_->stream.avail_in = static_cast<uInt>(count);
  return inflate(buffer, size);
}

std::size_t Input::inflate(char* buffer, std::size_t size) {
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

std::int64_t Input::missing() const { return std::max<std::int64_t>(0, size_ - raw_read_); }

bool Input::replaced() const {
  struct stat by_path {
  }, open{};
  if (path_ == "-" || ::stat(path_.c_str(), &by_path) != 0 || ::fstat(file_, &open) != 0) return false;
  return by_path.st_ino != open.st_ino || by_path.st_dev != open.st_dev || open.st_size < raw_read_;
}

std::string uncompressed_name(std::string name) {
  for (const std::string_view ending : {".gz", ".zst"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

std::uint64_t most_in_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) / 4 * static_cast<std::uint64_t>(size)
                               : std::uint64_t{1} << 32;
}

std::string Input::read_all(std::uint64_t most) {
  std::string bytes;
  std::size_t used = 0;
  while (true) {
    bytes.resize(std::max<std::size_t>(1 << 16, used * 2));
    const std::size_t count = read(bytes.data() + used, bytes.size() - used);
    if (count == 0) break;
    used += count;
    if (used > most)
      throw Error(name_, 0, "holds more than " + to_bytes_text(static_cast<double>(most)) + ", too much to read");
  }
  bytes.resize(used);
  return bytes;
}

std::string read_start(Input& input, std::size_t bytes) {
  std::string start(bytes, '\0');
  std::size_t used = 0;
  try {
    for (std::size_t count = 1; used < bytes && count > 0; used += count)
      count = input.read(start.data() + used, bytes - used);
  } catch (const Error&) {
    if (used == 0) throw;
  }
  start.resize(used);
  return start;
}

}  // namespace zs
