// SPDX-License-Identifier: Apache-2.0
#include "state/expression.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::state {
namespace {

using tensorfile::Shape;
using tensorfile::Tensor;

std::int64_t product(const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t extent = 1;
  for (std::size_t i = first; i < last; ++i) extent *= shape[i];
  return extent;
}

/// The names that result from {0-7} in one.
std::vector<std::string> each(const std::string& name) {
  const std::size_t open = name.find('{'), close = name.find('}');
  if (open == std::string::npos && close == std::string::npos) return {name};
  const std::string range = close > open && close != std::string::npos ? name.substr(open + 1, close - open - 1) : "";
  const std::size_t dash = range.find('-');
  const auto first = parse_int(range.substr(0, dash)),
             last = dash == std::string::npos ? std::nullopt : parse_int(range.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > 99999)
    throw Error(name + ": expected {FIRST-LAST}, two numbers");
  std::vector<std::string> expanded;
  for (std::int64_t i = *first; i <= *last; ++i)
    expanded.push_back(name.substr(0, open) + to_text(i) + name.substr(close + 1));
  return expanded;
}

}  // namespace

/// Reads an expression from left to right.
class ExpressionText {
 public:
  explicit ExpressionText(const std::string& text) : text_(text) {}

  Expression all() {
    const std::vector<Expression> made = expressions();
    space();
    if (at_ < text_.size()) wrong("expected its end");
    if (made.size() != 1) wrong("a range of names stands in a function: stack(" + text_ + ")");
    return made.front();
  }

 private:
  const std::string& text_;
  std::size_t at_ = 0;

  [[noreturn]] void wrong(const std::string& what) const { throw Error(text_.substr(0, at_) + " <- here: " + what); }
  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string word() {
    space();
    const std::size_t end = std::min(text_.find_first_of(" ,()=", at_), text_.size());
    if (end == at_) wrong("expected a name");
    return text_.substr(std::exchange(at_, end), end - at_);
  }

  /// One expression; several if a name has a range.
  std::vector<Expression> expressions() {
    const std::string first = word();
    if (!take('(')) {
      std::vector<Expression> names;
      for (const std::string& name : each(first)) names.emplace_back().name_ = name;
      return names;
    }
    Expression made;
    if (first == "cat")
      made.kind_ = Expression::Kind::cat;
    else if (first == "stack")
      made.kind_ = Expression::Kind::stack;
    else if (first == "transpose")
      made.kind_ = Expression::Kind::transpose;
    else
      wrong("'" + first + "' is none of cat, stack and transpose");
    do {
      argument(made);
    } while (take(','));
    if (!take(')')) wrong("expected , or )");
    if (made.parts_.empty() || (made.kind_ == Expression::Kind::transpose && made.parts_.size() != 1))
      wrong(first + (made.parts_.empty() ? " of nothing" : " takes one tensor"));
    return {made};
  }

  void argument(Expression& into) {
    const std::size_t before = at_;
    const std::string key = word();
    if (!take('=')) {
      at_ = before;
      for (Expression& part : expressions()) into.parts_.push_back(std::move(part));
      return;
    }
    const auto number = parse_int(word());
    const bool axis = key == "axis", parts = key == "parts";
    if (into.kind_ != Expression::Kind::cat || !(axis || parts)) wrong("only cat has axis= and parts=");
    if (!number || *number < (parts ? 1 : 0)) wrong(key + " is a whole number");
    (axis ? into.axis_ : into.pieces_) = *number;
  }
};

Expression Expression::parse(const std::string& text) { return ExpressionText(text).all(); }

std::vector<std::string> Expression::names() const {
  if (kind_ == Kind::name) return {name_};
  std::vector<std::string> names;
  for (const Expression& part : parts_) {
    for (std::string& name : part.names()) names.push_back(std::move(name));
  }
  return names;
}

Shape Expression::shape(const std::function<Shape(const std::string&)>& shape_of) const {
  if (kind_ == Kind::name) return shape_of(name_);
  Shape made = parts_.front().shape(shape_of);
  if (kind_ == Kind::transpose) {
    if (made.size() < 2) throw Error("transpose of a tensor of the shape " + tensorfile::to_text(made));
    std::swap(made[made.size() - 1], made[made.size() - 2]);
    return made;
  }
  const auto axis = static_cast<std::size_t>(axis_);
  if (kind_ == Kind::cat && axis >= made.size())
    throw Error("cat along axis " + to_text(axis_) + " of a tensor of the shape " + tensorfile::to_text(made));
  const Shape first = made;
  if (kind_ == Kind::cat) made[axis] = 0;
  for (const Expression& part : parts_) {
    Shape other = part.shape(shape_of), same = first;
    if (kind_ == Kind::cat && axis < other.size()) {
      if (other[axis] % pieces_ != 0)
        throw Error(to_text(pieces_) + " parts of a tensor of the shape " + tensorfile::to_text(other));
      made[axis] += other[axis];
      same[axis] = other[axis];
    }
    if (other != same)
      throw Error("tensors of the shapes " + tensorfile::to_text(first) + " and " + tensorfile::to_text(other) +
                  " cannot be joined");
  }
  if (kind_ == Kind::stack) made.insert(made.begin(), static_cast<std::int64_t>(parts_.size()));
  return made;
}

Tensor Expression::tensor(const std::function<Tensor(const std::string&)>& tensor_of) const {
  if (kind_ == Kind::name) return tensor_of(name_);
  if (kind_ == Kind::transpose) {
    Tensor view = parts_.front().tensor(tensor_of);
    const std::size_t last = view.shape.size() - 1;
    std::swap(view.shape[last], view.shape[last - 1]);
    std::swap(view.strides[last], view.strides[last - 1]);
    std::string bytes(view.byte_count(), '\0');
    read_raw(view, bytes);
    return make_tensor(view.dtype, view.shape, tensorfile::Storage::own(std::move(bytes)));
  }
  std::vector<Tensor> held;
  for (const Expression& part : parts_) held.push_back(part.tensor(tensor_of));
  Shape made = held.front().shape;
  const auto axis = kind_ == Kind::stack ? 0 : static_cast<std::size_t>(axis_);
  const std::int64_t outer = kind_ == Kind::stack ? 1 : product(made, 0, axis);
  std::vector<std::string> rows;
  std::int64_t joined = 0;
  for (const Tensor& tensor : held) {
    read_raw(tensor, rows.emplace_back(tensor.byte_count(), '\0'));
    if (kind_ == Kind::cat) joined += tensor.shape[axis];
    tensor.storage->forget();
  }
  std::string bytes;
  for (std::int64_t at = 0; at < outer * pieces_; ++at) {
    for (const std::string& row : rows) {
      const std::size_t size = row.size() / static_cast<std::size_t>(outer * pieces_);
      bytes.append(row, static_cast<std::size_t>(at) * size, size);
    }
  }
  if (kind_ == Kind::stack)
    made.insert(made.begin(), static_cast<std::int64_t>(held.size()));
  else
    made[axis] = joined;
  return make_tensor(held.front().dtype, made, tensorfile::Storage::own(std::move(bytes)));
}

}  // namespace zs::state
