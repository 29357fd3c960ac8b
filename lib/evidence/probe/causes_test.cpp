// SPDX-License-Identifier: Apache-2.0
#include "probe/causes.hpp"

#include <doctest/doctest.h>

namespace zs::probe {
namespace {

/// Gradients of a step on two ranks: `of_a`, `of_b` are the factors of two parameters, `local` of the micro-batches'
/// own.
Run trained(double of_a, double of_b, double local = 1) {
  Run run;
  run.ranks = 2;
  const auto add = [](Tensors& tensors, const std::string& name, double value) {
    Tensor& tensor = tensors.at(name);
    tensor.dtype = "F32", tensor.shape = {32}, tensor.total = tensor.held = 32;
    for (std::size_t i = 0; i < 16; ++i) tensor.sketch.push_back(value * (i % 3 == 0 ? 1 : -2));
    tensor.squares = dot(tensor.sketch, tensor.sketch);
  };
  Step& step = run.steps[1];
  add(step.tensors, "grad/a", of_a), add(step.tensors, "grad/b", of_b);
  for (const int rank : {0, 1}) {
    Contribution& one = step.locals[{rank, 0}];
    one.by = rank;
    add(one.tensors, "a", local), add(one.tensors, "b", local);
  }
  return run;
}

Constants causes(const std::vector<std::string>& parameters, double factor, const Run& a, const Run& b) {
  return causes_of(parameters, factor, "grad", {a, a.steps.at(1), nullptr}, {b, b.steps.at(1), nullptr});
}

}  // namespace

TEST_CASE("causes: a factor has one only where all that it would move has it, and none where it comes before") {
  const Run plain = trained(1, 1);
  const Constants both = causes({"a", "b"}, 2, plain, trained(2, 2));
  REQUIRE(both.size() == 1);
  CHECK(both.front().first == "ranks");
  CHECK(causes({"a"}, 2, plain, trained(2, 1)).empty());
  CHECK(causes({"a", "b"}, 2, plain, trained(2, 2, 2)).empty());
  CHECK(causes_of({"a", "b"}, 2, "state.exp_avg", {plain, plain.steps.at(1), nullptr},
                  {plain, plain.steps.at(1), nullptr})
            .empty());
}

TEST_CASE("causes: a parameter of another reduction is of another family") {
  Run other = trained(2, 1);
  other.steps[1].locals.erase({1, 0});
  other.steps[1].locals[{1, 0}].tensors.at("b") = trained(1, 1).steps.at(1).tensors.all().front().second;
  CHECK(causes({"a"}, 2, trained(1, 1), other).size() == 1);
}

TEST_CASE("causes: equal sizes are named together, and each once") {
  Causes causes;
  causes.add("data ranks", 2), causes.add("tensor ranks", 2), causes.add("data ranks", 2), causes.add("none", 1);
  REQUIRE(causes.all().size() == 1);
  CHECK(factor_text(0.5, causes.all(), 1e-6) == "x 1/2 (1 / data ranks or tensor ranks)");
}

TEST_CASE("causes: rounding to bfloat16 is known by its elements, and noise as large is another thing") {
  std::vector<double> values, rounded, noisy;
  for (int i = 1; i <= 32; ++i) {
    values.push_back(0.1 + 0.37 * i), rounded.push_back(rounded_to(values.back(), "BF16"));
    noisy.push_back(values.back() + 0.01 * (i % 2 == 0 ? 1 : -1));
  }
  CHECK(rounded_elements(values, rounded) == 1);
  CHECK(rounded_elements(values, noisy) == -1);
  CHECK(rounded_elements(values, values) == 0);
}

}  // namespace zs::probe
