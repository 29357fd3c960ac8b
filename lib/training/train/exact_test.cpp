// SPDX-License-Identifier: Apache-2.0
// The first promise: one state digest whatever the stage, the ranks, the accumulation, the passes. Any two settings
// meet in a training (setup/covering_test.hpp). `make check-matrix` trains every stage with every schedule and number
// of ranks.
#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "setup/covering_test.hpp"
#include "train/case_test.hpp"

namespace zs::train {
namespace {

TEST_CASE("exact: stages, ranks, accumulation, passes and checkpointing give the same bits") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  struct Kind {
    bool fused;
    double max_grad_norm;
    const char* model;
    at::ScalarType dtype = at::kFloat;
  };
  const std::vector<Kind> kinds = {{false, 0.0, "tiny"},
                                   {false, 0.5, "tiny"},
                                   {true, 0.5, "tiny"},
                                   {false, 0.5, "tiny-llama"},
                                   {true, 0.5, "tiny-llama"},
                                   {false, 0.5, "tiny-vit"},
                                   {true, 0.5, "tiny-vit"},
                                   {false, 0.5, "tiny", at::kBFloat16},
                                   {true, 0.5, "tiny", at::kBFloat16},
                                   {true, 0.5, "tiny-llama", at::kBFloat16},
                                   {true, 0.5, "tiny-vit", at::kBFloat16}};
  std::vector<CaseResult> expected;
  for (const auto& [fused, max_grad_norm, name, dtype] : kinds) {
    expected.push_back(trained({.max_grad_norm = max_grad_norm, .fused = fused, .model = name, .dtype = dtype}));
    CHECK(expected.back().loss > 1);
    CHECK(expected.back().norm > 0.5);
  }
  for (const auto& row : setup::covering({static_cast<int>(kinds.size()), 4, 4, 2, 2})) {
    const auto kind = static_cast<std::size_t>(row[0]);
    const auto& [fused, max_grad_norm, name, dtype] = kinds[kind];
    const int ranks = 1 << row[2];
    CAPTURE(name);
    CAPTURE(dtype);
    CAPTURE(setup::shown(row));
    Case c{{row[1], ranks, 8 / ranks}, row[3] == 1, row[4] == 1, max_grad_norm, fused, name};
    c.dtype = dtype;
    CHECK(trained(c) == expected[kind]);
  }
}

TEST_CASE("exact: selective checkpointing computes no attention twice, and changes no bit") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  static std::atomic<int> attentions;
  const at::CallbackHandle counting = at::addGlobalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        if (std::string_view(function.name()) == "zs::attention") ++attentions;
        return nullptr;
      }).scopes({at::RecordScope::USER_SCOPE}));
  constexpr int kBlocks = 2, kLeaves = 4, kSteps = 2;
  struct Kind {
    const char* name;
    int stage, ranks;
    bool packed = false;
    int chunks = 1;
  };
  for (const auto& [name, stage, ranks, packed, chunks] :
       {Kind{"tiny", 3, 4}, Kind{"tiny", 0, 1, true}, Kind{"tiny-llama", 2, 2}, Kind{"tiny-llama", 1, 2, false, 2},
        Kind{"tiny-vit", 3, 2}, Kind{"tiny-gemma2", 1, 2, true}, Kind{"tiny-mixtral", 3, 2}}) {
    CAPTURE(name);
    CAPTURE(packed);
    CAPTURE(chunks);
    Case c{.layout = {.chunks = chunks}, .max_grad_norm = 0.5, .fused = true, .model = name, .packed = packed};
    c.layout.divide(kLeaves);
    attentions = 0;
    const CaseResult expected = trained(c);
    const int once = attentions;
    CHECK(once >= kBlocks * kLeaves * kSteps);
    c.layout.stage = stage, c.layout.ranks = ranks, c.compiled = ranks == 4, c.checkpointing = true, attentions = 0;
    c.layout.divide(kLeaves);
    CHECK(trained(c) == expected);
    CHECK(attentions == 2 * once);
    c.keeps_attention = true, attentions = 0;
    CHECK(trained(c) == expected);
    CHECK(attentions == once);
  }
  at::removeCallback(counting);
  // Attention with sinks is LibTorch's, and keeps nothing.
  CHECK_THROWS_WITH_AS(
      trained({.checkpointing = true, .fused = true, .model = "tiny-gpt-oss", .keeps_attention = true}),
      doctest::Contains("--activation_checkpointing selective has no effect here"), Error);
}

TEST_CASE("exact: micro-batches that do not divide among the ranks, on any number of them") {
  const std::vector<std::int64_t> numbers = {1, 3, 6, 7, 10, 12};
  std::vector<Case> whole;
  std::vector<CaseResult> expected;
  for (const std::int64_t leaves : numbers) {
    const std::size_t kind = whole.size();
    Case one{.max_grad_norm = 0.5, .fused = kind % 2 == 1, .model = kind % 3 == 2 ? "tiny-llama" : "tiny"};
    one.dtype = kind % 4 == 3 ? at::kBFloat16 : at::kFloat;
    one.layout.divide(leaves);
    whole.push_back(one);
    expected.push_back(trained(one));
  }
  struct Layout {
    int stage;
    zero::Place optimizer = zero::Place::device, parameters = zero::Place::device;
  };
  const std::vector<Layout> layouts = {{0},
                                       {1},
                                       {1, zero::Place::host},
                                       {2},
                                       {2, zero::Place::host},
                                       {3},
                                       {3, zero::Place::host},
                                       {3, zero::Place::host, zero::Place::host}};
  const std::vector<int> ranks = {2, 3, 4, 5, 6, 7, 12};
  for (const auto& row : setup::covering({static_cast<int>(numbers.size()), static_cast<int>(ranks.size()),
                                          static_cast<int>(layouts.size()), 2, 2})) {
    const auto number = static_cast<std::size_t>(row[0]);
    const Layout& layout = layouts[static_cast<std::size_t>(row[2])];
    CAPTURE(setup::shown(row));
    Case c = whole[number];
    c.layout.stage = layout.stage, c.layout.ranks = ranks[static_cast<std::size_t>(row[1])];
    c.layout.divide(numbers[number]);
    c.compiled = row[3] == 1, c.checkpointing = row[4] == 1;
    c.offload.optimizer = layout.optimizer, c.offload.parameters = layout.parameters;
    CHECK(trained(c) == expected[number]);
  }
}

TEST_CASE("exact: every family of decoders, plain and fused, has one digest whatever the layout") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  std::set<std::string> digests;
  int stage = 0;  // each family and each kernel meets each of them
  for (const char* const name : {"tiny-qwen2", "tiny-qwen3", "tiny-mistral", "tiny-olmo2", "tiny-phi3", "tiny-gemma2",
                                 "tiny-gemma3", "tiny-mixtral", "tiny-qwen3-moe", "tiny-gpt-oss"}) {
    for (const auto& [fused, dtype] : {std::pair(false, at::kFloat), std::pair(true, at::kFloat),
                                       std::pair(false, at::kBFloat16), std::pair(true, at::kBFloat16)}) {
      CAPTURE(name);
      CAPTURE(fused);
      CAPTURE(dtype);
      Case c = brief({.max_grad_norm = 0.5, .fused = fused, .model = name, .dtype = dtype});
      const CaseResult expected = trained(c);
      CHECK(expected.loss > 1);
      CHECK(expected.norm > 0.5);
      CHECK(digests.insert(expected.digest).second);
      CAPTURE(stage);
      c.layout.stage = stage, c.layout.ranks = stage == 1 ? 2 : 4, c.layout.divide(4);
      c.compiled = stage == 3, c.checkpointing = stage == 2;
      if (stage == 3) c.offload = {zero::Place::host, zero::Place::disk, folder.path()};
      CHECK(trained(c) == expected);
      stage = (stage + 1) % 4;
    }
    stage = (stage + 1) % 4;
  }
}

TEST_CASE("exact: samples of several documents have one digest whatever the layout, of every family") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  std::set<std::string> digests;
  struct Kind {
    const char* name;
    bool fused;
    at::ScalarType dtype = at::kFloat;
  };
  int number = 0;
  for (const auto& [name, fused, dtype] :
       {Kind{"tiny", false}, Kind{"tiny", true}, Kind{"tiny-llama", true, at::kBFloat16}, Kind{"tiny-qwen2", false},
        Kind{"tiny-qwen3", true}, Kind{"tiny-mistral", false}, Kind{"tiny-olmo2", true}, Kind{"tiny-phi3", false},
        Kind{"tiny-gemma2", true}, Kind{"tiny-gemma3", false, at::kBFloat16}, Kind{"tiny-mixtral", true},
        Kind{"tiny-qwen3-moe", false}, Kind{"tiny-gpt-oss", true, at::kBFloat16}}) {
    CAPTURE(name);
    CAPTURE(fused);
    CAPTURE(dtype);
    Case c = brief({.max_grad_norm = 0.5, .fused = fused, .model = name, .dtype = dtype});
    digests.insert(trained(c).digest);
    c.packed = true;
    const CaseResult expected = trained(c);
    CHECK(digests.insert(expected.digest).second);
    const int first = number++ % 2;  // a family meets all stages above, documents do here
    for (const int stage : {first, first + 2}) {
      c.layout.stage = stage;
      c.layout.ranks = stage == 0 ? 2 : 4;
      c.layout.divide(4);
      c.compiled = stage == 3;
      c.checkpointing = stage == 2;
      if (stage == 3) c.offload = {zero::Place::host, zero::Place::disk, folder.path()};
      CAPTURE(stage);
      CHECK(trained(c) == expected);
    }
  }
}

TEST_CASE("exact: what is offloaded, in the host's memory or on a disk, changes no bit") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  const CaseResult wide = trained({.max_grad_norm = 0.5}),
                   narrow = trained({.max_grad_norm = 0.5, .dtype = at::kBFloat16});
  // Stages 1, 2 and 3, and stage 3 whose parameters are away too; places, ranks, number formats, schedules.
  for (const auto& row : setup::covering({4, 2, 3, 2, 2, 2})) {
    CAPTURE(setup::shown(row));
    const zero::Place place = row[1] == 0 ? zero::Place::host : zero::Place::disk;
    const int ranks = 1 << row[2];
    Case c{.layout = {std::min(row[0] + 1, 3), ranks, 8 / ranks}, .max_grad_norm = 0.5};
    c.offload = {place, row[0] == 3 ? place : zero::Place::device, folder.path()};
    c.dtype = row[3] == 0 ? at::kFloat : at::kBFloat16;
    c.compiled = row[4] == 1;
    c.checkpointing = row[5] == 1;
    CHECK(trained(c) == (c.dtype == at::kFloat ? wide : narrow));
  }
}

TEST_CASE("exact: every optimizer has one digest, whatever the layout, offloaded, after passes, in every format") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  using optimizer::Kind;
  const TemporaryFolder folder;
  const std::vector<std::string> together = {"offload_parameters", "prefetch", "overlap_reduce", "offload_adam_states"};
  std::set<std::string> digests;
  const std::vector<optimizer::Settings> optimizers = {
      {.kind = Kind::adamw},
      {.kind = Kind::adam, .weight_decay = 0.1},
      {.kind = Kind::sgd, .weight_decay = 0.1},
      {.kind = Kind::sgd, .weight_decay = 0.1, .momentum = 0.9},
      {.kind = Kind::sgd, .momentum = 0.9, .nesterov = true},
      {.kind = Kind::lion, .beta2 = 0.99, .weight_decay = 0.1},
      {.kind = Kind::muon, .weight_decay = 0.1, .momentum = 0.95, .nesterov = true},
      {.kind = Kind::muon, .momentum = 0.9, .ns_steps = 3, .match_rms = true, .adamw_rate_ratio = 0.5},
      {.kind = Kind::adamw_8bit},
  };
  int number = 0;
  for (const optimizer::Settings& settings : optimizers) {
    for (const auto& [model, dtype] : {std::pair("tiny", at::kFloat), std::pair("tiny-llama", at::kBFloat16)}) {
      CAPTURE(optimizer::description(settings.kind).name);
      CAPTURE(model);
      CAPTURE(dtype);
      Case first = brief({.max_grad_norm = 0.5, .model = model});
      first.dtype = dtype;
      first.optimizer = settings;
      const CaseResult expected = trained(first);
      CHECK(digests.insert(expected.digest).second);
      const int half = (number / 2 + number) % 2;  // of each optimizer one model has stages 0 and 2, the other 1 and 3
      ++number;
      for (const int stage : {half, half + 2}) {
        CAPTURE(stage);
        Case c = first;
        c.layout.stage = stage, c.layout.ranks = stage == 1 ? 2 : 4, c.layout.divide(4);
        c.checkpointing = stage == 2;
        if (stage == 1) c.offload.optimizer = zero::Place::host;
        if (stage == 2) c.offload.optimizer = zero::Place::disk;
        if (stage == 3) c.passes = plan::from_the_start(together);
        c.offload.nvme_path = folder.path();
        CHECK(trained(c) == expected);
      }
    }
  }
}

TEST_CASE("exact: one digest whatever share of the optimizer state is offloaded, in every place and stage") {
  const TemporaryFolder folder;
  const std::vector<std::string> together = {"prefetch", "overlap_reduce", "offload_adam_states"};
  using optimizer::Kind;
  const std::vector<std::tuple<const char*, at::ScalarType, Kind>> kinds = {{"tiny", at::kFloat, Kind::adamw},
                                                                            {"tiny-llama", at::kBFloat16, Kind::adamw},
                                                                            {"tiny-llama", at::kBFloat16, Kind::muon}};
  const std::array<double, 4> ratios = {0.0, 0.3, 0.5, 1.0};
  std::vector<Case> whole;
  std::vector<CaseResult> expected;
  for (const auto& [model, dtype, kind] : kinds) {
    whole.push_back({.max_grad_norm = 0.5, .model = model, .dtype = dtype});
    whole.back().optimizer.kind = kind;
    expected.push_back(trained(whole.back()));
  }
  for (const auto& row : setup::covering({3, 3, 4, 3})) {  // the last: on a disk, in memory, there with passes
    CAPTURE(setup::shown(row));
    const auto kind = static_cast<std::size_t>(row[0]);
    const zero::Place place = row[3] == 0 ? zero::Place::disk : zero::Place::host;
    Case c = whole[kind];
    c.layout.stage = row[1] + 1, c.layout.ranks = c.layout.stage == 2 ? 4 : 2,
    c.layout.micro_steps = 8 / c.layout.ranks;
    c.offload = {place, c.layout.stage == 3 ? place : zero::Place::device, folder.path()};
    c.offload.ratio = ratios[static_cast<std::size_t>(row[2])];
    if (row[3] == 2) c.passes = plan::from_the_start(together);
    CHECK(trained(c) == expected[kind]);
  }
}

TEST_CASE("exact: adapters and frozen parameters have one digest, whatever the layout, offloaded, after passes") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  struct Kind {
    const char* name;
    model::Adaptation adaptation;
    bool fused = false;
    at::ScalarType dtype = at::kFloat;
    optimizer::Kind optimizer = optimizer::Kind::adamw;
  };
  const model::Adaptation lora{.rank = 4, .targets = {"all-linear"}};
  // Of the second block alone: no backward comes to the first, and nothing of embedding and head is trained.
  const model::Adaptation late{
      .rank = 3, .alpha = 7, .rank_stabilized = true, .targets = {"layers.1.*.q_proj", "layers.1.*.v_proj"}};
  std::set<std::string> digests;
  int number =
      0;  // two layouts of each: all five for adapters of all layers, those of one block, and frozen parameters
  for (const auto& [name, adaptation, fused, dtype, kind] :
       {Kind{"tiny", lora}, Kind{"tiny", lora, true}, Kind{"tiny", lora, true, at::kBFloat16}, Kind{"tiny-llama", late},
        Kind{"tiny-llama", late, true, at::kBFloat16},
        Kind{"tiny-phi3", {.rank = 2, .targets = {"qkv_proj", "down_proj"}, .modules = {"lm_head", "norm"}}, true},
        Kind{"tiny-qwen3", lora, true, at::kBFloat16, optimizer::Kind::muon},
        Kind{"tiny-gemma2", {.rank = 4, .targets = {"o_proj"}, .frozen = {"lora_A"}}},
        Kind{"tiny", {.frozen = {"wte", "h.0", "*.bias"}}, true},
        Kind{"tiny-llama", {.frozen = {"embed_tokens", "mlp"}}},
        Kind{"tiny-vit", {.frozen = {"embeddings", "layer.0"}}, true}, Kind{"tiny", {.frozen = {"h", "ln_f"}}},
        Kind{"tiny-mixtral", lora}, Kind{"tiny-qwen3-moe", {.frozen = {"embed_tokens", "layers.0", "mlp.gate"}}, true},
        Kind{"tiny-gpt-oss", {.frozen = {"experts.down_proj", "sinks"}}}}) {
    CAPTURE(name);
    CAPTURE(fused);
    CAPTURE(dtype);
    Case first = brief({.max_grad_norm = 0.5, .fused = fused, .model = name, .dtype = dtype});
    first.optimizer.kind = kind;
    if (kind == optimizer::Kind::muon) first.optimizer.momentum = 0.95;
    first.adaptation = adaptation;
    const CaseResult expected = trained(first);
    CHECK(expected.loss > 1);
    CHECK(expected.norm > 0);
    CHECK(digests.insert(expected.digest).second);
    for (int turn = 0; turn < 2; ++turn) {
      const int stage = number++ % 5;  // 4: stage 3 after passes
      const int ranks = stage == 1 ? 2 : 4;
      CAPTURE(stage);
      Case c = first;
      c.layout.stage = std::min(stage, 3), c.layout.ranks = ranks, c.layout.divide(4);
      c.checkpointing = stage == 2 || stage == 4;
      c.offload.nvme_path = folder.path();
      if (stage == 1) c.offload.optimizer = zero::Place::host, c.compiled = true;
      if (stage == 2) c.offload.optimizer = zero::Place::disk;
      if (stage == 3) c.offload.optimizer = zero::Place::host, c.offload.parameters = zero::Place::disk;
      if (stage == 4) {
        c.passes = plan::from_the_start({"offload_parameters", "selective_gather", "prefetch", "overlap_reduce",
                                         "offload_adam_states", "offload_activation"});
        c.budget.gathered_elements = 1;
        c.zeropp.secondary = 2;
      }
      CHECK(trained(c) == expected);
    }
  }
}

TEST_CASE("exact: experts on ranks that share no micro-batches evenly, and under every optimizer, have one digest") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  for (const char* const name : {"tiny-mixtral", "tiny-qwen3-moe", "tiny-gpt-oss"}) {
    for (const optimizer::Kind kind : {optimizer::Kind::adamw, optimizer::Kind::muon}) {
      CAPTURE(name);
      Case first{.max_grad_norm = 0.5, .fused = kind == optimizer::Kind::muon, .model = name};
      first.optimizer.kind = kind;
      if (kind == optimizer::Kind::muon) first.optimizer.momentum = 0.95;
      first.layout.divide(7);
      const CaseResult expected = trained(first);
      for (const int ranks : kind == optimizer::Kind::adamw ? std::array{2, 5} : std::array{3, 7}) {
        const int stage = ranks == 2 ? 3 : ranks == 3 ? 1 : ranks == 5 ? 2 : 3;
        CAPTURE(ranks);
        Case c = first;
        c.layout.stage = stage, c.layout.ranks = ranks;
        c.layout.divide(7);
        c.checkpointing = ranks != 3;
        if (ranks == 2) c.passes = plan::from_the_start({"offload_activation", "prefetch", "offload_adam_states"});
        if (ranks == 3) c.offload = {zero::Place::disk, zero::Place::device, folder.path()};
        CHECK(trained(c) == expected);
      }
    }
  }
}

TEST_CASE("exact: each pass alone, all together and a schedule of them change no bit") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  const CaseResult wide = trained({.max_grad_norm = 0.5, .steps = 3}),
                   narrow = trained({.max_grad_norm = 0.5, .dtype = at::kBFloat16, .steps = 3});
  using Names = std::vector<std::string>;
  const Names together = {"offload_parameters", "selective_gather",    "prefetch",
                          "overlap_reduce",     "offload_adam_states", "offload_activation"};
  std::vector<plan::Schedule> schedules = {plan::from_the_start(together),
                                           {{0, {}}, {1, together}, {2, {"prefetch", "offload_adam_states_sync"}}}};
  for (const plan::Pass& pass : plan::passes()) schedules.push_back(plan::from_the_start({pass.name}));
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    CAPTURE(plan::to_text(schedules[i]));
    for (const int stage : {1, 3}) {
      const int ranks = i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 4;
      Case c{.layout = {stage, ranks, 8 / ranks}, .checkpointing = true, .max_grad_norm = 0.5, .steps = 3};
      c.offload = {zero::Place::device, zero::Place::device, folder.path(),
                   i % 2 == 0 ? zero::Place::host : zero::Place::disk};
      c.dtype = i < 2 && stage == 3 ? at::kBFloat16 : at::kFloat;
      c.passes = schedules[i];
      c.budget.gathered_elements = i == 0 ? 1 : 1'000'000'000;  // units are gathered again, from shards that were away
      CHECK(trained(c) == (c.dtype == at::kFloat ? wide : narrow));
    }
  }
}

TEST_CASE("exact: a secondary partition changes no bit, offloaded or not, after passes or not") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  struct Kind {
    int ranks, secondary;
    zero::Place place;
    at::ScalarType dtype;
  };
  const CaseResult wide = trained({.max_grad_norm = 0.5}),
                   narrow = trained({.max_grad_norm = 0.5, .dtype = at::kBFloat16});
  for (const auto& [ranks, secondary, place, dtype] :
       {Kind{2, 2, zero::Place::device, at::kFloat}, Kind{4, 2, zero::Place::disk, at::kFloat},
        Kind{4, 4, zero::Place::host, at::kFloat}, Kind{8, 4, zero::Place::device, at::kFloat},
        Kind{4, 2, zero::Place::host, at::kBFloat16}, Kind{8, 2, zero::Place::device, at::kBFloat16}}) {
    CAPTURE(ranks);
    CAPTURE(secondary);
    Case c{.layout = {3, ranks, 8 / ranks}, .max_grad_norm = 0.5};
    c.offload = {place, place, folder.path()};
    c.dtype = dtype;
    c.compiled = place != zero::Place::host;
    c.checkpointing = secondary == 4;
    c.zeropp.secondary = secondary;
    CHECK(trained(c) == (dtype == at::kFloat ? wide : narrow));
  }
}

TEST_CASE("exact: what travels as integers is rounded alike on every number of ranks, in every schedule") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  struct Kind {
    bool weights, gradients;
    at::ScalarType dtype;
    std::vector<int> ranks;
  };
  const Case wide{.layout = {.stage = 3, .micro_steps = 4}};
  Case narrow = wide;
  narrow.dtype = at::kBFloat16;
  std::set<std::string> digests = {trained(wide).digest, trained(narrow).digest};
  for (const auto& [weights, gradients, dtype, rank_counts] :
       {Kind{true, false, at::kFloat, {2}}, Kind{false, true, at::kFloat, {4}}, Kind{true, true, at::kFloat, {2, 4}},
        Kind{true, true, at::kBFloat16, {4}}}) {
    Case c{.layout = {.stage = 3, .micro_steps = 4}, .dtype = dtype};
    c.zeropp = {0, weights, gradients, 2};
    const CaseResult expected = trained(c);
    CHECK(expected.loss > 1);
    CHECK(digests.insert(expected.digest).second);  // it rounds, and each way is another
    for (const int ranks : rank_counts) {
      CAPTURE(ranks);
      c.layout.ranks = ranks;
      c.layout.micro_steps = 4 / ranks;
      c.compiled = ranks != 4;
      c.checkpointing = ranks == 4;
      c.zeropp.secondary = ranks == rank_counts.back() && rank_counts.size() > 1 ? 2 : 0;
      CHECK(trained(c) == expected);
    }
  }
}

TEST_CASE("exact: fused kernels follow the plain ones, to rounding") {
  for (const char* const name :
       {"tiny", "tiny-llama", "tiny-vit", "tiny-qwen2", "tiny-qwen3", "tiny-mistral", "tiny-olmo2", "tiny-phi3",
        "tiny-gemma2", "tiny-gemma3", "tiny-mixtral", "tiny-qwen3-moe", "tiny-gpt-oss"}) {
    CAPTURE(name);
    const CaseResult plain = trained(brief({.model = name})), fused = trained(brief({.fused = true, .model = name}));
    CHECK(fused.loss == doctest::Approx(plain.loss).epsilon(1e-5));
    CHECK(fused.norm == doctest::Approx(plain.norm).epsilon(1e-4));
    CHECK(fused.digest != plain.digest);
  }
}

TEST_CASE("exact: bfloat16 follows float32 from afar, plain and fused") {
  const CaseResult wide = trained({.fused = true}), plain = trained({.dtype = at::kBFloat16}),
                   fused = trained({.fused = true, .dtype = at::kBFloat16});
  for (const CaseResult& outcome : {plain, fused}) {
    CHECK(outcome.loss == doctest::Approx(wide.loss).epsilon(3e-3));
    CHECK(outcome.norm == doctest::Approx(wide.norm).epsilon(3e-2));
  }
  CHECK(plain.digest != fused.digest);
}

TEST_CASE("exact: another seed, batch or clipping is another digest") {
  CHECK(trained({.max_grad_norm = 0}).digest != trained({.max_grad_norm = 0.5}).digest);
  CHECK(trained({.layout = {.micro_steps = 4}}).digest != trained({.layout = {.micro_steps = 8}}).digest);
}

}  // namespace
}  // namespace zs::train
