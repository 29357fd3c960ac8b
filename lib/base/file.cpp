// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <fcntl.h>
#include <openssl/sha.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs {
namespace {

gzFile as_gz(void* stream) { return static_cast<gzFile>(stream); }

/// stdin. Of a pipe or terminal that somebody else made non-blocking, an opening of our own that blocks, since zlib
/// takes "nothing yet" for an error.
int open_stdin() {
  const int file = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  const int flags = file < 0 ? 0 : ::fcntl(file, F_GETFL);
  struct stat status {};
  if (flags < 0 || (flags & O_NONBLOCK) == 0 || ::fstat(file, &status) != 0) return file;
  if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return file;
  const int own = ::open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own < 0 || ::fcntl(own, F_SETFL, 0) != 0) return file;
  ::close(file);
  return own;
}

}  // namespace

Input::Input(const std::string& path) : name_(path == "-" ? "stdin" : path) {
  if (path.empty()) throw Error("'' names no file to read: is a variable empty?");
  const int file = path == "-" ? open_stdin() : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error(name_, 0, errno_text());
  struct stat status {};
  if (::fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(file);
    throw Error(name_, 0, "is a directory, expected a file");
  }
  stream_ = ::gzdopen(file, "rb");
  if (!stream_) {
    ::close(file);
    throw Error(name_, 0, "out of memory");
  }
  ::gzbuffer(as_gz(stream_), 1 << 18);
}

/// Looks at the first bytes, once. Not in the constructor: a terminal or a pipe is waited for when it is read.
void Input::begin() {
  begun_ = true;
  begin_.resize(kZstandardMagic.size());
  std::size_t size = 0;
  while (size < begin_.size()) {
    const std::size_t count = read_gzip(begin_.data() + size, begin_.size() - size);
    if (count == 0) break;
    size += count;
  }
  begin_.resize(size);
  if (begin_ != kZstandardMagic) return;
  unzstd_ = std::make_unique<Unzstd>([this](char* buffer, std::size_t most) { return read_gzip(buffer, most); }, begin_,
                                     name_);
}

Input::~Input() { ::gzclose_r(as_gz(stream_)); }

std::size_t Input::read(char* buffer, std::size_t size) {
  if (!begun_) begin();
  if (unzstd_) return unzstd_->read(buffer, size);
  if (begin_.empty()) return read_gzip(buffer, size);
  const std::size_t count = begin_.copy(buffer, size);
  begin_.erase(0, count);
  return count;
}

std::size_t Input::read_gzip(char* buffer, std::size_t size) {
  const int count = ::gzread(as_gz(stream_), buffer, static_cast<unsigned>(std::min<std::size_t>(size, 1U << 30)));
  int code = Z_OK;
  const char* const text = ::gzerror(as_gz(stream_), &code);
  if (count < 0 || code == Z_BUF_ERROR) {
    throw Error(name_, 0, code == Z_ERRNO ? errno_text() : code == Z_BUF_ERROR ? "truncated gzip data" : text);
  }
  return static_cast<std::size_t>(count);
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

Output::Output(const std::string& path) : path_(path) {
  if (path == "-" || path == "/dev/stdout") {
    path_ = "stdout";
    file_ = STDOUT_FILENO;
    return;
  }
  if (path.empty()) throw Error("'' names no file to write: is a variable empty?");
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) throw Error(path, 0, "is a directory, expected a file");
  if (exists && !S_ISREG(status.st_mode)) {
    file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) throw Error(path, 0, errno_text());
    return;
  }
  // Root may write it all the same, but whoever made it read-only meant something.
  if (exists && ((status.st_mode & 0222) == 0 || ::access(path.c_str(), W_OK) != 0))
    throw Error(path, 0, "is read-only: make it writable (chmod u+w), or name another file");
  std::error_code failure;
  std::string target = path;
  if (std::filesystem::is_symlink(path, failure)) {
    target = std::filesystem::canonical(path, failure).string();
    if (failure) throw Error(path, 0, "is a link to nothing");
  }
  temporary_.emplace(target, exists ? 0600 : 0666);
  file_ = temporary_->file();
  if (exists && ::fchmod(file_, status.st_mode & 0777) != 0) throw Error(path, 0, errno_text());
}

Output::~Output() {
  if (!temporary_ && file_ > STDERR_FILENO) ::close(file_);
}

void Output::write(std::string_view bytes) {
  constexpr std::size_t kLarge = 1 << 18;
  if (bytes.size() >= kLarge) {  // not through the buffer: a tensor is not worth a copy
    flush();
    return put(bytes);
  }
  pending_.append(bytes);
  if (pending_.size() >= kLarge) flush();
}

void Output::rewrite(std::uint64_t offset, std::string_view bytes) {
  if (!temporary_) throw Error(path_, 0, "cannot be written in place, name a regular file");
  flush();
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(path_, 0, "write: " + errno_text());
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void Output::flush() {
  put(pending_);
  pending_.clear();
}

void Output::put(std::string_view bytes) { write_all(file_, bytes, path_); }

void Output::commit() {
  flush();
  if (!temporary_) return;
  temporary_->publish();
  temporary_.reset();
  file_ = -1;
}

void write_file(const std::string& path, std::string_view bytes) {
  Output output(path);
  output.write(bytes);
  output.commit();
}

void write_all(int file, std::string_view bytes, const std::string& name) {
  constexpr std::size_t kPiece = 1 << 20;  // 4 MB a call took three times as long on ext4 (Linux 6, 500 MB)
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), std::min(bytes.size(), kPiece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {  // who shares stdout with us has set O_NONBLOCK on it
      pollfd room{file, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (count < 0) throw Error(name, 0, "write: " + errno_text());
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

Regular read_regular(const std::string& path, std::size_t limit) {
  struct Closed {
    int file;
    ~Closed() { ::close(file); }
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
  if (file < 0) throw Error(path, 0, errno == ELOOP ? "is a link, expected a file" : errno_text());
  const Closed closed{file};
  struct stat status {};
  if (::fstat(file, &status) != 0) throw Error(path, 0, errno_text());
  if (!S_ISREG(status.st_mode)) throw Error(path, 0, "is no regular file");
  const std::string large = "is larger than " + to_text(static_cast<std::int64_t>(limit)) + " bytes";
  if (static_cast<std::uint64_t>(status.st_size) > limit) throw Error(path, 0, large);
  std::string bytes;
  std::size_t used = 0;
  while (true) {
    // One more than there should be, to see the end: the file may grow meanwhile.
    bytes.resize(std::max(static_cast<std::size_t>(status.st_size) + 1, used + (1 << 12)));
    const ssize_t count = ::read(file, bytes.data() + used, bytes.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(path, 0, errno_text());
    if (count == 0) break;
    used += static_cast<std::size_t>(count);
    if (used > limit) throw Error(path, 0, large);
  }
  bytes.resize(used);
  return {std::move(bytes), status.st_uid, status.st_mode & 07777};
}

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace zs
