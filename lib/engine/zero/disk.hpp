// SPDX-License-Identifier: Apache-2.0
// An unnamed file on a disk with asynchronous reads and writes: by io_uring if the system has it, with direct I/O if
// the file system supports it, else by synchronous calls.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace zs::zero {

class Disk {
 public:
  /// Memory, offsets and sizes are multiples of this.
  static constexpr std::int64_t kPage = 4096;

  /// In `folder`, which is created if missing. Throws zs::Error if that fails.
  explicit Disk(const std::string& folder);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

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

}  // namespace zs::zero
