// SPDX-License-Identifier: Apache-2.0
#include "probe/diagnosis.hpp"

#include <doctest/doctest.h>

namespace zs::probe {
namespace {

/// One step of Adam on a fused bias of 48 elements in three ranges; `key`: the gradient of the second, `moved`: how far
/// it is updated.
Run fused_bias(double key, double moved) {
  Run run;
  run.ranks = 1, run.end = 1;
  const auto add = [](Tensors& tensors, const std::string& name, double others, double second) {
    Tensor& tensor = tensors.at(name);
    tensor.dtype = "F32", tensor.shape = {48}, tensor.of = tensor.held = 48;
    for (std::size_t i = 0; i < 24; ++i)
      tensor.sketch.push_back((i / 8 == 1 ? second : others) * (i % 2 == 0 ? 1 : -1));
    for (const double sum : tensor.sketch) tensor.squares += sum * sum;
    tensor.digest = std::hash<double>()(others) ^ std::hash<double>()(second);
  };
  add(run.starts[0], "param/bias", 0.5, 0.25);
  Tensors& step = run.steps[1].tensors;
  add(step, "grad/bias", 0.125, key);
  add(step, "state.exp_avg_sq/bias", 0.015625, key * key);
  add(step, "param/bias", 0.5 - 0.001, 0.25 - moved);
  return run;
}

}  // namespace

TEST_CASE("diagnosis: the update of a gradient that is rounding alone is nobody's, that of another is judged") {
  CHECK_FALSE(diagnose(fused_bias(1e-9, 1e-4), fused_bias(-2e-9, -2e-4)).first);
  const Diagnosis apart = diagnose(fused_bias(0.125, 1e-4), fused_bias(0.125, -2e-4));
  REQUIRE(apart.first);
  CHECK(apart.first->place == "update");
  CHECK_FALSE(diagnose(fused_bias(0.125, 1e-4), fused_bias(0.125, 1e-4)).first);
}

}  // namespace zs::probe
