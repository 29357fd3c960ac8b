// SPDX-License-Identifier: Apache-2.0
// The values of a pickle while it is being read: a graph, since a list may occur several times and even contain itself.
// Nodes are in one arena and refer to each other by index. The result is a tree of Values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tensorfile/value.hpp"

namespace zs::tensorfile {

/// A defect of a pickle; the reader adds the place and throws Error.
struct Malformed {
  std::string what;
};

using Id = std::uint32_t;
/// A name that Python would import: "torch.FloatStorage".
struct Global {
  std::string name;
};
/// The object behind a persistent id.
struct Kept {
  StoragePtr storage;
  std::optional<Dtype> dtype;  ///< from the storage's class; none for an untyped storage
};
struct Sequence {
  std::vector<Id> ids;
  bool tuple = false;
};
struct Pairs {
  std::vector<Id> ids;  ///< key, value, key, value, ...
};
/// Becomes an Object.
struct Made {
  std::string name;
  std::vector<Id> arguments{}, state{}, elements{}, pairs{};
};
/// The element type of a name like "torch.float32"; nothing for other names.
std::optional<Dtype> as_dtype(const std::string& name);
using Node = std::variant<Value, Sequence, Pairs, Global, Kept, Made>;

class Graph {
 public:
  /// With `objects`, a bare name becomes an Object, and so does a value inside itself: "(itself)".
  explicit Graph(bool objects = false) : objects_(objects) {}

  Id add(Node node);
  /// The node if it is a T, else nullptr. The pointer is valid until the next add().
  template <class T>
  T* find(Id id) {
    return std::get_if<T>(&nodes_[id]);
  }

  /// The node, which must be a T; throws Malformed, "expected WHAT", otherwise. Valid until the next add().
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

  /// The value as a tree. Throws Malformed if it contains itself, is nested too deeply or would become far larger than
  /// the pickle, and at a bare name or storage.
  Value tree(Id id);

 private:
  std::vector<Node> nodes_;
  std::vector<bool> open_;  // nodes whose conversion is in progress
  std::size_t budget_ = 0;
  bool objects_;
  Value convert(Id id, int depth);
  Value convert_node(const Node& node, int depth);
  std::vector<Value> convert_all(const std::vector<Id>& ids, int depth);
  Dict convert_dict(const Pairs& pairs, int depth);
};

}  // namespace zs::tensorfile
