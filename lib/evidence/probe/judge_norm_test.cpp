// SPDX-License-Identifier: Apache-2.0
// The bound of a norm by the type of the gradients.
#include <doctest/doctest.h>

#include <cmath>

#include "probe/judges.hpp"

namespace zs::probe {

TEST_CASE("judges: a norm in bfloat16 is rounded for each tensor, and for all of them") {
  const auto holds = [](const std::string& dtype, double told, double clip = 0) {
    Run run;
    run.ranks = 1;
    Step step;
    Tensor& gradient = step.tensors.at("grad/w");
    gradient.dtype = dtype, gradient.total = gradient.held = 4, gradient.squares = 1;
    step.scalars = {{"norm", told}};
    if (clip > 0) step.scalars["clip"] = clip, gradient.squares = clip * clip;
    Tally tally;
    judge_norm(run, tally, {1, step, nullptr, nullptr});
    return tally.held() == 1 && tally.broken() == 0;
  };
  CHECK(holds("BF16", 1.0078125));  // 1 and a unit of bfloat16
  CHECK_FALSE(holds("BF16", 1.015625));
  CHECK(holds("BF16", 1.0039));
  CHECK_FALSE(holds("BF16", 1.0077));  // not rounded to bfloat16
  CHECK_FALSE(holds("F32", 1.0078125));
  CHECK(holds("BF16", 2, 0.503 / 1.0078125));
}

}  // namespace zs::probe
