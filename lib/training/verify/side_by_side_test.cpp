// SPDX-License-Identifier: Apache-2.0
// The checker itself: it passes where it should, finds every planted fault at its place, and cannot pass by accident.
#include "verify/side_by_side.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "setup/covering_test.hpp"
#include "verify/case_test.hpp"

namespace zs::verify {
namespace {

TEST_CASE(
    "verify: float32 is exact in every stage, in every dtype no bit differs, torch's AdamW and the fused pass alike") {
  const Text text;
  for (const auto& row : setup::covering({4, 3, 2})) {  // any two of stage, ranks and micro-batches meet
    const int stage = row[0], ranks = 1 << row[1], micro_steps = row[2] == 0 ? 1 : 4;
    Request r = request(text, stage, micro_steps, 3);
    r.train.engine.use_torch_adam = ranks == 2;
    r.train.engine.decay_all = ranks != 4;
    r.train.activation_checkpointing = ranks == 4;
    const Verdict verdict = compared(r, ranks).verdict;
    CAPTURE(stage);
    CAPTURE(ranks);
    CAPTURE(micro_steps);
    CHECK(verdict.kind == compare::Verdict::exact);
    CHECK(verdict.steps == 3);
  }
  for (const auto& row : setup::covering({4, 2, 2})) {  // stage, format, kernels
    CAPTURE(setup::shown(row));
    Request r = request(text, row[0], 2, 4);
    r.train.engine.dtype = row[1] == 0 ? at::kBFloat16 : at::kHalf;
    r.train.model.fused = row[2] == 1;
    CHECK(compared(r, 2).verdict.kind == compare::Verdict::exact);
  }
}

TEST_CASE("verify: micro-batches that do not divide among the ranks are exact in every stage") {
  const Text text;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {3, 5}) {
      Request r = request(text, stage, 1, 2);
      r.train.ranks = ranks;
      r.train.divide(7);
      CAPTURE(stage);
      CAPTURE(ranks);
      CHECK(compared(r, ranks).verdict.kind == compare::Verdict::exact);
    }
  }
}

TEST_CASE("verify: adapters and frozen parameters are exact in every stage and format, and of them faults are found") {
  const Text text;
  const model::Adaptation adapters{.rank = 4, .targets = {"all-linear"}};
  struct Kind {
    const char* name;
    model::Adaptation adaptation;
    bool fused;
    at::ScalarType dtype = at::kFloat;
  };
  for (const auto& [name, adaptation, fused, dtype] :
       {Kind{"tiny", adapters, false}, Kind{"tiny-llama", adapters, true, at::kBFloat16},
        Kind{"tiny-phi3", adapters, true}, Kind{"tiny", adapters, false, at::kHalf},
        Kind{"tiny-llama", {.frozen = {"embed_tokens", "mlp"}}, true},
        Kind{"tiny", {.frozen = {"wte", "*.bias"}}, false, at::kBFloat16}}) {
    for (const int stage : {0, 1, 2, 3}) {
      CAPTURE(name);
      CAPTURE(fused);
      CAPTURE(dtype);
      CAPTURE(stage);
      Request r = request(text, stage, 2, 4);
      r.train.model.name = name;
      r.train.model.fused = fused;
      r.train.model.adaptation = adaptation;
      r.train.engine.dtype = dtype;
      r.train.activation_checkpointing = stage == 1;
      const Verdict verdict = compared(r, 2).verdict;
      CHECK_MESSAGE(verdict.kind == compare::Verdict::exact, verdict.reason);
    }
  }
  Request r = request(text, 3, 2, 4);
  r.train.model.adaptation = adapters;
  r.fault = "3:transformer.h.0.mlp.c_fc.lora_B.weight:7";
  const Outcome outcome = compared(r, 2);
  CHECK(outcome.verdict.kind == compare::Verdict::different);
  CHECK(outcome.parameter == "transformer.h.0.mlp.c_fc.lora_B.weight");
  CHECK(outcome.verdict.step == 3);
  r.fault = "3:transformer.h.0.mlp.c_fc.weight:7";
  CHECK_THROWS_WITH_AS(compared(r, 2), "--inject_fault: transformer.h.0.mlp.c_fc.weight is frozen: it has no gradient",
                       UsageError);
  // lora_A has no gradient as long as lora_B is zero: of one step nothing is proved.
  r.fault.clear();
  r.train.max_steps = 1;
  const Verdict one = compared(r, 2).verdict;
  CHECK(one.kind == compare::Verdict::failed);
  CHECK(one.reason.find("lora_A.weight is zero in every step") != std::string::npos);
}

TEST_CASE(
    "verify: experts are exact beside a plain loop over them, in every stage and format, and of one a fault is named") {
  const Text text;
  struct Kind {
    const char* name;
    bool fused;
    at::ScalarType dtype = at::kFloat;
    optimizer::Kind optimizer = optimizer::Kind::adamw;
  };
  int number = 0;
  for (const auto& [name, fused, dtype, kind] :
       {Kind{"tiny-mixtral", false}, Kind{"tiny-qwen3-moe", true}, Kind{"tiny-gpt-oss", false, at::kBFloat16},
        Kind{"tiny-gpt-oss", true, at::kFloat, optimizer::Kind::muon}, Kind{"tiny-mixtral", true, at::kHalf}}) {
    ++number;
    for (const int stage : {0, 1, 2, 3}) {
      CAPTURE(name);
      CAPTURE(fused);
      CAPTURE(dtype);
      CAPTURE(stage);
      if (dtype == at::kFloat && stage % 2 != number % 2) continue;  // of the kinds of float32 each has two stages
      Request r = request(text, stage, 2, dtype == at::kHalf ? 3 : 2);
      r.train.model.name = name;
      r.train.model.num_layers = 2;
      r.train.model.seq_length = 24;
      r.train.model.fused = fused;
      r.train.engine.dtype = dtype;
      r.train.engine.optimizer.kind = kind;
      r.train.activation_checkpointing = stage == 1;
      const Verdict verdict = compared(r, 2).verdict;
      CHECK_MESSAGE(verdict.kind == compare::Verdict::exact, verdict.reason);
    }
  }
  Request r = request(text, 2, 2, 3);
  r.train.model.name = "tiny-mixtral";
  r.train.model.seq_length = 24;
  r.fault = "2:model.layers.0.block_sparse_moe.experts.3.w2.weight:7";
  const Outcome outcome = compared(r, 2);
  CHECK(outcome.verdict.kind == compare::Verdict::different);
  CHECK(outcome.parameter == "model.layers.0.block_sparse_moe.experts.3.w2.weight");
  CHECK(outcome.verdict.step == 2);
}

TEST_CASE("verify: 100 one-bit faults at random places: 100 found, each with its step, parameter, index and rank") {
  const Text text;
  const model::Model model = model::make(request(text, 0, 1, 1).train.model);
  std::mt19937_64 random(20261120);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    const int stage = static_cast<int>(below(4)), ranks = 1 << below(3), micro_steps = 1 << below(2);
    const std::int64_t step = 1 + below(3), unit = below(static_cast<std::int64_t>(model.units.size()));
    const auto& parameters = model.units[static_cast<std::size_t>(unit)]->parameters();
    const unit::Parameter& parameter =
        parameters[static_cast<std::size_t>(below(static_cast<std::int64_t>(parameters.size())))];
    const std::int64_t index = below(parameter.numel());
    std::int64_t rank = 0;
    std::string fault = std::to_string(step) + ":" + parameter.name + ":" + std::to_string(index);
    if (stage == 0 && i % 2) {
      rank = below(ranks);
      fault += ":" + std::to_string(rank);
    } else if (stage > 0) {
      const std::int64_t numel = model.units[static_cast<std::size_t>(unit)]->numel(),
                         element = parameter.offset + index;
      while (numel * (rank + 1) / ranks <= element) ++rank;
    }
    CAPTURE(fault);
    CAPTURE(stage);
    CAPTURE(ranks);
    Request r = request(text, stage, micro_steps, 3);
    r.fault = fault;
    const Outcome outcome = compared(r, ranks);
    const Finding& finding = outcome.verdict.finding;
    const Phase last = stage >= 2 && micro_steps > 1 ? Phase::shard_accumulation : Phase::reduction;
    const bool right = outcome.verdict.kind == compare::Verdict::different && outcome.verdict.step == step &&
                       finding.what == What::gradient && finding.phase == last && outcome.parameter == parameter.name &&
                       finding.index == index && finding.rank == rank && finding.ulp == 1;
    CHECK(right);
    found += right;
  }
  CHECK(found == 100);
}

TEST_CASE("verify: a fault that no rank could show, or that is nowhere, is refused") {
  const Text text;
  const auto refusal = [&](const std::string& fault, int stage, int ranks) {
    Request r = request(text, stage, 1, 3);
    r.fault = fault;
    try {
      compared(r, ranks);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  CHECK(refusal("1:transformer.wte.weight:0:1", 1, 2) ==
        "--inject_fault: rank 1 does not hold that element under stage 1, rank 0 does");
  CHECK(refusal("1:transformer.wte.weight:32768", 0, 1) ==
        "--inject_fault: index in transformer.wte.weight '32768' is not in 0..32767");
  CHECK(refusal("4:transformer.wte.weight:0", 0, 1) == "--inject_fault: step '4' is not in 1..3");
  CHECK(refusal("1:transformer.wte.wieght:0", 0, 1)
            .starts_with("--inject_fault: no parameter 'transformer.wte.wieght', did you mean transformer.wte.weight"));
}

TEST_CASE("verify: it does not pass by accident") {
  const Text text;
  Request still = request(text, 1, 1, 2);
  still.train.schedule.learning_rate = 0;
  Outcome outcome = compared(still, 2);
  CHECK(outcome.verdict.kind == compare::Verdict::failed);
  CHECK(outcome.verdict.reason == "parameter transformer.wte.weight does not move: is the learning rate 0?");

  Request wild = request(text, 1, 1, 6);
  wild.train.schedule.learning_rate = 1e36;
  outcome = compared(wild, 2);
  CHECK(outcome.verdict.kind == compare::Verdict::different);
  CHECK(outcome.verdict.reason.ends_with("is not finite"));

  // Weights of nothing: no signal reaches most parameters.
  Request dead = request(text, 0, 1, 2);
  dead.train.model.init_std = 0;
  outcome = compared(dead, 1);
  CHECK(outcome.verdict.kind == compare::Verdict::failed);
  CHECK(outcome.verdict.reason.find("is zero in every step") != std::string::npos);
}

TEST_CASE("verify: within a tolerance the verdict says so, and the largest difference is kept") {
  const Text text;
  Request r = request(text, 0, 1, 3);
  r.fault = "1:transformer.h.0.mlp.c_fc.weight:5";
  r.tolerance = {1e-3, 1e-6};
  const Verdict verdict = compared(r, 2).verdict;
  CHECK(verdict.kind == compare::Verdict::within);
  CHECK(verdict.largest.gradient.ulp >= 1);
  CHECK(verdict.steps == 3);
}

}  // namespace
}  // namespace zs::verify
