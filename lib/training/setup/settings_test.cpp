// SPDX-License-Identifier: Apache-2.0
#include "setup/settings.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <map>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "config/known.hpp"
#include "config/reading.hpp"
#include "plan/pass.hpp"
#include "setup/batches.hpp"
#include "setup/memory.hpp"

namespace zs::setup {
namespace {

config::Config configured(const std::string& yaml) {
  config::Config config = config::Config::parse("model: {name: tiny, num_layers: 1}\n" + yaml, "c.yaml");
  config.add_defaults();
  config.check();
  return config;
}

setup::Settings of(const std::string& yaml, int ranks = 1) { return setup::settings(configured(yaml), ranks); }

std::string line(std::string_view key, const std::string& value) { return std::string(key) + ": " + value + "\n"; }

std::string refusal(const std::string& yaml, int ranks = 1) {
  try {
    of(yaml, ranks);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool noted(const setup::Settings& settings, const std::string& what) {
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

  setup::Batches batches(const std::string& yaml, std::int64_t leaves = 1) const {
    const setup::Settings settings = of("data.dataset_path: " + path + "\nmodel.seq_length: 8\n" + yaml);
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
  const setup::Settings split = of("training: {batch_size: 32, max_gpu_batch_size: 16}\n");
  CHECK(split.batch_size == 16);
  CHECK(split.micro_steps == 2);
  CHECK(split.eval_batch_size == 16);
  CHECK(of("training: {batch_size: 8, max_gpu_batch_size: 16}\n").micro_steps == 1);
  CHECK(of("training: {batch_size: 8, gradient_accumulation_steps: 4}\n").micro_steps == 4);
  const setup::Settings both =
      of("training:\n  batch_size: 32\n  max_gpu_batch_size: 16\n  gradient_accumulation_steps: 8\n");
  CHECK(both.batch_size == 16);
  CHECK(both.micro_steps == 2);
  CHECK(noted(both,
              "c.yaml:5: training.gradient_accumulation_steps is 8, and max_gpu_batch_size takes its place: batch_size "
              "32 is 2 micro-batches of 16"));
  CHECK(of("training: {batch_size: 8, max_gpu_batch_size: 16, gradient_accumulation_steps: 8}\n").micro_steps == 8);
  CHECK(refusal("training: {batch_size: 32, max_gpu_batch_size: 5}\n") ==
        "c.yaml:2: training.max_gpu_batch_size must divide batch_size, 32");
}

TEST_CASE("settings: ranks that share sequences are groups, and what they cannot share is refused by name") {
  const setup::Settings four =
      of("zero: {sequence_parallel: 2, sequence_chunks: 4}\ntraining: {train_batch_size: 6, batch_size: 2}\n", 4);
  CHECK(four.groups() == 2);
  CHECK(four.micro_batches() == 3);
  CHECK(four.leaves() == 12);
  CHECK(four.micro_steps == 2);
  CHECK(four.short_ranks == 2);
  CHECK(of("zero: {sequence_parallel: 4}\n", 4).chunks == 4);
  CHECK(of("").leaves() == 1);
  const auto of_two = [](const std::string& yaml) { return refusal("zero: {sequence_parallel: 2}\n" + yaml, 2); };
  CHECK(refusal("zero: {sequence_parallel: 3}\n", 4) ==
        "c.yaml:2: zero.sequence_parallel is 3, and does not divide the 4 ranks, which share each sequence");
  CHECK(refusal("zero: {sequence_parallel: 2, sequence_chunks: 3}\n", 2) ==
        "c.yaml:2: zero.sequence_chunks is 3, and sequence_parallel 2 does not divide it: all ranks have the same "
        "number of chunks");
  CHECK(of_two("model.seq_length: 31\n") ==
        "c.yaml:2: zero.sequence_parallel is 2, and does not divide the 31 tokens of a sequence: choose another "
        "--seq_length");
  CHECK(refusal("zero: {sequence_chunks: 8}\n") ==
        "c.yaml:2: zero.sequence_chunks is 8, and its 8 chunks do not divide the heads of tiny, 4 of queries and 4 of "
        "keys and values: --sequence_chunks may be 1, 2, 4");
  CHECK(of_two("training: {eval: true, dump_logits: l.h5}\n").find("training.dump_logits is of whole sequences") !=
        std::string::npos);
  CHECK(of_two("training.save_gradient_norms: true\n").find("training.save_gradient_norms is of whole micro-batches") !=
        std::string::npos);
  CHECK(of_two("zero.quantized_gradients: true\n").find("leave out zero_quantized_gradients") != std::string::npos);
}

TEST_CASE("settings: ranks that divide experts have a micro-batch each, or none") {
  setup::Settings four;
  four.ranks = 4, four.experts = 2;
  four.divide(6);
  CHECK(four.micro_batches() == 6);
  CHECK(four.micro_steps == 2);
  CHECK(four.short_ranks == 2);
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

TEST_CASE("settings: passes may keep gathered a quarter of what the state leaves of a GPU") {
  const auto room = [](const std::string& yaml, int ranks, double memory) {
    config::Config config = configured("training.dtype: bfloat16\nzero.stage: 3\n" + yaml);
    config.set("model.name", "Meta-Llama-3-8B", "--model_name");
    config.set("model.num_layers", "0", "--num_layers");
    const setup::Settings s = setup::settings(config, ranks);
    return setup::room_for_gathers(model::make(s.model), s, ranks, memory);
  };
  constexpr double kParameters = 8'030'261'248, kMemory = 85e9;
  // Parameters of 2 bytes, gradients of 2, two moments and masters of 4: on two ranks.
  CHECK(room("", 2, kMemory) == doctest::Approx((kMemory - kParameters * 16 / 2) / 4));
  CHECK(room("zero.offload_device: cpu\n", 2, kMemory) > room("", 2, kMemory));
  CHECK(room("", 1, kMemory) == 0);
}

TEST_CASE("settings: what cannot fit into memory is refused, with what it needs and what there is") {
  comm::run_in_process(1, [](comm::Group& group) {
    const auto require = [&](const std::string& yaml, std::int64_t memory) {
      const setup::Settings settings = of(yaml);
      setup::require_memory(group, model::make(settings.model), settings, memory);
    };
    CHECK_NOTHROW(require("model.seq_length: 8\n", 100'000'000));
    const auto word = [&](std::int64_t memory) {
      config::Config deep = configured("model.seq_length: 8\n");
      deep.set("model.num_layers", "3000", "--num_layers");
      const setup::Settings settings = setup::settings(deep, 1);
      return setup::early_word(group, model::make(settings.model), settings, memory);
    };
    CHECK(word(1'000'000'000'000) == "");
    CHECK(word(1'000'000'000) == "");  // refused
    CHECK(
        word(20'000'000'000) ==
        "tiny with 3000 layers has 594881792 parameters, and each rank needs at least 9.52 GB of the 20.00 GB here: to "
        "make it takes a while");
    CHECK_THROWS_AS(require("model.seq_length: 8\n", 1'000'000), Error);
    CHECK_THROWS_AS(require("training.batch_size: 1000000000\n", 1'000'000'000'000), Error);
    CHECK_THROWS_AS(require("training.gradient_accumulation_steps: 1000000000\n", 10'000'000'000), Error);
    config::Config deep = configured("");
    deep.set("model.num_layers", "10000", "--num_layers");
    const setup::Settings settings = setup::settings(deep, 1);
    try {
      setup::require_memory(group, model::make(settings.model), settings, 16'000'000'000);
      FAIL("not refused");
    } catch (const Error& error) {
      const std::string what = error.what();
      CHECK(what.substr(0, what.find("; ")) ==
            "tiny with 10000 layers, stage 3 and batches of 1 x 256 tokens needs at least 31.73 GB for each rank");
      CHECK(what.find(" has 16.00 GB for 1: use fewer layers") != std::string::npos);
    }
  });
}

TEST_CASE("settings: kernels that a GPU does not have are refused before anything is computed") {
  const auto chosen = [](const std::string& yaml, bool gpu) {
    const config::Config config = configured(yaml);
    return setup::settings(config, 1, gpu);
  };
  CHECK_THROWS_WITH_AS(
      chosen("zero.compile: true\ntraining.dtype: float16\n", true),
      "c.yaml:2: zero.compile is true, dtype is float16, and fused kernels on a GPU compute in float32 "
      "or bfloat16: leave out --compile, or use --dtype bfloat16",
      Error);
  CHECK_NOTHROW(chosen("zero.compile: true\ntraining.dtype: float16\n", false));
  CHECK_NOTHROW(chosen("training.dtype: float16\n", true));
  CHECK_NOTHROW(chosen("zero.compile: true\ntraining.dtype: bfloat16\n", true));

  const std::string fp8 = "training.fp8: tensorwise\nzero.compile: true\n";
  const std::string narrow = "zero.compile: true\ntraining.dtype: bfloat16\n";
  CHECK(chosen("training.fp8: tensorwise\n" + narrow, true).float8 == kernel::Scales::tensorwise);
  CHECK(chosen("training.fp8: rowwise\n" + narrow, true).float8 == kernel::Scales::rowwise);
  CHECK(chosen("training.fp8: none\n" + narrow, true).float8 == kernel::Scales::none);
  const std::string gathers = "training.fp8_all_gather: true\n" + narrow;
  CHECK(chosen(gathers + "training.fp8: tensorwise\nzero.stage: 3\n", true).engine.float8_gathers);
  CHECK(!chosen(narrow + "training.fp8: tensorwise\nzero.stage: 3\n", true).engine.float8_gathers);
  const std::string why = "c.yaml:2: training.fp8_all_gather is true, and ";
  CHECK_THROWS_WITH_AS(chosen(gathers + "training.fp8: tensorwise\nzero.stage: 2\n", true),
                       (why + "parameters are gathered in stage 3: use --zero_stage 3").c_str(), Error);
  CHECK_THROWS_WITH_AS(chosen(gathers + "training.fp8: rowwise\nzero.stage: 3\n", true),
                       (why + "fp8 is rowwise: numbers with one scale travel in 8 bits, use --fp8 tensorwise").c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(
      chosen(gathers + "training.fp8: tensorwise\nzero.stage: 3\nzero.quantized_weights: true\n", true),
      (why + "they travel as integers: leave out --zero_quantized_weights").c_str(), Error);
  CHECK_THROWS_WITH_AS(chosen(gathers + "training.fp8: tensorwise\nzero.stage: 3\nmodel.lora_rank: 4\n", true),
                       (why + "some parameters are frozen (--lora_rank, --freeze): leave it out").c_str(), Error);
  CHECK_THROWS_WITH_AS(chosen(fp8, true),
                       "c.yaml:2: training.fp8 is tensorwise, and dtype is float32: products of 8 bits have results of "
                       "16, use --dtype bfloat16",
                       Error);
  CHECK_THROWS_WITH_AS(chosen(fp8 + "training.dtype: bfloat16\nmodel.seq_length: 40\n", true),
                       "c.yaml:2: training.fp8 is tensorwise, and sequences have 40 tokens: choose a --seq_length that "
                       "is a multiple of 16",
                       Error);
}

TEST_CASE("settings: selective checkpointing is of fused kernels, and beside no pass that moves inputs away") {
  const std::string selective = "zero.activation_checkpointing: selective\n";
  const auto both = [](const setup::Settings& s) { return std::pair(s.activation_checkpointing, s.keeps_attention); };
  CHECK(both(of("")) == std::pair(false, false));
  for (const char* const yes : {"true", "yes", "on"})
    CHECK(both(of(line("zero.activation_checkpointing", yes))) == std::pair(true, false));
  CHECK(both(of("zero.activation_checkpointing: off\n")) == std::pair(false, false));
  CHECK(both(of(selective + "zero.compile: true\n")) == std::pair(true, true));
  CHECK(refusal(selective) ==
        "c.yaml:2: zero.activation_checkpointing is selective, and only fused kernels keep what "
        "attention computed: use --compile, or leave selective out");
  CHECK(
      refusal(selective + "zero.compile: true\nzero.passes: 0:prefetch+offload_activation\n") ==
      "c.yaml:2: zero.activation_checkpointing is selective, and the pass offload_activation moves what checkpointing "
      "keeps away: leave out one of them");
  CHECK_THROWS_WITH_AS(configured("zero.activation_checkpointing: selectiv\n"),
                       "c.yaml:2: zero.activation_checkpointing: 'selectiv' is not one of true, selective, false, did "
                       "you mean 'selective'?",
                       Error);
}

TEST_CASE("settings: ranks on GPUs hide communication where no passes are asked for") {
  const auto passes = [](const std::string& yaml, int ranks, bool gpu) {
    return plan::to_text(setup::settings(configured(yaml), ranks, gpu).passes);
  };
  CHECK(passes("", 2, true) == "prefetch,overlap_reduce");
  CHECK(passes("", 1, true).empty());
  CHECK(passes("", 2, false).empty());
  CHECK(passes("zero.passes: none\n", 2, true).empty());
  CHECK(passes("zero.deepcompile: true\n", 2, true) == plan::to_text(plan::from_the_start(plan::usual_passes())));
}

namespace {

/// A value of a setting that is not its default and asks for no file.
std::string other_value(const config::Known& row) {
  static const std::map<std::string_view, std::string> special = {
      {"model.name", "gpt2"},        {"model.tokenizer", "bytes"},       {"model.context_length", "32"},
      {"zero.passes", "prefetch"},   {"tracking.profile_steps", "1"},    {"tracking.probe_values", "1"},
      {"data.dataset_path", ""},     {"zero.plan_profile", "none.json"}, {"training.max_gpu_batch_size", "1"},
      {"zero.deepspeed_config", ""}, {"model.lora_targets", "c_attn"},   {"model.modules_to_save", "ln_f"},
      {"model.lora_adapter", ""},    {"training.freeze", "wte"}};
  if (const auto found = special.find(row.key); found != special.end()) return found->second;
  if (row.type == config::Type::boolean) return row.fallback == "true" ? "false" : "true";
  if (row.type == config::Type::text || row.type == config::Type::list) {
    for (const std::string& choice : config::words(row.choices)) {
      if (choice != row.fallback) return choice;
    }
    return row.key.starts_with("data.image_") ? "0.25,0.5,0.75" : "x";
  }
  for (const char* const number : {"2", "1", "0.5", "0"}) {
    const double value = *parse_real(number);
    if (value >= row.lowest && value <= row.highest && number != row.fallback) return number;
  }
  return "";
}

/// "" where all that `yaml` gives was read; else what refuses it.
std::string without_effect(const std::string& yaml) {
  try {
    const config::Config config = configured(yaml);
    const config::Reading reading(config);
    setup::settings(reading, 1);
    reading.require_read();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The lines that fulfil a condition of Known::needs.
std::string fulfilled(const std::string& condition) {
  const std::size_t equals = condition.find('=');
  const config::Known& row = *config::known(condition.substr(0, equals));
  const std::string value = equals != std::string::npos         ? condition.substr(equals + 1)
                            : row.type == config::Type::boolean ? "true"
                                                                : other_value(row);
  return line(row.key, value) + (value == "nvme" ? "zero.nvme_path: /tmp\n" : "");
}

}  // namespace

// Walks the table of settings: a new one is found by itself.
TEST_CASE("settings: each that is given alone has an effect, or is refused by name with what would give it one") {
  int effective = 0, refused = 0;
  for (const config::Known& row : config::known()) {
    const std::string value = other_value(row);
    if (value.empty() || row.key == "model.name") continue;  // asks for a file, or is set already
    CAPTURE(row.key);
    // Where a default gives it an effect, without that.
    const bool with_final = row.needs.find("training.save_final") != std::string_view::npos;
    const bool with_adamw = row.needs.find("training.optimizer=adamw") != std::string_view::npos;
    const std::string said = without_effect(line(row.key, value) + (with_final ? "training.save_final: false\n" : "") +
                                            (with_adamw ? "training.optimizer: sgd\n" : ""));
    ++(said.empty() ? effective : refused);
    if (!said.empty()) CHECK_MESSAGE(said.find(row.key) != std::string::npos, said);
    const bool needs = !row.needs.empty() || !row.where.empty();
    const bool begins = row.key.starts_with("initialization.") || row.where == "a model that takes text";  // tiny does
    if (!begins) CHECK_MESSAGE((said.find("has no effect here: it needs ") != std::string::npos) == needs, said);
    // What the message says would give it an effect does.
    for (const std::string& condition : config::words(row.needs)) {
      if (row.key == "zero.plan_profile") continue;                                           // and a file
      if (row.key == "training.nesterov" && condition == "training.optimizer=sgd") continue;  // and momentum
      CAPTURE(condition);
      const std::string with = without_effect(line(row.key, value) + fulfilled(condition));
      const bool itself =
          condition.starts_with("zero.offload_param=nvme") || condition.starts_with("zero.offload_device");
      if (!itself) CHECK(with.empty());
    }
  }
  MESSAGE(effective << " settings have an effect alone, " << refused << " are refused");
  CHECK(effective > 50);
  CHECK(refused > 30);
}

TEST_CASE("settings: of images those of text have no effect, and of text those of images") {
  const std::string images = "model.name: tiny-vit\n";
  for (const config::Known& row : config::known()) {
    CAPTURE(row.key);
    const bool for_images = row.where == "a model that takes images", for_text = row.where == "a model that takes text";
    if (!for_images && !for_text) continue;
    const std::string said = without_effect(line(row.key, other_value(row)));
    CHECK_MESSAGE((said.find("it needs " + std::string(row.where)) != std::string::npos) == for_images, said);
  }
}

TEST_CASE("settings: what is the default anyway, and what a run had before, need no effect") {
  CHECK(without_effect("data.image_mean: 0.5\ntracking.wandb_project: zs\ntraining.tf32: no\n").empty());
  config::Config stored = configured("tracking.profile_dir: traces\n");
  stored.mark_stored();
  const config::Reading reading(stored);
  setup::settings(reading, 1);
  CHECK(reading.unread().empty());
  stored.set("tracking.profile_dir", "other", "--profile_dir");
  CHECK_THROWS_WITH_AS(reading.require_read(),
                       "--profile_dir has no effect here: it needs --profile or --profile_steps; leave it out", Error);
}

TEST_CASE("settings: the help of model.name says every name") {
  const std::string help = ", " + std::string(config::known("model.name")->help) + ",";
  for (const std::string& name : model::names()) {
    CAPTURE(name);
    CHECK(help.find(" " + name + ",") != std::string::npos);
  }
}

}  // namespace zs::setup
