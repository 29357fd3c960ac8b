// SPDX-License-Identifier: Apache-2.0
// The content of a torch.save file besides its tensors: Python's plain values, nested.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
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
/// In order of insertion, as in Python. Keys are strings, integers or anything else that Python allows.
struct Dict {
  std::vector<Item> items;
};

/// A Python object, as far as its pickle describes it: nothing was imported, created or called. A bare class is an
/// object without arguments.
struct Object {
  std::string name;              ///< what Python would have called: "argparse.Namespace"
  std::vector<Value> arguments;  ///< the arguments of that call
  std::vector<Value> state;      ///< none, or one: usually a dict of its attributes
  std::vector<Value> elements;   ///< appended to it
  std::vector<Item> items;       ///< set in it

  // Instead of default values of the members, which would need the complete type Value here.
  explicit Object(std::string name = {}, std::vector<Value> arguments = {}, std::vector<Value> state = {},
                  std::vector<Value> elements = {}, std::vector<Item> items = {});

  /// An attribute or an item of that name; nullptr if there is none.
  const Value* find(std::string_view key) const;
};

/// None, bool, int, float, str (bytes too), list, tuple, dict, tensor or object.
class Value {
 public:
  Value() = default;  ///< None
  // Implicit, so that a dict reads as one.
  template <std::integral T>
  Value(T value) {  ///< bool or int
    static_assert(sizeof(T) < 8 || std::is_signed_v<T>, "an unsigned 64-bit value may not fit: cast it");
    if constexpr (std::is_same_v<T, bool>)
      held_ = value;
    else
      held_ = static_cast<std::int64_t>(value);
  }
  Value(double value);
  Value(std::string value);
  Value(std::string_view value);
  Value(const char* value);
  Value(List value);
  Value(Tuple value);
  Value(Dict value);
  Value(Tensor value);
  Value(Object value);

  bool is_none() const { return std::holds_alternative<std::monostate>(held_); }
  /// The value if it has that type, else nullptr: bool, std::int64_t, double, std::string, List, Tuple, Dict, Tensor,
  /// Object.
  template <class T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }
  template <class T>
  T* get() {
    return std::get_if<T>(&held_);
  }

  /// A float, an integer, or a one-element f64 tensor, which is how write_torch stores a float. Throws Error, which
  /// begins with `name`, for anything else.
  double real(std::string_view name) const;
  /// Throws Error, which begins with `name`, unless it is an integer.
  std::int64_t integer(std::string_view name) const;
  /// The value under a string key of a dict or an object; nullptr if there is none.
  const Value* find(std::string_view key) const;
  /// "dict", "int", "tensor", ...: for messages.
  std::string_view type_name() const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Tuple, Dict, Tensor, Object> held_;
};

struct Item {
  Value key, value;
};

}  // namespace zs::tensorfile
