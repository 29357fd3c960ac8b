// SPDX-License-Identifier: Apache-2.0
#include "zero/disk.hpp"

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"

namespace zs::zero {

struct Disk::Ring {
  static constexpr unsigned kRequests = 64;  // more than a plan has under way
  io_uring ring{};
  bool works = false;
  Ring() { works = io_uring_queue_init(kRequests, &ring, 0) == 0; }
  ~Ring() {
    if (works) io_uring_queue_exit(&ring);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
};

Disk::Disk(const std::string& folder) : folder_(folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error(folder, 0, "no folder for what is offloaded: " + failure.message());
  open();
  ring_ = std::make_unique<Ring>();
  if (!ring_->works) ring_.reset();  // an old kernel, or a container that forbids it
}

void Disk::open() {
  constexpr int kMode = 0600;
  for (const int direct : {O_DIRECT, 0}) {
    file_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | direct, kMode);
    if (file_ >= 0) return;
  }
  // File systems that have no nameless files (NFS): the name goes at once.
  std::string path = folder_ + "/zs-offload-XXXXXX";
  file_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (file_ < 0) throw Error(folder_, 0, "cannot create a file for offloaded state: " + errno_text());
  ::unlink(path.c_str());
}

Disk::~Disk() {
  for (auto& [number, request] : requests_) wait(number);  // the kernel has its memory until then
  ring_.reset();
  ::close(file_);
}

std::string Disk::reserve(std::int64_t bytes) {
  const int failed = ::posix_fallocate(file_, 0, bytes);
  return failed ? std::strerror(failed) : "";
}

void Disk::start(bool write, int number, std::byte* memory, std::int64_t bytes, std::int64_t offset) {
  Request& request = requests_[number] = {write, memory, bytes, offset};
  io_uring_sqe* const entry = ring_ ? io_uring_get_sqe(&ring_->ring) : nullptr;
  if (!entry) return finish(request, 0);
  const auto length = static_cast<unsigned>(std::min<std::int64_t>(bytes, 1 << 30));
  const auto at = static_cast<std::uint64_t>(offset);
  if (write)
    io_uring_prep_write(entry, file_, memory, length, at);
  else
    io_uring_prep_read(entry, file_, memory, length, at);
  io_uring_sqe_set_data64(entry, static_cast<std::uint64_t>(number));
  if (const int submitted = io_uring_submit(&ring_->ring); submitted < 0) {
    request.done = true;
    request.error = std::strerror(-submitted);
  }
}

void Disk::finish(Request& request, std::int64_t done) const {
  request.done = true;
  while (done < request.bytes) {
    const auto left = static_cast<std::size_t>(request.bytes - done);
    const ssize_t moved = request.write ? ::pwrite(file_, request.memory + done, left, request.offset + done)
                                        : ::pread(file_, request.memory + done, left, request.offset + done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) request.error = errno_text();
    if (moved == 0) request.error = "the file ends early";
    if (moved <= 0) return;
    done += moved;
  }
}

std::string Disk::wait(int number) {
  Request& request = requests_[number];
  while (!request.done && ring_) {
    io_uring_cqe* entry = nullptr;
    const int failed = io_uring_wait_cqe(&ring_->ring, &entry);
    if (failed == -EINTR || failed == -EAGAIN) continue;
    if (failed < 0) return std::strerror(-failed);
    Request& done = requests_[static_cast<int>(io_uring_cqe_get_data64(entry))];
    const int result = entry->res;
    io_uring_cqe_seen(&ring_->ring, entry);
    done.done = true;
    if (result < 0)
      done.error = std::strerror(-result);
    else
      finish(done, result);  // a request may be cut short
  }
  return request.error;
}

}  // namespace zs::zero
