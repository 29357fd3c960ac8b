// SPDX-License-Identifier: Apache-2.0
// What a torch.save file holds beside and around its tensors: Python's plain values, nested.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tensorfile/tensor.hpp"

namespace zs::tensorfile {

class Value;
struct Item;

struct List {
  std::vector<Value> values;
};
struct Tuple {
  std::vector<Value> values;
};
/// In order of insertion, as in Python. Keys are strings, integers or whatever Python allowed.
struct Dict {
  std::vector<Item> items;
};

/// None, bool, int, float, str, list, tuple, dict or tensor.
class Value {
 public:
  Value() = default;  ///< None
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Value>)
      Value(T&& value);  // NOLINT: implicit, so that a dict reads as one

  bool is_none() const { return std::holds_alternative<std::monostate>(held_); }
  /// The value if it is of that type, else nullptr: bool, std::int64_t, double, std::string, List, Tuple, Dict, Tensor.
  template <class T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }
  template <class T>
  T* get() {
    return std::get_if<T>(&held_);
  }

  /// A float, an integer, or a one-element f64 tensor, which is how write_torch stores a float.
  /// Throws Error, with `name` as the place, for anything else.
  double real(std::string_view name) const;
  /// Throws Error, with `name` as the place, unless it is an integer.
  std::int64_t integer(std::string_view name) const;
  /// The value under a string key; nullptr where there is none or this is no dict.
  const Value* find(std::string_view key) const;
  /// "dict", "int", "tensor", ...: for messages.
  std::string_view type_name() const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Tuple, Dict, Tensor> held_;
};

struct Item {
  Value key, value;
};

template <class T>
requires(!std::is_same_v<std::remove_cvref_t<T>, Value>) Value::Value(T&& value) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<Plain, bool>) {
    held_ = value;
  } else if constexpr (std::is_integral_v<Plain>) {
    static_assert(sizeof(Plain) < 8 || std::is_signed_v<Plain>, "an unsigned 64-bit value may not fit: cast it");
    held_ = static_cast<std::int64_t>(value);
  } else if constexpr (std::is_floating_point_v<Plain>) {
    held_ = static_cast<double>(value);
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    held_ = std::string(std::string_view(value));
  } else {
    held_ = std::forward<T>(value);
  }
}

}  // namespace zs::tensorfile
