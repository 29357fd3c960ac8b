// SPDX-License-Identifier: Apache-2.0
// Each stage of a step is told apart: one number of the reference is moved by one bit, and the finding names the stage
// that would have made the difference.
#include "verify/probe.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "model/model.hpp"
#include "unit/random.hpp"

namespace zs::verify {
namespace {

constexpr int kUnit = 1, kParameter = 2;  // transformer.h.0.attn.c_attn.weight
constexpr std::int64_t kIndex = 77;

unit::Batch batch(std::int64_t leaf) {
  const at::Tensor tokens =
      at::randint(0, 256, {1, 9}, unit::generator(static_cast<std::uint64_t>(leaf)), at::TensorOptions(at::kLong));
  return {tokens.narrow(1, 0, 8).contiguous(), tokens.narrow(1, 1, 8).contiguous()};
}

Tensors copied(const Tensors& tensors) {
  Tensors copies;
  for (const auto& unit : tensors) {
    copies.emplace_back();
    for (const at::Tensor& tensor : unit) copies.back().push_back(tensor.detach().clone());
  }
  return copies;
}

void move_bit(Tensors& tensors) {
  float& value = tensors[kUnit][kParameter].data_ptr<float>()[kIndex];
  value = std::nextafter(value, INFINITY);
}

/// One step on one rank with two micro-batches; `what` of the reference is off by one bit.
Finding finding_of(const std::string& what, int stage) {
  const model::Model model = model::make({.name = "tiny", .num_layers = 1, .seq_length = 8});
  const auto group = comm::single();
  zero::Engine engine(*group, model.units, {{.stage = stage, .micro_steps = 2}}, {.max_grad_norm = 1});
  Reference reference(model.units, {.max_grad_norm = 1}, 2);
  Probe probe(engine, model.units, 0, {}, /*across=*/false, {});
  Tensors start = copied(reference.parameters());
  if (what == "start") move_bit(start);
  probe.begin_run(start, copied(reference.parameters()));
  if (what == "start") return probe.first();

  std::vector<std::vector<Tensors>> leaves;
  std::vector<Tensors> shards;
  ReferenceStep step = reference.compute(1, batch, [&](std::int64_t, const Tensors& gradients) {
    leaves.push_back({copied(gradients)}), shards.push_back(copied(gradients));
  });
  Tensors used = copied(reference.rounded());
  ReferenceStep doctored = step;
  doctored.sums = copied(step.sums);
  if (what == "used") move_bit(used);
  if (what == "loss") doctored.leaf_losses[1] = std::nextafter(doctored.leaf_losses[1], 0.0F);
  if (what == "leaf") move_bit(leaves[1][0]);
  if (what == "shard") move_bit(shards[1]);
  if (what == "sum") move_bit(doctored.sums);
  if (what == "norm") doctored.grad_norm = std::nextafter(doctored.grad_norm, 0.0);
  probe.begin(1, doctored, leaves, shards, used, 1e-3);
  const zero::StepResult result = engine.step(1, 1e-3, batch);
  reference.update(step, 1e-3);
  Tensors masters = copied(reference.parameters()), copies = copied(reference.rounded());
  if (what == "master") move_bit(masters), move_bit(copies);
  if (what == "copy") move_bit(copies);
  probe.end(result, masters, copies);
  return probe.first();
}

TEST_CASE("probe: every stage of a step is told by name") {
  for (const int stage : {0, 3}) {
    CAPTURE(stage);
    CHECK_FALSE(finding_of("nothing", stage).found);
    const auto stage_of = [&](const std::string& what) {
      const Finding finding = finding_of(what, stage);
      CHECK(finding.found);
      if (finding.parameter >= 0) {
        CHECK(finding.unit == kUnit);
        CHECK(finding.parameter == kParameter);
        CHECK(finding.index == kIndex);
        CHECK(finding.ulp == 1);
      }
      return std::string(name(finding.phase)) + ": " + name(finding.what);
    };
    CHECK(stage_of("start") == "initialisation: parameter");
    CHECK(stage_of("used") == "gather: parameter");
    CHECK(stage_of("loss") == "forward: loss");
    CHECK(stage_of("leaf") == "backward: gradient");
    if (stage == 3) CHECK(stage_of("shard") == "cross-rank reduction: gradient");
    CHECK(stage_of("sum") == (stage == 0 ? "cross-rank reduction: gradient" : "local accumulation: gradient"));
    CHECK(stage_of("norm") == "clipping: norm");
    CHECK(stage_of("master") == "optimizer: parameter");
    CHECK(stage_of("copy") == "gather: parameter");
  }
  CHECK(finding_of("leaf", 0).leaf == 1);
}

}  // namespace
}  // namespace zs::verify
