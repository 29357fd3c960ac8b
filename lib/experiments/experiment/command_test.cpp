// SPDX-License-Identifier: Apache-2.0
#include "experiment/command.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

using zs::cli::Args;

namespace {

zs::config::Config configured(const std::vector<std::string>& words) {
  static const zs::cli::Command command = zs::experiment::train_command();
  return zs::experiment::configuration(Args::parse(command, words));
}

std::string refusal(const std::vector<std::string>& words) {
  try {
    configured(words);
  } catch (const zs::UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("command: of several names for one key, the last one typed holds") {
  const auto steps = [](const std::vector<std::string>& words) { return configured(words).text("training.max_steps"); };
  CHECK(steps({"--bench_step", "1", "--max_steps", "3"}) == "3");
  CHECK(steps({"--max_steps", "3", "--bench_step", "1"}) == "1");
  CHECK(steps({"--bench_step", "1", "--set", "training.max_steps=3", "training.bench_step=4"}) == "4");
  CHECK(configured({"--registry", "r1", "--output_dir", "r2"}).text("run.output_dir") == "r2");
  CHECK(configured({"--output_dir", "r2", "--registry", "r1"}).text("run.output_dir") == "r1");
  CHECK(configured({"--bf16", "--dtype", "float32"}).text("training.dtype") == "float32");
  CHECK(configured({"--dtype", "float32", "--bf16"}).text("training.dtype") == "bfloat16");
  CHECK(refusal({"--bf16", "--fp16"}) == "--bf16 and --fp16 are one setting, --dtype: give one");
  CHECK(configured({"--bf16", "--bf16", "--amp"}).text("training.dtype") == "bfloat16");
  CHECK(configured({"--set", "training.seed=1", "--seed", "2"}).text("training.seed") == "1");  // --set is over all
}

TEST_CASE("command: a --set that nothing reads is refused, and one of the user's own is kept") {
  CHECK(refusal({"--set", "training.lr=3"}) ==
        "--set: nothing reads 'training.lr', did you mean 'training.learning_rate'?");
  CHECK(refusal({"--set", "lr=3"}) == "--set: nothing reads 'lr', did you mean 'training.learning_rate'?");
  CHECK(refusal({"--set", "run.note=x"}) == "--set: nothing reads 'run.note'");
  CHECK(configured({"--set", "mine.note=x", "--set", "tag=y"}).text("mine.note") == "x");
}

TEST_CASE("command: a key of a file without its section is the option of that name") {
  const zs::TemporaryFolder folder;
  const std::string file = folder.file("flat.yaml");
  const auto read = [&](const std::string& text) {
    zs::write_file(file, text);
    return configured({file});
  };
  CHECK(read("max_steps: 20\nlearning_rate: 0.01\n").text("training.max_steps") == "20");
  CHECK(read("bench_step: 4\n").text("training.max_steps") == "4");
  CHECK(read("mine: 4\n").text("mine") == "4");
  CHECK_THROWS_WITH_AS(read("max_steps: 20\ntraining:\n  max_steps: 30\n"),
                       (file + ":1: max_steps and training.max_steps are one setting: give it once").c_str(),
                       zs::Error);
}

TEST_CASE("command: an empty --set is no way to unset") {
  CHECK(refusal({"--set", "training.seed="}) ==
        "--set: training.seed is empty: is the variable set? (training.seed=null unsets it)");
  CHECK_FALSE(configured({"--max_steps", "3", "--set", "training.max_steps=null"}).has("training.max_steps"));
}

TEST_CASE("command: the names that other trainers use lead to the option of zs") {
  for (const auto& [word, option] : {std::pair{"lr", "learning_rate"},
                                     {"bs", "batch_size"},
                                     {"wd", "weight_decay"},
                                     {"steps", "max_steps"},
                                     {"stage", "zero_stage"},
                                     {"epochs", "num_epochs"},
                                     {"warmup", "lr_warmup_steps"}})
    CHECK(refusal({std::string("--") + word, "3"}) ==
          std::string("unknown option '--") + word + "', did you mean '--" + option + "'?");
}
