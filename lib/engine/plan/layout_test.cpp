// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.hpp"

#include <doctest/doctest.h>

#include "plan/shape_test.hpp"

namespace zs::plan {
namespace {

std::string words(const Division& division) {
  std::string text = division.optimizer_state ? "optimizer " : "";
  if (division.gradients) text += "gradients ";
  return text + (division.parameters ? "parameters " : "");
}

TEST_CASE(
    "what a stage divides: each stage one thing more, and nothing on one rank, but for parameters that come and go") {
  const std::array<std::string, 4> divided = {"", "optimizer ", "optimizer gradients ",
                                              "optimizer gradients parameters "};
  for (const int stage : kStages) {
    CAPTURE(stage);
    CHECK(words(divided_by(stage)) == divided.at(static_cast<std::size_t>(stage)));
    CHECK(words(divided_in_memory(shape(stage, 2), false)) == words(divided_by(stage)));
    CHECK(words(divided_in_memory(shape(stage, 1), false)).empty());
    const std::string moves = divided_by(stage).parameters ? "parameters " : "";
    CHECK(words(divided_in_memory(shape(stage, 1), true)) == moves);
    Shape integers = shape(stage, 1);
    integers.quantized_weights = true;
    CHECK(words(divided_in_memory(integers, false)) == moves);
    integers.quantized_weights = false, integers.quantized_gradients = true;
    CHECK(words(divided_in_memory(integers, false)).empty());
  }
  CHECK(is_stage(0));
  CHECK(is_stage(3));
  CHECK_FALSE(is_stage(-1));
  CHECK_FALSE(is_stage(4));
}

TEST_CASE("a share of what is divided, and of what is not") {
  CHECK(share(12, true, 4) == 3);
  CHECK(share(12, false, 4) == 12);
}

}  // namespace
}  // namespace zs::plan
