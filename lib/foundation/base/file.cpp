// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/claim.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/number.hpp"

namespace zs {
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
  check_output(path);
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

void print(std::string_view text) { write_file("-", text); }

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
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  if (file < 0) throw Error(path, 0, errno == ELOOP ? "is a link, expected a file" : errno_text());
  struct stat status {};
  if (::fstat(file, &status) != 0) throw Error(path, 0, errno_text());
  if (!S_ISREG(status.st_mode)) throw Error(path, 0, "is not a regular file");
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

}  // namespace zs
