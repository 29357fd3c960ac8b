// SPDX-License-Identifier: Apache-2.0
// A view of numbers with their type and device: the operand of collectives and elementwise operations. Independent of
// LibTorch and CUDA, so that every compiler can include it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace zs::device {

/// A device with memory that computes: the host, or one of its GPUs.
struct Device {
  enum class Kind : std::uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};
/// "cpu", "cuda:1".
std::string to_text(const Device& device);

/// 16-bit numbers, which the host stores but does not compute with.
struct Bfloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};

enum class Type : std::uint8_t { byte, bfloat16, float16, float32, float64 };
/// Bytes of one number.
constexpr std::int64_t size(Type type) {
  constexpr std::int64_t kSizes[] = {1, 2, 2, 4, 8};
  return kSizes[static_cast<int>(type)];
}
/// The type of a C++ type; others do not compile.
template <typename T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, Bfloat16>) return Type::bfloat16;
  if constexpr (std::is_same_v<T, Float16>) return Type::float16;
  if constexpr (std::is_same_v<T, float>) return Type::float32;
  if constexpr (std::is_same_v<T, double>) return Type::float64;
  if constexpr (sizeof(T) == 1) return Type::byte;
}

/// `count` consecutive numbers in memory that another object owns.
struct View {
  std::byte* data = nullptr;
  std::int64_t count = 0;
  Type type = Type::float32;
  Device device{};

  std::int64_t bytes() const { return count * size(type); }
  View part(std::int64_t begin, std::int64_t end) const {
    return {data + begin * size(type), end - begin, type, device};
  }
  /// The numbers as T. REQUIRES: they have that type and are on the host.
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

/// A view of values in the host's memory.
template <typename T>
View view(T* values, std::int64_t count) {
  using Value = std::remove_const_t<T>;
  return {reinterpret_cast<std::byte*>(const_cast<Value*>(values)), count, type_of<Value>(), {}};
}

}  // namespace zs::device
