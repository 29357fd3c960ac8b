// SPDX-License-Identifier: Apache-2.0
// Values of several types in one blob, for Group::all_gather_object(). For one type use Group::all_gather().
#pragma once
#include <cstring>
#include <string>
#include <type_traits>

namespace zs::comm {

/// Appends a value of a trivially copyable type.
template <typename T>
void put(std::string& blob, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  blob.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Reads the value at `at` and advances it. REQUIRES: put() appended one of this type there.
template <typename T>
T take(const std::string& blob, std::size_t& at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, blob.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

}  // namespace zs::comm
