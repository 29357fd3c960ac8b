// SPDX-License-Identifier: Apache-2.0
#include "state/expression.hpp"

#include <doctest/doctest.h>

#include <map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "state/diff.hpp"

namespace zs::state {
namespace {

using tensorfile::Shape;
using tensorfile::Storage;
using tensorfile::Tensor;
using Floats = std::vector<float>;

Tensor tensor(Shape shape, const Floats& values) {
  return make_tensor(tensorfile::Dtype::f32, std::move(shape),
                     Storage::own({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
}

const std::map<std::string, Tensor> kHeld = {{"a", tensor({2, 2}, {1, 2, 3, 4})},
                                             {"b", tensor({2, 2}, {5, 6, 7, 8})},
                                             {"c", tensor({1, 2}, {9, 10})},
                                             {"e.0", tensor({2}, {1, 2})},
                                             {"e.1", tensor({2}, {3, 4})}};

std::string made(const std::string& text) {
  const Expression expression = Expression::parse(text);
  const Shape shape = expression.shape([](const std::string& name) { return kHeld.at(name).shape; });
  const Tensor whole = expression.tensor([](const std::string& name) { return kHeld.at(name); });
  CHECK(shape == whole.shape);
  Floats values(static_cast<std::size_t>(whole.count()));
  read_f32(whole, values);
  std::string said = tensorfile::to_text(shape) + ":";
  for (const float value : values) said += " " + std::to_string(static_cast<int>(value));
  return said;
}

std::string error(const std::string& text) {
  try {
    made(text);
    return "";
  } catch (const Error& problem) {
    return problem.what();
  }
}

TEST_CASE("expression: what is made of tensors, worked out by hand") {
  CHECK(made("cat(a, b, c)") == "[5, 2]: 1 2 3 4 5 6 7 8 9 10");
  CHECK(made("cat(a, b, axis=1)") == "[2, 4]: 1 2 5 6 3 4 7 8");
  CHECK(made("cat(a, b, parts=2)") == "[4, 2]: 1 2 5 6 3 4 7 8");  // Megatron: first all of group 0
  CHECK(made("cat(a, b, axis=1, parts=2)") == "[2, 4]: 1 5 2 6 3 7 4 8");
  CHECK(made("transpose(a)") == "[2, 2]: 1 3 2 4");
  CHECK(made("transpose(cat(a, c))") == "[2, 3]: 1 3 9 2 4 10");
  CHECK(made("stack(e.{0-1})") == "[2, 2]: 1 2 3 4");
}

TEST_CASE("expression: what does not fit is told") {
  CHECK(error("cat(a, c, axis=1)") == "tensors of the shapes [2, 2] and [1, 2] cannot be joined");
  CHECK(error("cat(c, c, parts=2)") == "2 parts of a tensor of the shape [1, 2]");
  CHECK(error("cat(a, axis=2)") == "cat along axis 2 of a tensor of the shape [2, 2]");
  CHECK(error("transpose(e.0)") == "transpose of a tensor of the shape [2]");
  CHECK(error("join(a, b)") == "join( <- here: 'join' is none of cat, stack and transpose");
  CHECK(error("cat(a") == "cat(a <- here: expected , or )");
  CHECK(error("cat(a))") == "cat(a) <- here: expected its end");
  CHECK(error("stack(a, axis=1)") == "stack(a, axis=1 <- here: only cat has axis= and parts=");
  CHECK(error("cat(a, parts=0)") == "cat(a, parts=0 <- here: parts is a whole number");
  CHECK(error("stack(e.{1-0})") == "e.{1-0}: expected {FIRST-LAST}, two numbers");
  CHECK(error("e.{0-1}") == "e.{0-1} <- here: a range of names stands in a function: stack(e.{0-1})");
}

/// A checkpoint of parameters with a first moment and a step.
State state(const std::string& path, const std::map<std::string, std::pair<Tensor, double>>& parameters) {
  State state;
  state.path = path;
  for (const auto& [name, held] : parameters) {
    Parameter& parameter = state.parameter(name);
    parameter.weight = checkpoints::whole(held.first, "file");
    parameter.moments["exp_avg"] = checkpoints::whole(held.first, "file");
    parameter.step = held.second;
  }
  return state;
}

std::string verdict(const State& a, const State& b, const std::string& names) {
  const TemporaryFolder folder;
  write_file(folder.file("names"), names);
  try {
    const Difference found = diff(a, b, {}, Names(folder.file("names")));
    std::string said(compare::name(found.verdict));
    for (const auto& [key, value] : found.lines) {
      if (key == "what") said += ": " + value;
    }
    return said;
  } catch (const Error& problem) {
    const std::string what = problem.what();
    return what.substr(what.find("names:"));
  }
}

TEST_CASE("names: a fused parameter is compared with its parts, weights and moments, on either side") {
  const State apart =
      state("apart", {{"h.0.q", {kHeld.at("a"), 3}}, {"h.0.k", {kHeld.at("b"), 3}}, {"h.0.v", {kHeld.at("c"), 3}}});
  const State fused = state("fused", {{"l.0.qkv", {tensor({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 3}}});
  const State other = state("other", {{"l.0.qkv", {tensor({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11}), 3}}});
  CHECK(verdict(fused, apart, "l.*.qkv = cat(h.*.q, h.*.k, h.*.v)\n") == "exact");
  CHECK(verdict(apart, fused, "# a comment\ncat(h.*.q, h.*.k, h.*.v) = l.*.qkv\n") == "exact");
  CHECK(verdict(apart, other, "cat(h.*.q, h.*.k, h.*.v) = l.*.qkv\n") == "DIFFERENT: float32 of l.0.qkv, element 9");
  CHECK(verdict(apart, fused, "cat(h.*.k, h.*.q, h.*.v) = l.*.qkv\n") == "DIFFERENT: float32 of l.0.qkv, element 0");
  CHECK(verdict(apart, fused, "cat(h.*.q, h.*.k) = l.*.qkv\n") == "DIFFERENT: float32 of l.0.qkv");
}

TEST_CASE("names: lines that cannot be are told with their number") {
  const State a = state("a", {{"q", {kHeld.at("a"), 3}}, {"k", {kHeld.at("b"), 4}}});
  const State b = state("b", {{"qk", {kHeld.at("a"), 3}}});
  CHECK(verdict(a, b, "cat(q, k) = qk\n") == "names:1: q and k have another step: 3 and 4");
  CHECK(verdict(a, b, "q qk\ncat(q, w) = qk\n") == "names:2: no parameter of that side is w");
  CHECK(verdict(a, b, "cat(w, q) = qk\n") == "names:1: a has no w");
  CHECK(verdict(a, b, "q = k\n") == "names:1: expected NAME = EXPRESSION or EXPRESSION = NAME: qkv = cat(q, k, v)");
  CHECK(verdict(a, b, "cat(*.q, k) = *.qk\n") == "names:1: expected one * in each name, or in none");
}

}  // namespace
}  // namespace zs::state
