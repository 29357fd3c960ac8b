// SPDX-License-Identifier: Apache-2.0
// A tensor made of others, as a line of --names says it: cat(q, k, v), transpose(w), stack(expert.{0-7}).
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
/// {0-7} in a name stands for the names with each number, as so many arguments.
class Expression {
 public:
  /// Throws Error, which says where in the text.
  static Expression parse(const std::string& text);

  /// The names in it.
  std::vector<std::string> names() const;

  /// The shape that is made of those of the names. Throws Error where they do not fit.
  tensorfile::Shape shape(const std::function<tensorfile::Shape(const std::string&)>& of) const;
  /// The tensor, in memory. REQUIRES: all are of one type, their shapes fit.
  tensorfile::Tensor tensor(const std::function<tensorfile::Tensor(const std::string&)>& of) const;

 private:
  enum class Kind { name, cat, stack, transpose };
  Kind kind_ = Kind::name;
  std::string name_{};
  std::vector<Expression> parts_{};
  std::int64_t axis_ = 0, pieces_ = 1;

  friend class ExpressionText;
};

}  // namespace zs::state
