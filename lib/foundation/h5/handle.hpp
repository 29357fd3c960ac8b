// SPDX-License-Identifier: Apache-2.0
// One HDF5 identifier (file, group, dataset, attribute, type, space, property list), closed at the end of its scope.
#pragma once
#include <cstdint>
#include <utility>

namespace zs::h5 {

/// Move-only. The number is HDF5's hid_t; the type is repeated here so that hdf5.h stays inside this folder.
class Handle {
 public:
  Handle() = default;
  explicit Handle(std::int64_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle();

  std::int64_t get() const { return id_; }

 private:
  std::int64_t id_ = -1;
};

}  // namespace zs::h5
