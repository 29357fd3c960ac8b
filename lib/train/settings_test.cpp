// SPDX-License-Identifier: Apache-2.0
#include "train/settings.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "train/batches.hpp"
#include "train/memory.hpp"

using namespace zs;

namespace {

config::Config configured(const std::string& yaml) {
  config::Config config = config::Config::parse("model: {name: tiny, num_layers: 1}\n" + yaml, "c.yaml");
  config.add_defaults();
  config.check();
  return config;
}

train::Settings of(const std::string& yaml) { return train::settings(configured(yaml), 1); }

std::string refusal(const std::string& yaml) {
  try {
    of(yaml);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool noted(const train::Settings& settings, const std::string& what) {
  for (const std::string& note : settings.notes) {
    if (note.starts_with(what)) return true;
  }
  return false;
}

/// 64 windows of 8 tokens for training, 7 for validation; the last token has no successor.
struct Text {
  TemporaryFolder folder;
  std::string path = folder.file("text");
  Text() { std::ofstream(path) << std::string(71 * 8 + 1, 'x'); }

  train::Batches batches(const std::string& yaml, std::int64_t leaves = 1) const {
    const train::Settings settings = of("data.dataset_path: " + path + "\nmodel.seq_length: 8\n" + yaml);
    return {settings, model::make(settings.model), leaves * settings.micro_steps};
  }
};

}  // namespace

TEST_CASE("settings: the length of a sequence is the model's own where none is asked for, and that is said") {
  CHECK(of("").model.seq_length == 256);
  CHECK(noted(of(""), "seq_length is 256: it is not set, and tiny has 256 positions"));
  CHECK(of("model.seq_length: 32\n").model.seq_length == 32);
  CHECK_FALSE(noted(of("model.seq_length: 32\n"), "seq_length"));
}

TEST_CASE("settings: a larger batch is split into accumulation steps, in place of those asked for") {
  const train::Settings split = of("training: {batch_size: 32, max_gpu_batch_size: 16}\n");
  CHECK(split.batch_size == 16);
  CHECK(split.micro_steps == 2);
  CHECK(split.eval_batch_size == 16);
  CHECK(of("training: {batch_size: 8, max_gpu_batch_size: 16}\n").micro_steps == 1);
  CHECK(of("training: {batch_size: 8, gradient_accumulation_steps: 4}\n").micro_steps == 4);
  CHECK(refusal("training:\n  batch_size: 32\n  max_gpu_batch_size: 16\n  gradient_accumulation_steps: 8\n") ==
        "c.yaml:5: training.gradient_accumulation_steps says how a batch is split, and so does "
        "training.max_gpu_batch_size (c.yaml:4): leave one out, or set it to null");
  CHECK(refusal("training: {batch_size: 32, max_gpu_batch_size: 5}\n") ==
        "c.yaml:2: training.max_gpu_batch_size must divide batch_size, 32");
}

TEST_CASE("settings: sizes whose product no integer holds are refused") {
  const Text text;
  CHECK_THROWS_WITH_AS(
      text.batches("training: {batch_size: 1000000000, gradient_accumulation_steps: 1000000000, max_steps: 1}", 16),
      "samples of a step: 16000000000 x 1000000000 is more than any machine counts", Error);
  CHECK(text.batches("training: {batch_size: 6700417, gradient_accumulation_steps: 641, max_steps: 1}")
            .samples_per_step() == 4294967297);  // 2^32 + 1
  CHECK_THROWS_AS(text.batches("training: {batch_size: 1000000, max_steps: 100000000000000}").steps(), Error);
}

TEST_CASE("settings: steps are max_steps or those of num_epochs, whichever are fewer") {
  const Text text;
  const auto steps = [&](const std::string& yaml) {
    return text.batches("training: {batch_size: 4" + yaml + "}").steps();
  };
  CHECK(steps("") == 100);
  CHECK(steps(", max_steps: 7") == 7);
  CHECK(steps(", max_steps: 1000") == 1000);  // nobody asked for one epoch
  CHECK(steps(", num_epochs: 1") == 16);
  CHECK(steps(", num_epochs: 20") == 320);
  CHECK(steps(", num_epochs: 20, max_steps: 7") == 7);
  CHECK(steps(", num_epochs: 1, max_steps: 7000") == 16);
  CHECK(steps(", max_steps: 0") == 16);
  CHECK(steps(", num_epochs: 3, max_steps: 0") == 48);
  CHECK(text.batches("training: {batch_size: 3, num_epochs: 2}").steps() == 42);  // 128 samples, the rest of 2 is left
  CHECK_THROWS_WITH_AS(text.batches("training: {batch_size: 65, num_epochs: 1}").steps(),
                       (text.path + ": 64 samples, 1 times, do not fill one step of 65: name more data, or set "
                                    "--max_steps without --num_epochs")
                           .c_str(),
                       Error);
}

TEST_CASE("settings: it is said when nobody asked how long, and when max_steps ends an epoch") {
  const Text text;
  CHECK(noted(of(""), "max_steps is 100: neither max_steps nor num_epochs is set"));
  CHECK_FALSE(noted(of("training.num_epochs: 1\n"), "max_steps"));
  CHECK_FALSE(noted(of("training.max_steps: 100\n"), "max_steps"));
  CHECK(text.batches("training: {num_epochs: 3, max_steps: 70}").cut_short() ==
        "stopped by max_steps before the end of epoch 2: num_epochs 3 takes 192 steps, max_steps is 70");
  CHECK(text.batches("training: {num_epochs: 3, max_steps: 192}").cut_short() == "");
  CHECK(text.batches("training: {num_epochs: 3}").cut_short() == "");
  CHECK(text.batches("training: {max_steps: 3}").cut_short() == "");
}

TEST_CASE("settings: what cannot fit into memory is refused, with what it needs and what there is") {
  comm::run_in_process(1, [](comm::Group& group) {
    const auto require = [&](const std::string& yaml, std::int64_t memory) {
      const train::Settings settings = of(yaml);
      train::require_memory(group, model::make(settings.model), settings, memory);
    };
    CHECK_NOTHROW(require("model.seq_length: 8\n", 100'000'000));
    CHECK_THROWS_AS(require("model.seq_length: 8\n", 1'000'000), Error);
    CHECK_THROWS_AS(require("training.batch_size: 1000000000\n", 1'000'000'000'000), Error);
    CHECK_THROWS_AS(require("training.gradient_accumulation_steps: 1000000000\n", 10'000'000'000), Error);
    config::Config deep = configured("");
    deep.set("model.num_layers", "100000", "--num_layers");
    const train::Settings settings = train::settings(deep, 1);
    try {
      train::require_memory(group, model::make(settings.model), settings, 16'000'000'000);
      FAIL("not refused");
    } catch (const Error& error) {
      const std::string what = error.what();
      CHECK(
          what.starts_with("tiny with 100000 layers, stage 3 and batches of 1 x 256 tokens needs at least 317.24 GB "
                           "for each rank; "));
      CHECK(what.find(" has 16.00 GB for 1: use fewer layers") != std::string::npos);
    }
  });
}

TEST_CASE("settings: kernels that a GPU does not have are refused before anything is computed") {
  const auto placed = [](const std::string& yaml, device::Device::Kind kind) {
    const config::Config config = configured("zero.memory_budget: 1G\n" + yaml);
    train::Settings settings = train::settings(config, 1);
    train::place_on(settings, config, {kind, 0});
  };
  using Kind = device::Device::Kind;
  CHECK_THROWS_WITH_AS(
      placed("zero.compile: true\ntraining.dtype: float16\n", Kind::cuda),
      "c.yaml:3: zero.compile is true, dtype is float16, and fused kernels on a GPU compute in float32 "
      "or bfloat16: leave out --compile, or use --dtype bfloat16",
      Error);
  CHECK_NOTHROW(placed("zero.compile: true\ntraining.dtype: float16\n", Kind::cpu));
  CHECK_NOTHROW(placed("training.dtype: float16\n", Kind::cuda));
  CHECK_NOTHROW(placed("zero.compile: true\ntraining.dtype: bfloat16\n", Kind::cuda));
}
