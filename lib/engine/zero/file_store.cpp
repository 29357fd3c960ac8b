// SPDX-License-Identifier: Apache-2.0
// Blocks in a file. Each has a page in front that says which it is, which write it was and what its bytes hash to: a
// disk that returns another block, an older one or half of one is found out when it is read.
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "zero/store.hpp"

namespace zs::zero {
namespace {

// An unnamed file on a disk with asynchronous reads and writes: by io_uring if the system has it, with direct I/O if
// the file system supports it, else by synchronous calls.

class Disk {
 public:
  /// Memory, offsets and sizes are multiples of this.
  static constexpr std::int64_t kPage = 4096;

  /// In `folder`, which is created if missing. Throws zs::Error if that fails.
  explicit Disk(const std::string& folder);
  ~Disk();

  const std::string& folder() const { return folder_; }
  /// Extends the file to `bytes`, with disk space reserved for all of it; returns errno's text, or "".
  std::string reserve(std::int64_t bytes);
  /// Starts to read or write; `memory` must not change until wait(number) has returned. The caller chooses numbers,
  /// each for one request at a time.
  void start(bool write, int number, std::byte* memory, std::int64_t bytes, std::int64_t offset);
  /// Waits for that request; returns errno's text, "the file ends early", or "".
  std::string wait(int number);

 private:
  struct Request {
    bool write = false;
    std::byte* memory = nullptr;
    std::int64_t bytes = 0, offset = 0;
    bool done = false;
    std::string error{};
  };
  struct Ring;
  std::string folder_;
  int file_ = -1;
  std::unique_ptr<Ring> ring_;  // null: synchronous calls
  std::map<int, Request> requests_;

  void open();
  /// Completes a request by synchronous calls, from `done` bytes on.
  void finish(Request& request, std::int64_t done) const;
};

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

struct Label {
  static constexpr std::uint64_t kMagic = 0x6b636f6c62737a31;
  std::uint64_t magic = kMagic, block = 0, write = 0, bytes = 0;
  XXH128_hash_t hash{};
};

class FileStore final : public Store {
 public:
  FileStore(const device::Device& device, const std::string& folder) : Store(device), disk_(folder) {}

  int add(const std::string& name, std::int64_t bytes) override {
    blocks_.push_back({name, bytes, end_});
    end_ += whole(bytes);
    if (const std::string error = disk_.reserve(end_); !error.empty()) fail(blocks_.back(), "no room", error);
    added(bytes);
    return static_cast<int>(blocks_.size()) - 1;
  }

  void start_load(int index) override {
    Block& block = at(index);
    if (block.reading) return;
    end_write(index);  // what is on its way to the disk is not there yet
    block.memory = take();
    block.reading = true;
    std::int64_t offset = block.offset;
    if (took(block, DiskFault::swapped)) offset = other_than(index).offset;
    disk_.start(false, index, block.memory.data(), whole(block.bytes), offset);
  }

  void finish_load(int index, const device::View& to) override {
    start_load(index);
    Block& block = at(index);
    block.reading = false;
    const device::Buffer memory = std::exchange(block.memory, {});
    const std::string error = disk_.wait(index);
    if (error.empty()) {
      require(block, static_cast<std::uint64_t>(index), memory.data());
      device::copy(to, data(memory, block));
    }
    give_back(memory);
    if (!error.empty()) fail(block, "cannot be read", error);
  }

  void start_store(int index, const device::View& from) override {
    constexpr std::size_t kAtOnce = 2;  // one is written while the next one is made
    end_write(index);
    while (writing_.size() >= kAtOnce) end_write(writing_.front());
    Block& block = at(index);
    block.memory = take();
    device::copy(data(block.memory, block), from);
    Label label;
    label.block = static_cast<std::uint64_t>(index);
    label.write = ++block.writes;
    label.bytes = static_cast<std::uint64_t>(block.bytes);
    label.hash = XXH3_128bits(block.memory.data() + Disk::kPage, static_cast<std::size_t>(block.bytes));
    std::memcpy(block.memory.data(), &label, sizeof label);
    if (took(block, DiskFault::stale)) return give_back(std::exchange(block.memory, {}));
    const std::int64_t pages = took(block, DiskFault::torn) ? 1 : whole(block.bytes) / Disk::kPage;
    writing_.push_back(index);
    disk_.start(true, index, block.memory.data(), pages * Disk::kPage, block.offset);
  }

  void plant(int index, DiskFault fault) override {
    if (fault == DiskFault::swapped) other_than(index);
    at(index).fault = fault;
  }

 private:
  struct Block {
    std::string name;
    std::int64_t bytes, offset;
    std::uint64_t writes = 0;
    bool reading = false;
    device::Buffer memory{};  // memory of a transfer in flight
    std::optional<DiskFault> fault{};
  };
  std::vector<Block> blocks_;
  std::deque<int> writing_;
  std::int64_t end_ = 0;
  std::vector<device::Buffer> free_;
  Disk disk_;  // destroyed first: it waits for transfers in flight, which use the memory above

  Block& at(int index) { return blocks_[static_cast<std::size_t>(index)]; }
  static bool took(Block& block, DiskFault fault) {
    if (block.fault != fault) return false;
    block.fault.reset();
    return true;
  }
  /// Another block with the same number of pages, for a planted fault.
  const Block& other_than(int index) {
    for (const Block& other : blocks_) {
      if (&other != &at(index) && whole(other.bytes) == whole(at(index).bytes)) return other;
    }
    throw Error("no other block is as large as the " + at(index).name + ": none can be swapped with it");
  }
  /// With its label, in pages.
  static std::int64_t whole(std::int64_t bytes) {
    return Disk::kPage + (bytes + Disk::kPage - 1) / Disk::kPage * Disk::kPage;
  }
  static device::View data(const device::Buffer& memory, const Block& block) {
    return {memory.data() + Disk::kPage, block.bytes, device::Type::byte, {}};
  }

  [[noreturn]] void fail(const Block& block, const std::string& what, const std::string& why) const {
    throw Error(disk_.folder(), 0, "the " + block.name + " that is offloaded there: " + what + ": " + why);
  }

  void require(const Block& block, std::uint64_t index, const std::byte* memory) const {
    Label label;
    std::memcpy(&label, memory, sizeof label);
    const char* const kNotStored = "it is not what was stored";
    if (label.magic != Label::kMagic) fail(block, kNotStored, "it has no label of zs");
    if (label.block != index) {
      const bool ours = label.block < blocks_.size();
      fail(block, kNotStored,
           "it is swapped with " + (ours ? "the " + blocks_[label.block].name : std::string("another file's")));
    }
    if (label.write != block.writes) {
      fail(block, kNotStored,
           "it is stale: write " + std::to_string(label.write) + " of " + std::to_string(block.writes));
    }
    const auto hash = XXH3_128bits(memory + Disk::kPage, static_cast<std::size_t>(block.bytes));
    if (label.bytes != static_cast<std::uint64_t>(block.bytes) || !XXH128_isEqual(hash, label.hash))
      fail(block, kNotStored, "it is torn: its bytes have another checksum than when they were stored");
  }

  void end_write(int index) {
    const auto found = std::find(writing_.begin(), writing_.end(), index);
    if (found == writing_.end()) return;
    writing_.erase(found);
    Block& block = at(index);
    const std::string error = disk_.wait(index);
    give_back(std::exchange(block.memory, {}));
    if (!error.empty()) fail(block, "cannot be written", error);
  }

  /// Memory for the largest block and its label.
  device::Buffer take() {
    const std::int64_t bytes = whole(largest());
    std::erase_if(free_, [&](const device::Buffer& one) { return one.bytes() < bytes; });
    if (!free_.empty()) {
      device::Buffer memory = std::move(free_.back());
      free_.pop_back();
      return memory;
    }
    if (device().kind != device::Device::Kind::cpu) {
      const at::Tensor pinned = at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
      auto* const start = static_cast<std::byte*>(pinned.data_ptr());
      return {{start, [pinned](std::byte*) {}}, bytes, {}};
    }
    auto* const start = static_cast<std::byte*>(std::aligned_alloc(Disk::kPage, static_cast<std::size_t>(bytes)));
    if (!start) throw Error("no room for " + std::to_string(bytes) + " bytes that are offloaded");
    std::memset(start, 0, static_cast<std::size_t>(bytes));
    return device::counted({start, std::free}, bytes, {});
  }
  void give_back(const device::Buffer& memory) { free_.push_back(memory); }
};

}  // namespace

std::unique_ptr<Store> file_store(const device::Device& device, const std::string& folder) {
  return std::make_unique<FileStore>(device, folder);
}

}  // namespace zs::zero
