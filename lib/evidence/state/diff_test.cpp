// SPDX-License-Identifier: Apache-2.0
#include "state/diff.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "compare/pairs_test.hpp"

namespace zs::state {
namespace {

using compare::Verdict;
using tensorfile::Dtype;
using tensorfile::Storage;
using tensorfile::Tensor;
using Named = std::vector<std::pair<std::string, Tensor>>;

template <class T>
Tensor tensor_of(Dtype dtype, const std::vector<T>& values) {
  return tensorfile::make_tensor(
      dtype, {static_cast<std::int64_t>(values.size())},
      Storage::own(std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))));
}
Tensor f32(const std::vector<float>& values) { return tensor_of(Dtype::f32, values); }

State state_of(const std::string& path, const Named& tensors) {
  State state;
  state.path = path, state.framework = "safetensors";
  for (const auto& [name, tensor] : tensors) state.parameter(name).weight = checkpoints::whole(tensor, "file");
  return state;
}

Difference of(const Tensor& a, const Tensor& b, const compare::Tolerance& tolerance = {}) {
  return diff(state_of("A", {{"w", a}}), state_of("B", {{"w", b}}), tolerance);
}

/// The value of a key; "" if there is none.
std::string line(const Difference& found, const std::string& key) {
  for (const auto& [name, value] : found.lines) {
    if (name == key) return value;
  }
  return "";
}

/// A checkpoint with all kinds of things.
State whole_state(const std::string& path) {
  State state = state_of(path, {{"w", f32({1, 2, 3})}});
  state.framework = "zs", state.step = 3, state.skipped = 0;
  Parameter& parameter = state.parameter("w");
  parameter.gradients["gradient"] = checkpoints::whole(f32({4, 5, 6}), "gradients.pt");
  parameter.moments["exp_avg"] = checkpoints::whole(f32({7, 8, 9}), "optimizer.pt");
  parameter.step = 3, parameter.hyper = {{"lr", "0.1"}, {"amsgrad", "False"}};
  state.facts = {{"schedule.last_epoch", "3"}, {"training.epoch", "1"}};
  state.config = {{"n_head", "4"}};
  return state;
}

TEST_CASE("diff: every element is judged, whatever the first one is") {
  std::vector<float> ones(1000, 1), others(1000, 9e9F);
  ones[0] = 0, others[0] = -0.0F;
  const Difference found = of(f32(ones), f32(others));
  CHECK(found.verdict == Verdict::different);
  CHECK(found.kinds.front().differing == 1000);
  CHECK(line(found, "what") == "float32 of w, element 0");
  CHECK(line(found, "B") == "-0 (-0x0p+0)");
  CHECK(line(found, "distance") == "1 ulp; 1000 of 1000 elements differ");
  // A small first difference accepts nothing after it.
  ones[0] = 1, others[0] = 1 + 1e-6F;
  const Difference loose = of(f32(ones), f32(others), {1e-4, 1e-4});
  CHECK(loose.verdict == Verdict::different);
  CHECK(line(loose, "what") == "float32 of w, element 1");
  CHECK(line(loose, "distance").ends_with("1000 of 1000 elements differ, 999 beyond the tolerance"));
}

TEST_CASE("diff: the tolerance holds for every float type, and for no integer") {
  CHECK(of(f32({1}), f32({1.0001F}), {1e-3, 0}).verdict == Verdict::within);
  CHECK(of(tensor_of<double>(Dtype::f64, {1}), tensor_of<double>(Dtype::f64, {1.0001}), {1e-3, 0}).verdict ==
        Verdict::within);
  CHECK(of(tensor_of<std::uint16_t>(Dtype::bf16, {0x3F80}), tensor_of<std::uint16_t>(Dtype::bf16, {0x3F81}), {1e-2, 0})
            .verdict == Verdict::within);
  const Difference half =
      of(tensor_of<std::uint16_t>(Dtype::f16, {0x3C00}), tensor_of<std::uint16_t>(Dtype::f16, {0x3C02}), {1e-2, 0});
  CHECK(half.verdict == Verdict::within);
  CHECK(half.kinds.front().largest.ulp == 2);
  CHECK(of(tensor_of<std::int64_t>(Dtype::i64, {1}), tensor_of<std::int64_t>(Dtype::i64, {2}), {1, 1}).verdict ==
        Verdict::different);
}

TEST_CASE("diff: a value that is not finite fails on both sides alike, and another payload differs") {
  const float nan = std::nanf(""), other = std::bit_cast<float>(0x7FC00001U);
  const Difference same = of(f32({1, nan}), f32({1, nan}));
  CHECK(same.verdict == Verdict::failed);
  CHECK(line(same, "not finite") == "float32 of w");
  const Difference payload = of(f32({1, nan}), f32({1, other}), {1, 1});
  CHECK(payload.verdict == Verdict::different);
  CHECK(line(payload, "B").find("0x7fc00001") != std::string::npos);
  CHECK(of(f32({INFINITY}), f32({INFINITY})).verdict == Verdict::failed);
  // The gradients of a step that both skipped, because they are not finite.
  State a = whole_state("A"), b = whole_state("B");
  for (State* const side : {&a, &b})
    side->parameter("w").gradients["gradient"] = checkpoints::whole(f32({nan, 1, 2}), "gradients.pt");
  CHECK(diff(a, b, {}).verdict == Verdict::failed);
  a.skipped = b.skipped = 1;
  CHECK(diff(a, b, {}).verdict == Verdict::exact);
}

TEST_CASE("diff: another name, shape or type is no equal pair; strides are") {
  CHECK(diff(state_of("A", {{"w", f32({1})}}), state_of("B", {{"v", f32({1})}}), {}).verdict == Verdict::failed);
  const Difference more = diff(state_of("A", {{"w", f32({1})}}), state_of("B", {{"w", f32({1})}, {"v", f32({1})}}), {});
  CHECK(more.verdict == Verdict::inconclusive);
  CHECK(line(more, "reason") == "what both have is equal; float32 is only in B");
  CHECK(line(more, "only in B") == "float32: v");
  CHECK(line(of(f32({1}), f32({1, 2})), "B") == "f32 [2]");
  CHECK(of(f32({1}), tensor_of<std::int32_t>(Dtype::i32, {1})).verdict != Verdict::exact);
  Tensor rows = f32({1, 2, 3, 4, 5, 6}), columns = f32({1, 4, 2, 5, 3, 6}), changed = f32({1, 4, 2, 5, 3, 7});
  rows.shape = {2, 3}, rows.strides = {3, 1};
  for (Tensor* const turned : {&columns, &changed}) turned->shape = {2, 3}, turned->strides = {1, 2};
  CHECK(of(rows, columns).verdict == Verdict::exact);
  CHECK(line(of(rows, changed), "place") == "[1, 2]");
  // Only the first that differs is told, with its place.
  const Difference two =
      diff(state_of("A", {{"v", f32({1})}, {"w", rows}}), state_of("B", {{"v", f32({2})}, {"w", changed}}), {});
  CHECK(line(two, "what") == "float32 of v, element 0");
  CHECK(line(two, "place").empty());
  CHECK(of(f32({}), f32({})).verdict == Verdict::failed);  // nothing was compared
}

TEST_CASE("pairs: tensors") {
  compare::Tally tally("tensors");
  for (const compare::TensorPair& pair : compare::tensor_pairs(2, 20)) {
    const Difference found = diff(state_of("A", pair.a), state_of("B", pair.b), {});
    tally.count(pair.kind, pair.equal, compare::equal(found.verdict));
    if (found.verdict == Verdict::different) CHECK_MESSAGE(!line(found, "what").empty(), pair.kind);
  }
  MESSAGE(tally.text(true));
  CHECK(tally.wrong() == 0);
}

TEST_CASE("diff: each thing of a checkpoint that changes, or that one side lacks, is seen") {
  const State a = whole_state("A");
  REQUIRE(diff(a, whole_state("B"), {}).verdict == Verdict::exact);
  const std::vector<std::pair<std::string, void (*)(State&)>> changes = {
      {"float32 of w, element 1",
       [](State& b) {
         b.parameter("w").weight = checkpoints::whole(f32({1, 9, 3}), "");
       }},
      {"gradient of w, element 0",
       [](State& b) {
         b.parameter("w").gradients["gradient"] = checkpoints::whole(f32({0, 5, 6}), "");
       }},
      {"exp_avg of w, element 2",
       [](State& b) {
         b.parameter("w").moments["exp_avg"] = checkpoints::whole(f32({7, 8, 0}), "");
       }},
      {"step of w", [](State& b) { b.parameter("w").step = 4; }},
      {"lr of w", [](State& b) { b.parameter("w").hyper["lr"] = "0.2"; }},
      {"amsgrad of w", [](State& b) { b.parameter("w").hyper["amsgrad"] = "True"; }},
      {"schedule last_epoch", [](State& b) { b.facts["schedule.last_epoch"] = "4"; }},
      {"training epoch", [](State& b) { b.facts["training.epoch"] = "2"; }},
      {"config n_head", [](State& b) { b.config["n_head"] = "2"; }},
      {"training global step", [](State& b) { b.step = 4; }},
      {"training skipped steps", [](State& b) { b.skipped = 1; }}};
  for (const auto& [what, change] : changes) {
    State b = whole_state("B");
    change(b);
    const Difference found = diff(a, b, {});
    CHECK_MESSAGE(found.verdict == Verdict::different, what);
    CHECK(line(found, "what") == what);
  }
  const std::vector<std::pair<std::string, void (*)(State&)>> losses = {
      {"gradient", [](State& b) { b.parameter("w").gradients.clear(); }},
      {"exp_avg", [](State& b) { b.parameter("w").moments.clear(); }},
      {"step", [](State& b) { b.parameter("w").step.reset(); }},
      {"amsgrad, lr", [](State& b) { b.parameter("w").hyper.clear(); }},
      {"schedule", [](State& b) { b.facts.erase("schedule.last_epoch"); }},
      {"config", [](State& b) { b.config.clear(); }},
      {"training", [](State& b) { b.step.reset(); }}};
  for (const auto& [what, change] : losses) {
    State b = whole_state("B");
    change(b);
    const Difference found = diff(a, b, {});
    CHECK_MESSAGE(found.verdict == Verdict::inconclusive, what);
    CHECK(line(found, "reason")
              .starts_with("what both have is equal; " + what + (what.find(',') == std::string::npos ? " is" : " are") +
                           " only in A"));
  }
  State damaged = whole_state("B");
  damaged.faults = {"B/optimizer.pt: is damaged"};
  CHECK(diff(a, damaged, {}).verdict == Verdict::failed);
}

TEST_CASE(
    "diff: beside weights alone the verdict is of the weights, and the rest is named; a run's checkpoint is whole") {
  const State whole = whole_state("A"), weights = state_of("B", {{"w", f32({1, 2, 3})}});
  for (const bool turned : {false, true}) {
    const State &a = turned ? weights : whole, &b = turned ? whole : weights;
    const Difference found = diff(a, b, {});
    CHECK(found.verdict == Verdict::exact);
    CHECK(line(found, "not compared") ==
          "amsgrad, config, exp_avg, gradient, lr, schedule, step, training of A: B holds weights alone");
    CHECK(diff(a, b, {}, {}, Extent::whole).verdict == Verdict::inconclusive);
  }
  CHECK(diff(whole, state_of("B", {{"w", f32({1, 2, 4})}}), {}).verdict == Verdict::different);
  CHECK(diff(whole, state_of("B", {{"v", f32({1, 2, 3})}}), {}).verdict == Verdict::failed);
  // A weight that is lost is none of what was not asked for.
  State more = whole_state("A");
  more.parameter("v").weight = checkpoints::whole(f32({1}), "");
  CHECK(diff(more, weights, {}).verdict == Verdict::inconclusive);
}

TEST_CASE("diff: what only one program writes is named, and decides nothing") {
  State a = whole_state("A"), b = whole_state("B");
  b.framework = "DeepSpeed";
  b.facts.erase("training.epoch"), b.config.clear(), b.parameter("w").hyper.erase("amsgrad");
  const Difference found = diff(a, b, {});
  CHECK(found.verdict == Verdict::exact);
  CHECK(line(found, "not compared") == "amsgrad, config, training of A: B is of another program");
  b.facts.erase("schedule.last_epoch");
  CHECK(diff(a, b, {}).verdict == Verdict::inconclusive);
}

TEST_CASE("diff: a float32 weight beside its master is compared where one layout writes both") {
  const auto with_master = [](const char* path, bool weight) {
    State state = whole_state(path);
    state.framework = "DeepSpeed", state.layout = "universal", state.stage = 1;
    Parameter& parameter = state.parameter("w");
    parameter.master = checkpoints::whole(f32({1, 2, 3}), "fp32.pt");
    if (!weight) parameter.weight.reset();
    return state;
  };
  const State a = with_master("A", true);
  CHECK(diff(a, with_master("B", true), {}).verdict == Verdict::exact);
  for (const bool turned : {false, true}) {
    State lacking = with_master("B", false);
    CHECK(diff(turned ? lacking : a, turned ? a : lacking, {}).verdict == Verdict::inconclusive);
    lacking.stage = 3;  // which has no weights
    CHECK(diff(turned ? lacking : a, turned ? a : lacking, {}).verdict == Verdict::exact);
  }
  State other = with_master("B", true);
  other.parameter("w").weight = checkpoints::whole(f32({1, 2, 4}), "model.pt");
  CHECK(line(diff(a, other, {}), "what") == "weight of w, element 2");
}

TEST_CASE("diff: the steps of a schedule are one number, as PyTorch counts them and as DeepSpeed does") {
  State a = whole_state("A"), b = whole_state("B");
  b.facts.erase("schedule.last_epoch"), b.facts["schedule.last_batch_iteration"] = "2";
  CHECK(diff(a, b, {}).verdict == Verdict::exact);
  CHECK(diff(b, a, {}).verdict == Verdict::exact);
  CHECK(diff(b, b, {}).verdict == Verdict::exact);
  b.facts["schedule.last_batch_iteration"] = "3";
  CHECK(diff(a, b, {}).verdict == Verdict::different);
}

}  // namespace
}  // namespace zs::state
