// SPDX-License-Identifier: Apache-2.0
// A nameless file on a disk that is read and written in the background: by io_uring where the system has it, past the
// page cache where the file system takes that, else by plain calls, at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace zs::zero {

class Disk {
 public:
  /// What memory, offsets and sizes are multiples of.
  static constexpr std::int64_t kPage = 4096;

  /// In `folder`, which is made if it is not there. Throws zs::Error where that cannot be.
  explicit Disk(const std::string& folder);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  const std::string& folder() const { return folder_; }
  /// Lengthens the file to `bytes`, with room on the disk for all of it; errno's text, or "".
  std::string reserve(std::int64_t bytes);
  /// Begins to read or write; `memory` stays as it is until wait(number) has returned. Numbers are the caller's, each
  /// for one request at a time.
  void start(bool write, int number, std::byte* memory, std::int64_t bytes, std::int64_t offset);
  /// Until that request is done; errno's text, "the file ends early", or "".
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
  std::unique_ptr<Ring> ring_;  // null: plain calls
  std::map<int, Request> requests_;

  void open();
  /// The rest of a request by plain calls, from `done` bytes on.
  void finish(Request& request, std::int64_t done) const;
};

}  // namespace zs::zero
