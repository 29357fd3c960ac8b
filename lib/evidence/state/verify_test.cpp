// SPDX-License-Identifier: Apache-2.0
// What verify finds, and what it must not call wrong.
#include <doctest/doctest.h>

#include <algorithm>

#include "state/describe.hpp"

namespace zs::state {
namespace {

using tensorfile::Shape;
using tensorfile::Storage;
using tensorfile::Tensor;

Tensor ones(const Shape& shape) {
  const std::vector<float> values(static_cast<std::size_t>(Whole{{}, shape}.count()), 1);
  return make_tensor(tensorfile::Dtype::f32, shape,
                     Storage::own({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
}

bool has_fault(const State& state, const std::string& text) {
  return std::ranges::any_of(state.faults, [&](const auto& one) { return one.find(text) != std::string::npos; });
}

TEST_CASE("verify: a moment has the shape of its weight only where the optimizer has a number for each element") {
  const auto faults = [](const char* kind, const Shape& shape) {
    State state;
    Parameter& parameter = state.parameter("w");
    parameter.weight = checkpoints::whole(ones({2, 3}), "file");
    parameter.moments[kind] = checkpoints::whole(ones(shape), "file");
    verify(state);
    CHECK((state.faults.empty() || has_fault(state, std::string("w: ") + kind + " has the shape ")));
    return state.faults.size();
  };
  CHECK(faults("mu_product", {}) == 0);   // NAdam
  CHECK(faults("eta", {}) == 0);          // ASGD
  CHECK(faults("row_var", {2, 1}) == 0);  // Adafactor
  CHECK(faults("exp_avg_sq_col", {3}) == 0);
  for (const char* const kind : {"exp_avg", "exp_avg_sq", "momentum_buffer"}) {
    CHECK(faults(kind, {2, 3}) == 0);
    CHECK(faults(kind, {6}) == 1);
    CHECK(faults(kind, {3, 2}) == 1);
  }
}

TEST_CASE("verify: the steps of one optimizer are those of the training, of several nobody knows") {
  State state;
  state.step = 3;
  state.parameter("w").step = 2;
  State several = state;
  CHECK(verify(state).not_checked.empty());
  CHECK(has_fault(state, "has taken 2 steps of w, the training 3"));
  several.optimizers = 2;
  CHECK(verify(several).not_checked.size() == 1);
  CHECK(several.faults.empty());
}

}  // namespace
}  // namespace zs::state
