// SPDX-License-Identifier: Apache-2.0
// A tensor composed of others, as in a line of --names: cat(q, k, v), transpose(w), stack(expert.{0-7}).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensorfile/tensor.hpp"

namespace zs::state {

/// NAME, or a function of expressions:
///
///   cat(A, B, ..., axis=0, parts=1)  one behind the other along an axis; with `parts`, each is cut into so many equal
///                                    parts along it, and first stand the first parts, then the second ones: queries,
///                                    keys and values by groups of heads, as Megatron keeps them
///   stack(A, B, ...)                 along a new first axis
///   transpose(A)                     with its last two axes exchanged
///
/// {0-7} in a name means the names with each number, as separate arguments.
class Expression {
 public:
  /// Throws Error with the position in the text.
  static Expression parse(const std::string& text);

  /// The names that occur in it.
  std::vector<std::string> names() const;

  /// The shape of the result, from the shapes of the names. Throws Error if they do not match.
  tensorfile::Shape shape(const std::function<tensorfile::Shape(const std::string&)>& shape_of) const;
  /// The result, in memory. REQUIRES: all have the same type, their shapes match.
  tensorfile::Tensor tensor(const std::function<tensorfile::Tensor(const std::string&)>& tensor_of) const;

 private:
  enum class Kind { name, cat, stack, transpose };
  Kind kind_ = Kind::name;
  std::string name_{};
  std::vector<Expression> parts_{};
  std::int64_t axis_ = 0, pieces_ = 1;

  friend class ExpressionText;
};

}  // namespace zs::state
