// SPDX-License-Identifier: Apache-2.0
// The values of a pickle while it is read: a graph, since a list may be met again and even hold itself. Nodes lie in
// one arena and refer to each other by index. What comes out is a tree of Values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tensorfile/value.hpp"

namespace zs::tensorfile {

/// What is wrong with a pickle; who reads it adds the place and throws Error.
struct Malformed {
  std::string what;
};

using Id = std::uint32_t;
/// A name that Python would import: "torch.FloatStorage".
struct Global {
  std::string name;
};
/// What a persistent id stands for.
struct Kept {
  StoragePtr storage;
  std::optional<Dtype> dtype;  ///< of the storage's class; none for an untyped one
};
struct Sequence {
  std::vector<Id> ids;
  bool tuple = false;
};
struct Pairs {
  std::vector<Id> ids;  ///< key, value, key, value, ...
};
/// What becomes an Object.
struct Made {
  std::string name;
  std::vector<Id> arguments{}, state{}, elements{}, pairs{};
};
/// The element type that a name like "torch.float32" stands for, if it does.
std::optional<Dtype> as_dtype(const std::string& name);
using Node = std::variant<Value, Sequence, Pairs, Global, Kept, Made>;

class Graph {
 public:
  /// With `objects`, a name alone is an Object, and so is a value within itself: "(itself)".
  explicit Graph(bool objects = false) : objects_(objects) {}

  Id add(Node node);
  /// The node if it is a T, else nullptr. The pointer ends with the next add().
  template <class T>
  T* find(Id id) {
    return std::get_if<T>(&nodes_[id]);
  }

  /// The node, which must be a T. Throws Malformed, "expected WHAT", otherwise. The reference ends with the next add().
  template <class T>
  T& as(Id id, const char* what) {
    if (T* const held = std::get_if<T>(&nodes_[id])) return *held;
    throw Malformed{std::string("malformed pickle: expected ") + what};
  }
  // The same for single values.
  const std::string& text(Id id);
  std::int64_t integer(Id id);
  const Tensor& tensor(Id id);
  Shape shape(Id id);
  bool is_none(Id id) const;

  /// The value as a tree. Throws Malformed where it holds itself, is nested too deep, or would become far larger than
  /// the pickle, and where a name or a storage stands alone.
  Value tree(Id id);

 private:
  std::vector<Node> nodes_;
  std::vector<bool> open_;  // whose conversion has not ended
  std::size_t budget_ = 0;
  bool objects_;
  Value convert(Id id, int depth);
  Value convert_node(const Node& node, int depth);
  std::vector<Value> convert_all(const std::vector<Id>& ids, int depth);
  Dict convert_dict(const Pairs& pairs, int depth);
};

}  // namespace zs::tensorfile
