// SPDX-License-Identifier: Apache-2.0
#include "probe/diagnosis.hpp"

#include <doctest/doctest.h>

#include <random>

#include "base/words.hpp"

namespace zs::probe {
namespace {

/// One step of Adam on a fused bias of 96 elements in six ranges: of the queries, keys and values two each. `key`: the
/// gradient of the keys, `moved`: how far they are updated, `values`: the values.
Run fused_bias(double key, double moved, double values = 0.001) {
  Run run;
  run.ranks = 1, run.end = 1;
  const auto add = [](Tensors& tensors, const std::string& name, double others, double keys, double last) {
    Tensor& tensor = tensors.at(name);
    tensor.dtype = "F32", tensor.shape = {96}, tensor.total = tensor.held = 96;
    for (std::size_t i = 0; i < 48; ++i)
      tensor.sketch.push_back((i / 16 == 1 ? keys : i / 16 == 2 ? last : others) * (i % 2 == 0 ? 1 : -1));
    for (const double sum : tensor.sketch) tensor.squares += sum * sum;
    tensor.digest = std::hash<double>()(others) ^ std::hash<double>()(keys) ^ std::hash<double>()(last);
  };
  add(run.starts[0], "param/bias", 0.5, 0.25, 0.5);
  Tensors& step = run.steps[1].tensors;
  add(step, "grad/bias", 0.125, key, 0.125);
  add(step, "state.exp_avg_sq/bias", 0.015625, key * key, 0.015625);
  add(step, "param/bias", 0.5 - 0.001, 0.25 - moved, 0.5 - values);
  return run;
}

/// A tensor of 32 elements whose sums are `value`, negative but for each `period`th.
void add(Tensors& tensors, const std::string& name, double value, std::size_t period = 2) {
  Tensor& tensor = tensors.at(name);
  tensor.dtype = "F32", tensor.shape = {32}, tensor.total = tensor.held = 32;
  for (std::size_t i = 0; i < 16; ++i) tensor.sketch.push_back(value * (i % period == 0 ? 1 : -1));
  for (const double sum : tensor.sketch) tensor.squares += sum * sum;
  tensor.digest = std::hash<double>()(value);
}

/// The same of a bias of its own, beside the weight that it belongs to.
Run own_bias(double gradient, double moved) {
  Run run;
  run.ranks = 1, run.end = 1;
  add(run.starts[0], "param/keys.weight", 0.5);
  add(run.starts[0], "param/keys.bias", 0.5);
  Tensors& step = run.steps[1].tensors;
  add(step, "grad/keys.weight", 0.125);
  add(step, "grad/keys.bias", gradient);
  add(step, "state.exp_avg_sq/keys.bias", gradient * gradient);
  add(step, "param/keys.weight", 0.499);
  add(step, "param/keys.bias", 0.5 - moved);
  return run;
}

}  // namespace

TEST_CASE("diagnosis: what draws random numbers in each step says so, as dropout does") {
  Run still = own_bias(1e-3, 1e-3), drawing_run = still;
  for (std::int64_t step = 1; step <= 3; ++step) {
    StepRow row;
    row.generators["torch"] = "same";
    still.steps[step].ranks[0] = row;
    row.generators["torch"] = std::to_string(step);
    drawing_run.steps[step].ranks[0] = row;
  }
  const Side a{still, still.steps[2], nullptr}, b{drawing_run, drawing_run.steps[2], nullptr};
  CHECK(drawing(a, a, 2).empty());
  CHECK(drawing(a, b, 2) == "; only B draws random numbers in each step, as active dropout does");
  CHECK(drawing(b, b, 2).ends_with("as active dropout does: other micro-batches get other masks"));
}

TEST_CASE("diagnosis: the update of a gradient that is rounding alone is nobody's, that of another is judged") {
  const Diagnosis same = diagnose(fused_bias(1e-9, 1e-4), fused_bias(-2e-9, -2e-4));
  CHECK_FALSE(same.first);
  // The ranges beside the keys' may share elements with them.
  CHECK(same.left_out ==
        "2 of 6 ranges of gradients, 4 of 6 ranges of optimizer state exp_avg_sq, 4 of 6 ranges of updates, over all "
        "steps: the gradient there is rounding alone (bias)");
  // The ledger compares the elements of all ranges with the bound of the parameter.
  const Run left = fused_bias(1e-9, 1e-4), right = fused_bias(-2e-9, -2e-4);
  const auto bias = [](const Run& run) { return run.steps.at(1).tensors.find("param/bias")->sketch; };
  CHECK(same.judged.at(thing(1, "param/bias")) >= distance(bias(left), bias(right)));
  const Diagnosis beside = diagnose(fused_bias(1e-9, 1e-4), fused_bias(-2e-9, -2e-4, 0.002));
  REQUIRE(beside.first);
  CHECK(beside.first->parameter == "bias");
  const Diagnosis apart = diagnose(fused_bias(0.125, 1e-4), fused_bias(0.125, -2e-4));
  REQUIRE(apart.first);
  CHECK(apart.first->place == "update");
  const Diagnosis equal = diagnose(fused_bias(0.125, 1e-4), fused_bias(0.125, 1e-4));
  CHECK_FALSE(equal.first);
  CHECK(equal.left_out.empty());
}

TEST_CASE(
    "diagnosis: a bias whose gradient is rounding beside its weight's is left out whole, and counted; a small one is "
    "not") {
  const Diagnosis keys = diagnose(own_bias(1e-9, 1e-3), own_bias(-1e-9, -1e-3));
  CHECK_FALSE(keys.first);
  CHECK(keys.left_out.find("2 of 2 ranges of updates") != std::string::npos);
  const Diagnosis turned = diagnose(own_bias(1e-3, 1e-3), own_bias(-1e-3, -1e-3));
  REQUIRE(turned.first);
  CHECK(turned.first->place == "grad");
  CHECK(turned.left_out.empty());
  CHECK(diagnose(own_bias(1e-9, 1e-3), own_bias(1e-3, 1e-3)).first);  // one of them is no rounding
}

TEST_CASE("diagnosis: a note says which step is the first with other bits, unless it is the first") {
  const auto trained = [](int from, double apart) {
    Run run;
    run.ranks = 1, run.end = 3;
    add(run.starts[0], "param/w", 0.5, 3);
    for (int number = 1; number <= 3; ++number) {
      const double other = number >= from ? 1 + apart : 1;
      add(run.steps[number].tensors, "grad/w", 0.125 * other, 3);
      add(run.steps[number].tensors, "param/w", 0.5 - 0.01 * number * other, 3);
    }
    return run;
  };
  const auto notes = [&](int from) { return joined(diagnose(trained(9, 0), trained(from, 1e-8)).notes); };
  CHECK(notes(2).find("step 2 is the first with other bits") != std::string::npos);
  CHECK(notes(1).empty());
  CHECK(notes(9).empty());
}

TEST_CASE("diagnosis: in bfloat16 a factor of some ranges is no rounding, and noise as large is") {
  // Two micro-batches of a gradient of six ranges. `factor`: of the first two ranges. `noise`: relative.
  const auto trained = [](double factor, double noise, std::uint64_t seed) {
    Run run;
    run.ranks = 1, run.end = 1;
    std::mt19937_64 values(7), errors(seed);
    std::normal_distribution<double> normal;
    const auto add = [&](Tensors& tensors, const std::string& name, bool moves) -> Tensor& {
      Tensor& tensor = tensors.at(name);
      tensor.dtype = "F32", tensor.shape = {96}, tensor.total = tensor.held = 96;
      for (std::size_t i = 0; i < 48; ++i)
        tensor.sketch.push_back(normal(values) * (moves && i < 16 ? factor : 1) *
                                (moves ? 1 + noise * normal(errors) : 1));
      for (const double sum : tensor.sketch) tensor.squares += sum * sum;
      tensor.digest = moves ? seed : 1;
      return tensor;
    };
    add(run.starts[0], "param/w", false);
    Step& step = run.steps[1];
    step.computed = "BF16";
    Tensor& sum = add(step.tensors, "grad/w", true);
    sum.sketch.assign(48, 0);
    for (int micro = 0; micro < 2; ++micro) {
      Contribution& one = step.locals[{0, micro}];
      one.micro = micro;
      const Tensor& part = add(one.tensors, "w", true);
      for (std::size_t i = 0; i < 48; ++i) sum.sketch[i] += part.sketch[i];
    }
    return run;
  };
  const Run plain = trained(1, 0, 1);
  const Diagnosis noise = diagnose(plain, trained(1, 0.05, 2));
  CHECK_FALSE(noise.first);
  CHECK(noise.computed == "BF16");
  const Diagnosis factor = diagnose(plain, trained(1.05, 0.01, 3));
  REQUIRE(factor.first);
  CHECK((factor.first->place == "grad" || factor.first->place == "local"));
  CHECK_FALSE(diagnose(plain, trained(1.01, 0.01, 4)).first);  // as small as rounding
}

TEST_CASE("diagnosis: of a record that grows each step is compared once, and what is said is what the whole one says") {
  Run a = fused_bias(0.125, 1e-4), b = a;
  a.steps[2] = a.steps[3] = a.steps[1];
  const Step equal = b.steps[1], other = fused_bias(0.25, 1e-4).steps[1];
  Diagnosing growing(a, b, nullptr);
  CHECK(growing.next().steps == 1);
  CHECK(growing.last() == 1);
  b.steps[1] = other;  // which was compared
  b.steps[2] = equal;
  const Diagnosis two = growing.next();
  CHECK(two.steps == 2);
  CHECK_FALSE(two.first);
  CHECK(growing.next().steps == 2);
  b.steps[1] = equal;
  b.steps[3] = other;
  const Diagnosis three = growing.next(), whole = diagnose(a, b);
  REQUIRE(three.first);
  REQUIRE(whole.first);
  CHECK(three.first->step == 3);
  CHECK(three.first->step == whole.first->step);
  CHECK(three.first->relation == whole.first->relation);
  CHECK(three.steps == whole.steps);
  CHECK(three.tensors == whole.tensors);
}

}  // namespace zs::probe
