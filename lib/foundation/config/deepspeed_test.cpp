// SPDX-License-Identifier: Apache-2.0
#include "config/deepspeed.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "config/deepspeed_keys.hpp"
#include "config/known.hpp"

using zs::config::Config;

namespace {

/// A configuration with what a file of DeepSpeed adds to it.
struct Read {
  zs::TemporaryFolder folder;
  std::string path = folder.file("ds.json");
  Config config;
  std::string error;

  explicit Read(const std::string& json, const std::string& yaml = "") {
    std::ofstream(path) << json;
    if (!yaml.empty()) config = Config::parse(yaml, "c.yaml");
    try {
      zs::config::add_deepspeed(config, path);
      config.add_defaults();
      config.check();
    } catch (const zs::Error& failure) {
      error = failure.what();
      if (const auto at = error.find(path); at != std::string::npos) error.replace(at, path.size(), "ds.json");
    }
  }
  std::string text(const char* key) const { return config.text(key); }
};

}  // namespace

TEST_CASE("deepspeed: every key of the table says where its value goes, or why nowhere") {
  for (const std::string& path : zs::config::deepspeed_paths()) {
    CAPTURE(path);
    const zs::config::DeepSpeedKey& key = *zs::config::deepspeed_key(path);
    CHECK(key.path == path);
    if (key.fate == zs::config::Fate::sets) CHECK(zs::config::known(key.what) != nullptr);
    if (key.fate == zs::config::Fate::idle || key.fate == zs::config::Fate::refused) CHECK(!key.what.empty());
  }
}

TEST_CASE("deepspeed: every key that DeepSpeed has is honoured, refused by name, or named as without effect") {
  std::ifstream list("tests/data/deepspeed/keys.txt");
  int keys = 0, set = 0, refused = 0, idle = 0;
  for (std::string path; std::getline(list, path);) {
    if (path.starts_with('#')) continue;
    CAPTURE(path);
    ++keys;
    const zs::config::DeepSpeedKey* const key = zs::config::deepspeed_key(path);
    REQUIRE(key != nullptr);
    // As a file says it: nothing is taken in silence.
    const bool honoured = key->fate == zs::config::Fate::sets || key->fate == zs::config::Fate::read;
    std::string json = "\"of no meaning\"";
    for (std::string rest = path; !rest.empty();) {
      const std::size_t dot = rest.rfind('.');
      json = "{\"" + rest.substr(dot == std::string::npos ? 0 : dot + 1) + "\": " + json + "}";
      rest = dot == std::string::npos ? "" : rest.substr(0, dot);
    }
    // Without a type DeepSpeed takes nothing of these sections.
    const bool adam = path.starts_with("optimizer.") && path != "optimizer.type",
               schedule = path.starts_with("scheduler.params.");
    if (adam || schedule) {
      json = std::string("{\"") + (adam ? "optimizer" : "scheduler") + "\": {\"type\": \"" +
             (adam ? "AdamW" : "WarmupLR") + "\", " + json.substr(json.find('{', 1) + 1);
    }
    const Read r(json);
    std::string said = r.error;
    for (const std::string& warning : r.config.warnings()) said += warning;
    const bool foreign = said.find("takes no such parameter") != std::string::npos;  // of another of its classes
    const char* const how = key->fate == zs::config::Fate::refused ? "is not supported" : "without effect here";
    if (!honoured && !foreign) CHECK_MESSAGE(said.find(how) != std::string::npos, said);
    if (!honoured) CHECK_MESSAGE(said.find(path) != std::string::npos, said);
    set += honoured, refused += key->fate == zs::config::Fate::refused, idle += key->fate == zs::config::Fate::idle;
  }
  MESSAGE(keys << " keys of DeepSpeed: " << set << " honoured, " << refused << " refused by name, " << idle
               << " without effect and said to be");
  CHECK(keys > 300);
  CHECK(zs::config::deepspeed_key("optimizer.params.max_coeff") == nullptr);
}

TEST_CASE("deepspeed: values become settings, with their place in the file") {
  const Read r(R"({
  "train_batch_size": 16, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
  "gradient_clipping": 0.5,
  "steps_per_print": 7,
  "bf16": {"enabled": true},
  "optimizer": {"type": "Adam", "params": {"lr": 3e-4, "betas": [0.8, 0.95], "eps": 1e-6, "weight_decay": 0.2}},
  "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}
})");
  CHECK(r.error == "");
  CHECK(r.config.integer("training.train_batch_size") == 16);
  CHECK(r.config.integer("training.batch_size") == 2);
  CHECK(r.config.integer("training.gradient_accumulation_steps") == 4);
  CHECK(r.config.real("training.max_grad_norm") == 0.5);
  CHECK(r.config.integer("training.log_interval") == 7);
  CHECK(r.text("training.dtype") == "bfloat16");
  CHECK(r.config.real("training.learning_rate") == 3e-4);
  CHECK(r.config.real("training.beta1") == 0.8);
  CHECK(r.config.real("training.beta2") == 0.95);
  CHECK(r.config.real("training.epsilon") == 1e-6);
  CHECK(r.config.real("training.weight_decay") == 0.2);
  CHECK(r.config.integer("zero.stage") == 2);
  CHECK(r.text("zero.offload_device") == "cpu");
  CHECK(r.config.find("training.max_grad_norm")->origin.ends_with("ds.json:3"));
}

TEST_CASE("deepspeed: \"auto\" is left to the settings of zs, and what is left out is what DeepSpeed takes") {
  const Read automatic(R"({"train_micro_batch_size_per_gpu": "auto", "fp16": {"enabled": "auto"},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}},
    "zero_optimization": {"stage": 1, "reduce_bucket_size": "auto"}})",
                       "training: {batch_size: 3, learning_rate: 0.5}\n");
  CHECK(automatic.error == "");
  CHECK(automatic.config.integer("training.batch_size") == 3);
  CHECK(automatic.config.real("training.learning_rate") == 0.5);
  CHECK(automatic.config.real("training.weight_decay") == 0.01);  // of zs
  const Read nothing("{}");
  CHECK(nothing.config.integer("zero.stage") == 0);
  CHECK(nothing.config.real("training.weight_decay") == 0.01);
  CHECK(Read(R"({"optimizer": {"type": "AdamW"}})").config.real("training.weight_decay") == 0);
  CHECK(Read(R"({"optimizer": {"type": "AdamW", "params": {"torch_adam": true}}})")
            .config.real("training.weight_decay") == 0.01);
  CHECK(Read(R"({"optimizer": {"type": "AdamW"}})", "training.weight_decay: 0.3\n")
            .config.real("training.weight_decay") == 0.3);
}

TEST_CASE("deepspeed: the learning rate is the scheduler's where it has one, and DeepSpeed's defaults hold") {
  const Read r(R"({"optimizer": {"type": "AdamW", "params": {"lr": 1}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.25}}})");
  CHECK(r.error == "");
  CHECK(r.config.real("training.learning_rate") == 0.25);
  CHECK(r.text("training.scheduler") == "WarmupLR");
  CHECK(r.text("training.warmup_type") == "log");
  CHECK(r.config.integer("training.lr_warmup_steps") == 1000);
  const auto warnings = r.config.warnings();
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& one) {
    return one.ends_with("without effect here: optimizer.params.lr (scheduler.params.warmup_max_lr takes its place)");
  }));
  CHECK(
      Read(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9}}})").error ==
      "ds.json:1: scheduler.type: warmup_max_lr is not set, and DeepSpeed takes 0.001 then, whatever lr says: set it, "
      "or \"auto\"");
  CHECK(Read(R"({"scheduler": {"type": "WarmupCosineLR"}})").error ==
        "ds.json:1: scheduler.type: total_num_steps is not set: set it, or \"auto\"");
  CHECK(Read(R"({"scheduler": {"params": {"cycle_min_lr": 1}, "type": "OneCycle"}})")
            .error.starts_with("ds.json:1: scheduler.type: OneCycle is not"));
}

TEST_CASE("deepspeed: what its compiler moves out becomes passes, where it compiles") {
  const Read on(R"({"compile": {"deepcompile": true, "offload_opt_states": true, "offload_activation": true}})");
  CHECK(on.error.empty());
  CHECK(on.text("zero.passes") == "0:ALL,3:ALL+offload_adam_states+offload_activation");
  CHECK(Read(R"({"compile": {"deepcompile": true, "offload_parameters": true}})").text("zero.passes") ==
        "0:ALL,3:offload_parameters+ALL");
  CHECK(Read(R"({"compile": {"deepcompile": true, "offload_opt_states": false}})").text("zero.passes").empty());
  const Read off(R"({"compile": {"offload_parameters": true}})");
  CHECK(off.text("zero.passes").empty());
  const auto warnings = off.config.warnings();
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& one) {
    return one.ends_with("without effect here: compile.offload_parameters (compile.deepcompile is not true)");
  }));
}

TEST_CASE("deepspeed: no key is dropped without a word") {
  const Read idle(R"({"zero_optimization": {"stage": 0, "overlap_comm": true, "sub_group_size": 1e9},
    "aio": {"queue_depth": 8}, "wandb": {"enabled": true, "project": "x"}, "fp16": {}})");
  CHECK(idle.error == "");
  std::string warnings;
  for (const std::string& one : idle.config.warnings()) warnings += one + "\n";
  for (const char* const path : {"overlap_comm", "sub_group_size", "aio.queue_depth", "wandb.enabled", "wandb.project"})
    CHECK_MESSAGE(warnings.find(path) != std::string::npos, path);
  const Read comment(R"({"_comment": "of ours", "_notes": {"a": 1}, "gradient_clipping": 1})");
  CHECK(comment.error == "");
  CHECK(comment.config.warnings().front().ends_with(
      "ds.json: without effect here: _comment, _notes (a comment: DeepSpeed reads no such key)"));
  CHECK(Read(R"({"gradient_cliping": 1})").error ==
        "ds.json:1: gradient_cliping: DeepSpeed has no such key, did you mean 'gradient_clipping'?");
  CHECK(Read(R"({"zero_optimization": {"stagee": 1}})").error ==
        "ds.json:1: zero_optimization.stagee: DeepSpeed has no such key, did you mean 'zero_optimization.stage'?");
  CHECK(Read("{\n\"sparse_gradients\": true}").error ==
        "ds.json:2: sparse_gradients: true is not supported: zs has no equivalent");
  CHECK(Read(R"({"sparse_gradients": false})").error == "");
  CHECK(Read(R"({"elasticity": {"enabled": false, "micro_batch_sizes": [2, 4]}})").error == "");
  CHECK(Read(R"({"elasticity": {"enabled": true}})").error.find("is not supported") != std::string::npos);
  CHECK(Read(R"({"zero_optimization": {"stage": 3, "zero_quantized_weights": true}})").error == "");
  CHECK(Read(R"({"zero_optimization": {"stage": 3, "zeropp_loco_param": {"err_beta": 0.8}}})")
            .error.find("is not supported") != std::string::npos);
  CHECK(Read(R"({"optimizer": {"params": {"max_coeff": 0.3}, "type": "Lamb"}})")
            .error.starts_with("ds.json:1: optimizer.type: Lamb is not supported"));
  CHECK(Read(R"({"bfloat16": {"enabled": true, "check_grad_overflow": true}})").text("training.dtype") == "bfloat16");
  CHECK(Read(R"({"zero_optimization": true})").error ==
        "ds.json:1: zero_optimization: true is not supported: write {\"stage\": 1}");
  CHECK(Read(R"({"train_batch_size": 1, "train_batch_size": 2})").error.find("given twice") != std::string::npos);
  CHECK(Read(R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9]}}})").error ==
        "ds.json:1: optimizer.params.betas: '[0.9]' is not two numbers");
}

TEST_CASE("deepspeed: a file and the settings of zs may say the same, and not two things") {
  const std::string json = R"({"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}})";
  CHECK(Read(json, "training: {batch_size: 4.0, dtype: torch.bfloat16}\n").error == "");
  CHECK(
      Read(json, "training: {batch_size: 2}\n").error ==
      "ds.json:1: train_micro_batch_size_per_gpu says 4, and c.yaml:1 says training.batch_size is 2: leave one of them "
      "out");
  CHECK(Read(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})").error ==
        "ds.json:1: bf16.enabled: true, as fp16.enabled is: one number format is enough");
  CHECK(Read(R"({"bf16": {"enabled": false}})", "training.dtype: bfloat16\n").error ==
        "ds.json:1: bf16.enabled: false, and c.yaml:1 says training.dtype is bfloat16: leave one out");
}

TEST_CASE("deepspeed: files of tabs, comments and HJSON's habits are read") {
  CHECK(Read("{\n\t\"gradient_clipping\": 2, # a comment\n\t\"bf16\": {\n\t\t\"enabled\": false\n\t}\n}\n")
            .config.real("training.max_grad_norm") == 2);
}

TEST_CASE(
    "deepspeed: the ratio of an offload is the share of optimizer state; where DeepSpeed ignores it, it is named") {
  const auto said = [](const std::string& zero) {
    const Read r("{\"gradient_clipping\": 1, \"zero_optimization\": {" + zero + "}}");
    std::string text = r.error;
    for (const std::string& warning : r.config.warnings()) text += warning;
    return text + (r.config.has("zero.offload_ratio") ? " ratio " + r.text("zero.offload_ratio") : "");
  };
  CHECK(said(R"("stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.3})") == " ratio 0.3");
  CHECK(said(R"("stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/tmp", "ratio": 1})") == " ratio 1");
  CHECK(said(R"("stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 1.5})")
            .find("'1.5' is not a number from 0 to 1") != std::string::npos);
  CHECK(said(R"("stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.3})")
            .ends_with("without effect here: zero_optimization.offload_optimizer.ratio (zero_optimization.stage is not "
                       "3) ratio 1"));
  CHECK(said(R"("stage": 3, "offload_optimizer": {"ratio": 0.3})")
            .ends_with("(zero_optimization.offload_optimizer.device is none) ratio 1"));
}

TEST_CASE("method: a name stands for stage, backend and offload; typed, it is over the file and not over an option") {
  const auto method = [](const std::string& name, const std::string& yaml, const char* origin) {
    Config config = Config::parse(yaml, "c.yaml");
    config.set("zero.method", name, origin);
    zs::config::add_method(config);
    return config;
  };
  CHECK(method("zero2", "zero.stage: 3\n", "--method").integer("zero.stage") == 2);
  CHECK(method("ddp", "zero.stage: 3\n", "--method").text("zero.backend") == "ddp");
  CHECK(method("single_gpu_offload", "a: 1\n", "c.yaml:2").text("zero.offload_device") == "cpu");
  CHECK_THROWS_WITH_AS(method("zero2", "zero.stage: 3\n", "c.yaml:2"),
                       "c.yaml:2: the method zero2 says 2, and c.yaml:1 says zero.stage is 3: leave one of them out",
                       zs::Error);
  CHECK_THROWS_AS(method("zero4", "a: 1\n", "--method"), zs::Error);
  Config both;
  both.set("zero.stage", "3", "--zero_stage");
  both.set("zero.method", "zero2", "--method");
  CHECK_THROWS_AS(zs::config::add_method(both), zs::Error);
}

namespace {

/// What a client reads of a setting that it does not set itself: the file over the defaults of zs.
std::string taken(const Config& config, const std::string& key) {
  const zs::config::Known& row = *zs::config::known(key);
  const zs::config::Entry* const entry = config.find(key);
  return zs::config::same_form(row, entry ? entry->value : std::string(row.fallback));
}

}  // namespace

TEST_CASE("deepspeed: what a section's own enabled switches off has no effect, at any depth") {
  const auto compressed = [](const std::string& section) {
    return Read(R"({"train_micro_batch_size_per_gpu": 1, "compression_training": {)" + section + "}}").error;
  };
  CHECK(compressed(R"("layer_reduction": {"enabled": false, "keep_number_layers": 6})") == "");
  CHECK(compressed(R"("layer_reduction": {"enabled": true, "keep_number_layers": 6})")
            .find("layer_reduction.enabled: true is not supported") != std::string::npos);
  const std::string groups = R"(, "different_groups": {"a": {"params": {"bits": 8}}}})";
  CHECK(compressed(R"("activation_quantization": {"shared_parameters": {"enabled": false})" + groups) == "");
  CHECK(compressed(R"("activation_quantization": {"shared_parameters": {"enabled": true})" + groups) != "");
}

// What the package itself takes from 300 files: tests/peers/deepspeed.py.
TEST_CASE("deepspeed: of 300 files zs takes what DeepSpeed 0.19.8 takes, or refuses the file") {
  std::ifstream table("tests/data/deepspeed/parsed.jsonl");
  int files = 0, same = 0, of_ranks = 0, both_refuse = 0, zs_refuses = 0;
  for (std::string line; std::getline(table, line);) {
    const auto json = nlohmann::json::parse(line);
    const std::string file = json["file"].dump();
    CAPTURE(file);
    ++files;
    const Read r(file);
    if (json.contains("refused") && json["refused"].get<std::string>().find("batch related") != std::string::npos) {
      ++of_ranks;  // zs-train says it, which knows the ranks
      continue;
    }
    if (json.contains("refused")) {
      CHECK_MESSAGE(!r.error.empty(), "DeepSpeed ends with " << json["refused"]);
      ++both_refuse;
      continue;
    }
    if (!r.error.empty()) {
      CHECK_MESSAGE((r.error.find("is not supported") != std::string::npos ||
                     r.error.find("without a type") != std::string::npos ||
                     r.error.find("is not set") != std::string::npos || r.error.find("null") != std::string::npos),
                    r.error);
      ++zs_refuses;
      continue;
    }
    ++same;
    const auto& expected = json["taken"];
    const auto equal = [&](const char* key, const nlohmann::json& value) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      CAPTURE(key);
      CHECK(taken(r.config, key) == zs::config::same_form(*zs::config::known(key), text));
    };
    equal("training.max_grad_norm", expected["gradient_clipping"]);
    equal("zero.stage", expected["stage"]);
    equal("zero.offload_device", expected["offload_optimizer"]);
    equal("zero.offload_param", expected["offload_param"]);
    equal("training.dtype", expected["dtype"]);
    if (json["file"].contains("train_micro_batch_size_per_gpu")) equal("training.batch_size", expected["micro_batch"]);
    if (json["file"].contains("train_batch_size")) equal("training.train_batch_size", expected["train_batch_size"]);
    if (const auto& adam = expected["optimizer"]; !adam.is_null()) {
      equal("training.optimizer", adam["adamw"] == true ? "adamw" : "adam");
      const auto& schedule = expected["scheduler"];
      const bool highest = !schedule.is_null() && schedule.contains("max_lr");
      equal("training.learning_rate", highest ? schedule["max_lr"] : adam["lr"]);
      equal("training.beta1", adam["betas"][0]);
      equal("training.beta2", adam["betas"][1]);
      equal("training.epsilon", adam["eps"]);
      equal("training.weight_decay", adam["weight_decay"]);
      equal("training.use_torch_adam", adam["torch"]);
    }
    if (const auto& schedule = expected["scheduler"]; !schedule.is_null()) {
      equal("training.scheduler", schedule["type"]);
      // DeepSpeed takes 2 for 1, and so does the schedule of zs (train/schedule.cpp).
      CHECK(std::max<std::int64_t>(2, r.config.integer("training.lr_warmup_steps")) == schedule["warmup_num_steps"]);
      equal("training.warmup_type", schedule["warmup_type"]);
      for (const char* const key : {"warmup_min_lr", "warmup_min_ratio", "cos_min_ratio", "total_num_steps"}) {
        const std::string setting = std::string("training.") + key;
        if (schedule.contains(key) && r.config.has(setting)) equal(setting.c_str(), schedule[key]);
      }
    }
    if (expected.contains("fp16")) {
      for (const auto& [key, value] : expected["fp16"].items()) {
        const std::string setting = "training." + key;
        if (r.config.has(setting)) equal(setting.c_str(), value);
      }
    } else {
      CHECK(!r.config.has("training.loss_scale"));
    }
  }
  MESSAGE(files << " files: " << same << " taken alike, " << both_refuse << " refused by both, " << zs_refuses
                << " by zs alone, " << of_ranks << " whose batches the ranks decide");
  CHECK(files == 300);
  CHECK(same > 60);
}
