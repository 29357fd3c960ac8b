// SPDX-License-Identifier: Apache-2.0
#include "train/saving.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "config/reading.hpp"
#include "setup/describe.hpp"

namespace zs::train {
namespace {

struct SavingCase {
  const char *name, *value, *expected, *remedy;
  const char* dtype = "float32";
  bool compiled = false;  ///< with fused kernels, before and after
  bool adapted = false;   ///< with adapters, before and after
};
constexpr SavingCase kCases[] = {
    {"dtype", "bfloat16", "float32, not bfloat16", "--dtype float32"},
    {"autocast", "bfloat16", "none, not bfloat16", "--autocast none"},
    {"static_loss_scale", "1024", "0, not 1024", "--set training.loss_scale=0", "float16"},
    {"initial_scale_power", "8", "16, not 8", "--set training.initial_scale_power=16", "float16"},
    {"loss_scale_window", "10", "1000, not 10", "--set training.loss_scale_window=1000", "float16"},
    {"hysteresis", "3", "2, not 3", "--set training.hysteresis=2", "float16"},
    {"consecutive_hysteresis", "true", "false, not true", "--set training.consecutive_hysteresis=false", "float16"},
    {"min_loss_scale", "4", "1, not 4", "--set training.min_loss_scale=1", "float16"},
    {"compile", "true", "false, not true", "--set zero.compile=false"},
    {"deterministic", "false", "true, not false", "--deterministic"},
    {"tf32", "true", "false, not true", "--set training.tf32=false"},
    {"fp8", "tensorwise", "none, not tensorwise", "--fp8 none", "bfloat16", true},
    {"fp8", "rowwise", "none, not rowwise", "--fp8 none", "bfloat16", true},
    {"nf4", "double", "none, not double", "--nf4 none", "bfloat16", false, true},
    {"use_torch_adam", "true", "false, not true", "--set training.use_torch_adam=false"},
    {"sequence_chunks", "2", "1, not 2", "--sequence_chunks 1"},
    {"quantized_weights", "true", "false, not true", "--set zero.quantized_weights=false"},
    {"quantized_gradients", "true", "false, not true", "--set zero.quantized_gradients=false"},
};

Settings with(const char* dtype, std::string_view key, const char* value, bool compiled = false, bool adapted = false) {
  config::Config config;
  config.set("model.name", "tiny", "test");
  config.set("training.dtype", dtype, "test");
  config.set("run.checkpoint", "saved", "test");
  if (compiled) config.set("zero.compile", "true", "test");
  if (adapted) config.set("model.lora_rank", "2", "test");
  if (!key.empty()) config.set(std::string(key), value, "test");
  config.add_defaults();
  config.check();
  return setup::settings(config, 1, /*gpu=*/true);
}

checkpoint::Progress progress_of(const Settings& s) {
  return {.step = 1,
          .leaves = s.micro_steps,
          .batch_size = s.batch_size,
          .seq_length = s.model.seq_length,
          .seed = static_cast<std::int64_t>(s.engine.seed),
          .sampler_position = s.batch_size,
          .dataset_sha256 = "",
          .arithmetic = chosen_arithmetic(s)};
}

std::string refusal(const checkpoint::Progress& progress, const Settings& now) {
  try {
    require_same(progress, now, 1, "");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("saving: a training does not go on in another arithmetic, whichever attribute it is") {
  for (const attribute::Attribute* const row : attribute::filtered([](const attribute::Attribute& row) {
         return row.role == attribute::Role::arithmetic && !row.key.empty() && !row.found;
       })) {
    INFO(row->name);
    const SavingCase* const found =
        std::ranges::find_if(kCases, [&](const SavingCase& c) { return c.name == row->name; });
    REQUIRE(found != std::end(kCases));
    const checkpoint::Progress before = progress_of(with(found->dtype, "", "", found->compiled, found->adapted));
    CHECK(refusal(before, with(found->dtype, "", "", found->compiled, found->adapted)).empty());
    CHECK(refusal(before, with(found->dtype, row->key, found->value, found->compiled, found->adapted)) ==
          "saved: was made with " + std::string(row->name) + " " + found->expected + ": use " + found->remedy +
              ", or begin another run from its weights, --model_name saved");
  }
}

TEST_CASE("saving: a training does not go on with other samples, and each option that chooses them is named") {
  checkpoint::Progress before = progress_of(with("float32", "", ""));
  before.dataset_sha256 = "d5";
  const std::string said = refusal(before, with("float32", "", ""));
  for (const char* const option : {"--dataset", "--tokenizer", "--text_key", "--packing", "--too_long", "--loss_on",
                                   "--dataset_size", "--dataset_percentage", "--skip_bad_images"})
    CHECK(said.find(" " + std::string(option)) != std::string::npos);
}

TEST_CASE("saving: what a checkpoint of an earlier zs does not say is not asked") {
  checkpoint::Progress before = progress_of(with("float32", "", ""));
  before.arithmetic = {{"dtype", "float32"}, {"autocast", "none"}};
  CHECK(refusal(before, with("float32", "zero.compile", "true")).empty());
  CHECK(refusal(before, with("bfloat16", "", "")).find("was made with dtype float32, not bfloat16") !=
        std::string::npos);
}

}  // namespace zs::train
