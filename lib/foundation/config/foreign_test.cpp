// SPDX-License-Identifier: Apache-2.0
#include "config/foreign.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::config {
namespace {

TEST_CASE("a training's options are found behind its script, under zs's names where it has one") {
  const auto config = foreign_configuration(
      {"torchrun", "--nproc_per_node", "2", "train.py", "--lr", "1e-3", "--betas", "0.9", "0.95", "--zero_stage=2",
       "--compile", "--min-delta", "-0.5", "data.name=c4", "+trainer.x=1", "input.txt"},
      {}, {});
  CHECK(config.text("training.learning_rate") == "1e-3");
  CHECK(config.text("arguments.betas") == "0.9 0.95");
  CHECK(config.text("zero.stage") == "2");
  CHECK(config.text("zero.compile") == "true");
  CHECK(config.text("arguments.min_delta") == "-0.5");
  CHECK(config.text("data.name") == "c4");
  CHECK(config.text("trainer.x") == "1");
  CHECK_FALSE(config.has("nproc_per_node"));
}

TEST_CASE("a value that zs would not take is the training's own, and no error") {
  const auto config =
      foreign_configuration({"train.py", "--bf16", "true", "--save_steps", "0.1", "--dtype", "strange"}, {}, {});
  CHECK_FALSE(config.has("training.save_steps"));
  CHECK(config.text("arguments.save_steps") == "0.1");
  CHECK(config.text("arguments.dtype") == "strange");
}

TEST_CASE("files that the command names are read, DeepSpeed's keys under both names") {
  const TemporaryFolder folder;
  write_file(
      folder.file("ds.json"),
      R"({"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 4, "gradient_clipping": "auto"})");
  write_file(folder.file("torn.yaml"), "a: [");
  const auto config = foreign_configuration(
      {"deepspeed", "train.py", "--deepspeed", folder.file("ds.json"), "--config", folder.file("torn.yaml")}, {}, {});
  CHECK(config.text("zero.stage") == "3");
  CHECK(config.text("deepspeed.zero_optimization.stage") == "3");
  CHECK(config.text("training.batch_size") == "4");
  CHECK_FALSE(config.has("training.max_grad_norm"));
  CHECK_THROWS_AS(foreign_configuration({"train"}, {folder.file("torn.yaml")}, {}), Error);
}

TEST_CASE("Accelerate's and axolotl's files say stage, number format, ranks and sizes in their own words") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    write_file(folder.file("launch.yaml"), text);
    return foreign_configuration({"accelerate", "launch", "--config_file", folder.file("launch.yaml"), "train.py"}, {},
                                 {});
  };
  const auto fsdp = read(
      "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 4\n"
      "fsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n  fsdp_offload_params: true\n");
  CHECK(fsdp.text("zero.stage") == "2");
  CHECK(fsdp.text("training.dtype") == "bfloat16");
  CHECK(fsdp.text("num_processes") == "4");
  CHECK(fsdp.text("fsdp_config.fsdp_offload_params") == "true");
  CHECK(read("fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true}\n").text("zero.stage") == "3");
  CHECK(read("fsdp_config: {fsdp_sharding_strategy: 1}\n").text("zero.stage") == "3");
  CHECK_FALSE(read("fsdp_config: {fsdp_sharding_strategy: OTHER}\n").has("zero.stage"));
  CHECK(read("deepspeed_config: {zero_stage: 1, gradient_accumulation_steps: 8}\n")
            .text("training.gradient_accumulation_steps") == "8");
  // The file that it points to lies beside it.
  write_file(folder.file("ds.json"), R"({"zero_optimization": {"stage": 3}})");
  CHECK(read("deepspeed_config: {deepspeed_config_file: ds.json}\n").text("zero.stage") == "3");
  write_file(folder.file("lora.yaml"),
             "base_model: gpt2\nsequence_len: 512\nmicro_batch_size: 2\nlearning_rate: 2e-5\ndeepspeed: ds.json\n");
  const auto axolotl = foreign_configuration({"axolotl", "train", folder.file("lora.yaml")}, {}, {});
  CHECK(axolotl.text("model.name") == "gpt2");
  CHECK(axolotl.text("model.context_length") == "512");
  CHECK(axolotl.text("training.batch_size") == "2");
  CHECK(axolotl.text("training.learning_rate") == "2e-5");
  CHECK(axolotl.text("zero.stage") == "3");
}

TEST_CASE("--set holds over all, secrets are withheld") {
  const auto config = foreign_configuration({"train.py", "--lr", "1", "--hf_token", "abc"}, {}, {"lr=2", "note=x y"});
  CHECK(config.text("training.learning_rate") == "2");
  CHECK(config.text("note") == "x y");
  CHECK(config.text("arguments.hf_token") == "(withheld)");
  CHECK_THROWS_AS(foreign_configuration({"train.py"}, {}, {"lr"}), UsageError);
}

}  // namespace
}  // namespace zs::config
