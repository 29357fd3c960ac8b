// SPDX-License-Identifier: Apache-2.0
#include "experiment/command.hpp"

#include <algorithm>
#include <array>

#include "base/claim.hpp"
#include "base/error.hpp"
#include "base/secret.hpp"
#include "cli/engine.hpp"
#include "cli/rows.hpp"
#include "config/deepspeed.hpp"
#include "config/known.hpp"
#include "experiment/accepted.hpp"
#include "input/named.hpp"

namespace zs::experiment {
namespace {

/// Flags that imply a value of an option.
struct Flag {
  const char *name, *option, *key, *value;
};
constexpr std::array kFlags = {Flag{"bf16", "dtype", "training.dtype", "bfloat16"},
                               Flag{"fp16", "dtype", "training.dtype", "float16"},
                               Flag{"amp", "autocast", "training.autocast", "bfloat16"}};

/// Outputs of a training by option: the files in the folder that it names, or that file. A configuration may set it
/// too, and a checkpoint to train on may be there.
struct Written {
  const char *option, *key;
  std::array<const char*, 4> files{};
  bool file = false;
};
constexpr std::array kWritten = {
    Written{"dump_logits", "training.dump_logits", {}, true},
    Written{"save_pretrained",
            "training.save_pretrained",
            {"config.json", "model.safetensors", "adapter_config.json", "adapter_model.safetensors"}},
    Written{"save_initial", "", {"pytorch_model.bin"}},
    Written{"dump_batches", "", {}, true},
    Written{"results", "", {}, true},
    Written{"probe", "tracking.probe"},
    Written{"profile_dir", "tracking.profile_dir"},
    Written{"tensorboard_dir", "tracking.tensorboard_dir"},
    Written{"wandb_dir", "tracking.wandb_dir"}};

bool is_written(const std::string& option) {
  return std::ranges::any_of(kWritten, [&](const Written& row) { return option == row.option; });
}

void claim_outputs(const cli::Args& args, const config::Config& config) {
  for (const Written& row : kWritten) {
    const std::string path = *row.key ? config.text(row.key) : args.peek(row.option);
    if (path.empty()) continue;
    const std::string by = std::string("--") + row.option;
    if (cli::launched_rank() == 0 && row.file) require_place(path, by);
    if (cli::launched_rank() == 0 && !row.file) require_folder(path, by);
    claim_output(path, by);
    for (const char* const file : row.files) {
      if (file) claim_output(path + "/" + file, by);
    }
  }
}

}  // namespace

std::vector<cli::Option> config_options() {
  std::vector<cli::Option> options;
  for (const config::Known& known : config::known()) {
    const auto names = config::words(known.options);
    for (const std::string& name : names) {
      const bool first = name == names.front();
      cli::Option option;
      option.name = name;
      option.value = std::string(known.value);
      option.help = first ? std::string(known.help) : "same as --" + names.front();
      if (first && !known.value.empty()) option.fallback = std::string(known.fallback);
      const bool takes_truth = known.type == config::Type::boolean && !known.value.empty();
      option.choices = takes_truth ? std::vector<std::string>{"true", "false"} : config::words(known.choices);
      option.group = known.key.substr(0, known.key.find('.'));
      option.alone = std::string(known.alone);
      if (first) option.meant = config::words(known.synonyms);
      option.group[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(option.group[0])));
      option.writes = is_written(name);
      options.push_back(option);
    }
    for (const Flag& flag : kFlags) {
      if (known.key != flag.key) continue;
      const std::string same = std::string("same as --") + flag.option + " " + flag.value;
      options.push_back({0, flag.name, "", same, "", {}, false, options.back().group});
    }
  }
  return options;
}

namespace {

std::string configuration_file(const cli::Args& args) {
  const std::string& tool = args.command().name;
  return input::named(args.operand("one configuration"), "", tool == "zs-verify" ? tool + " of one operand" : tool)
      .path;
}

}  // namespace

config::Config with_names_of_options(const config::Config& read) {
  config::Config config;
  for (config::Entry entry : read.entries()) {
    const config::Known* const known =
        entry.key.find('.') == std::string::npos ? config::known_option(entry.key) : nullptr;
    if (known && known->key != entry.key) {
      if (read.find(known->key) || config.find(known->key))
        throw Error(entry.origin, 0, entry.key + " and " + std::string(known->key) + " are one setting: give it once");
      entry.key = known->key;
    }
    config.set(std::move(entry));
  }
  return config;
}

config::Config configuration(const cli::Args& args, const std::string& stored) {
  config::Config config = !stored.empty() ? config::Config::read(stored)
                          : args.operands().empty()
                              ? config::Config()
                              : with_names_of_options(config::Config::read(configuration_file(args)));
  if (!stored.empty()) config.mark_stored();
  // In the order typed: if two names set one key, the last one wins, as for one option typed twice.
  for (const auto& [option, value] : args.typed()) {
    if (const config::Known* const known = config::known_option(option)) {
      args.mark_asked(option);
      config.set(std::string(known->key), value.empty() ? "true" : value, "--" + option);
    }
    for (const Flag& flag : kFlags) {
      if (option != flag.name) continue;
      args.mark_asked(option);
      for (const Flag& other : kFlags) {
        const config::Entry* const earlier = config.find(other.key);
        if (flag.key == std::string_view(other.key) && other.name != option && earlier &&
            earlier->origin == std::string("--") + other.name)
          throw UsageError(earlier->origin + " and --" + option + " are one setting, --" + flag.option + ": give one");
      }
      config.set(flag.key, flag.value, "--" + option);
    }
  }
  for (const std::string& setting : args.all("set")) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) throw UsageError("--set: '" + setting + "' is not KEY=VALUE");
    const std::string key = setting.substr(0, equals), value = setting.substr(equals + 1);
    if (const std::string what = config::unread(key); !what.empty()) throw UsageError("--set: " + what);
    if (value.empty())
      throw UsageError("--set: " + key + " is empty: is the variable set? (" + key + "=null unsets it)");
    config.set(key, value, "--set");
  }
  if (!stored.empty() && (args.has("deepspeed_config") || args.has("method")))
    throw UsageError("--resume takes the run's own configuration: leave out --deepspeed_config and --method");
  add_method(config);
  // A stored configuration has what was taken from a file.
  if (stored.empty()) {
    if (const config::Entry* const file = config.find("zero.deepspeed_config")) {
      const config::Entry said = *file;
      add_deepspeed(config, said.value);
      config.set({said.key, "", said.value, config::Kind::null});  // the settings from it replace it
    }
  }
  config.add_defaults();
  config.check();
  claim_outputs(args, config);
  // zs needs none, and a configuration is written to many places.
  for (const config::Entry& entry : std::vector(config.entries())) {
    const bool by_value = holds_secret(entry.value);
    if (by_value && config::known(entry.key))
      throw Error(entry.origin, 0, entry.key + " holds what looks like a password or a token: leave it out");
    if (by_value || names_secret(entry.key))
      config.set({entry.key, std::string(kWithheld), entry.origin, entry.kind, entry.from});
  }
  return config;
}

cli::Option local_rank_option() {
  const Accepted& row =
      *std::ranges::find(kAccepted, "local_rank", [](const Accepted& one) { return std::string_view(one.name); });
  return {.name = row.name,
          .value = row.value,
          .help = std::string("accepted and not used: ") + row.why,
          .group = "Running"};
}

cli::Option set_option() {
  return {.name = "set",
          .value = "KEY=VALUE",
          .help = "set any key of the configuration: training.seed=7",
          .many = true,
          .group = "Configuration"};
}

cli::Command train_command() {
  std::vector<cli::Option> options = config_options();
  options.push_back(set_option());
  cli::Rows running(options, "Running");
  running("resume", "RUN", "continue a run from its newest checkpoint, at any stage and rank count");
  running("take_over", "", "resume a run locked by another host that cannot be checked from here");
  running("timeout", "SECONDS", "how long a collective waits for a rank before the run stops", "50");
  running("calibrate", "",
          "measure the matrix products of this training on this GPU, keep the fastest kernels, and stop");
  for (const Accepted& option : kAccepted)
    running(option.name, option.value, std::string("accepted and not used: ") + option.why);
  running("print_deepspeed_config", "", "print the configuration that gives DeepSpeed the same training, and stop");
  running("print_model_config", "", "print the model's config.json in the form of Hugging Face's class, and stop");
  running("results", "FILE",
          "add loss, time, memory and throughput to a JSON file, by method; results of other methods stay");
  running("print_plan", "", "print the plan of a step and stop");
  running("cost", "", "with --print_plan: predict time, memory and bytes of the step, from --plan_profile");
  running("eval_only", "",
          "evaluate the model or the checkpoint on the held-out data, print the result and stop: no step, no run");
  running("verbose_logging", "", "log every step");
  running("debug_log", "", "log every step, and the state digest after each");
  running("save_initial", "DIR", "write the initial weights to DIR/pytorch_model.bin");
  running("dump_batches", "FILE",
          "write the tokens or pixels of every micro-batch, and its targets (-100 is padding), to an HDF5 file");
  for (cli::Option& option : options) option.writes = is_written(option.name);
  return {"zs-train",
          "Train a model under a ZeRO stage, on any number of ranks",
          "[CONFIG.yaml]",
          options,
          {{1, "the training has diverged: its loss, gradient or parameters are not finite"},
           {75, "stopped by a signal, with everything saved: continue with --resume"}},
          {"zs-train --model_name tiny --max_steps 5",
           "mpirun --oversubscribe -n 2 zs-train --model_name tiny --max_steps 5 --zero_stage 3",
           "zs-train config.yaml --max_steps 3 --learning_rate 0.003"}};
}

}  // namespace zs::experiment
