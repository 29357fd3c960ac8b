// SPDX-License-Identifier: Apache-2.0
// An open file that is closed with the object that holds it.
#pragma once
#include <unistd.h>

#include <utility>

namespace zs {

/// A file descriptor, or -1; reads as that number.
class Descriptor {
 public:
  explicit Descriptor(int file = -1) : file_(file) {}
  Descriptor(Descriptor&& other) noexcept : file_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  operator int() const { return file_; }  // implicit: what the system's calls take
  /// Gives up the file, which the caller closes.
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

}  // namespace zs
