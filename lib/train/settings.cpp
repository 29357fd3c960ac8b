// SPDX-License-Identifier: Apache-2.0
#include "train/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "data/corpus.hpp"
#include "plan/pass.hpp"

namespace zs::train {
namespace {

void not_yet(const config::Config& config, const std::string& key, bool asked) {
  if (!asked) return;
  const config::Entry* const entry = config.find(key);
  throw Error((entry ? entry->origin + ": " : "") + key + " is not supported yet");
}

/// What passes may fill with gathered parameters: --memory_budget, else half of this machine's memory over its ranks.
std::int64_t gathered_elements(const config::Config& config, int ranks) {
  const std::int64_t bytes = config.has("zero.memory_budget")
                                 ? config.integer("zero.memory_budget")
                                 : ::sysconf(_SC_PHYS_PAGES) / 2 * ::sysconf(_SC_PAGESIZE) / ranks;
  return bytes / static_cast<std::int64_t>(sizeof(float));
}

/// max_gpu_batch_size: a rank's batch in as many accumulation steps as it takes.
void split_batch(const config::Config& config, Settings& s) {
  if (!config.has("training.max_gpu_batch_size")) return;
  const std::int64_t most = config.integer("training.max_gpu_batch_size");
  if (s.batch_size <= most) return;
  if (s.batch_size % most != 0) {
    throw Error(config.find("training.max_gpu_batch_size")->origin +
                ": training.max_gpu_batch_size must divide batch_size, " + std::to_string(s.batch_size));
  }
  s.micro_steps *= static_cast<int>(s.batch_size / most);
  s.batch_size = most;
}

constexpr std::array kDtypes = {std::pair{at::kFloat, "float32"}, std::pair{at::kBFloat16, "bfloat16"},
                                std::pair{at::kHalf, "float16"}};

/// REQUIRES: the configuration's choices.
at::ScalarType dtype_named(std::string name) {
  if (name.starts_with("torch.")) name.erase(0, 6);
  return std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& row) { return row.second == name; })->first;
}

}  // namespace

std::string dtype_name(at::ScalarType dtype) {
  return std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& row) { return row.first == dtype; })->second;
}

Settings settings(const config::Config& config, int ranks) {
  not_yet(config, "model.tokenizer", config.text("model.tokenizer") != "bytes");

  Settings s;
  s.model.name = config.text("model.name");
  s.model.num_layers = config.integer("model.num_layers");
  s.model.seq_length = config.integer("model.context_length");
  s.model.dropout = config.real("model.dropout");
  s.model.vocab_size = config.has("model.vocab_size") ? config.integer("model.vocab_size") : 0;
  s.model.fused = config.boolean("zero.compile");
  s.model.init_mean = config.real("initialization.init_mean");
  s.model.init_std = config.real("initialization.init_std");

  s.backend = config.text("zero.backend");
  s.stage = static_cast<int>(config.integer("zero.stage"));
  if (s.backend == "fsdp") s.stage = 3;
  if (s.backend == "ddp" || s.backend == "single") s.stage = 0;
  if (s.backend == "single" && ranks > 1)
    throw Error("backend single is for one rank, not " + std::to_string(ranks) + ": use ddp");
  s.activation_checkpointing = config.boolean("zero.activation_checkpointing");
  s.deepcompile = config.boolean("zero.deepcompile");
  s.passes = config.list("zero.passes");
  if (s.deepcompile && s.passes.empty()) s.passes = plan::pass_names();
  s.gathered_elements = gathered_elements(config, ranks);

  s.engine.adamw = {config.real("training.beta1"), config.real("training.beta2"), config.real("training.epsilon"),
                    config.real("training.weight_decay")};
  s.engine.adamw.correct_bias = config.boolean("training.correct_bias");
  s.engine.use_torch_adam = config.boolean("training.use_torch_adam");
  if (s.engine.use_torch_adam && !s.engine.adamw.correct_bias) {
    throw Error("training.correct_bias: torch::optim::AdamW always corrects the bias: leave out --use_torch_adam");
  }
  s.engine.decay_all = config.text("training.decay") == "all";
  s.engine.exact = config.text("zero.reduction") == "exact";
  s.engine.dtype = dtype_named(config.text("training.dtype"));
  s.engine.max_grad_norm = config.real("training.max_grad_norm");
  s.tf32 = config.boolean("training.tf32");
  s.deterministic = config.boolean("training.deterministic");
  s.engine.seed = static_cast<std::uint64_t>(config.integer("training.seed"));

  s.dataset = config.has("data.dataset_path") ? config.text("data.dataset_path") : data::kDefaultDataset;
  s.dataset_percentage = config.real("data.dataset_percentage");
  s.dataset_size = config.has("data.dataset_size") ? config.integer("data.dataset_size") : 0;

  s.batch_size = config.integer("training.batch_size");
  s.eval_batch_size =
      config.has("training.eval_batch_size") ? config.integer("training.eval_batch_size") : s.batch_size;
  s.micro_steps = static_cast<int>(config.integer("training.gradient_accumulation_steps"));
  split_batch(config, s);
  s.num_epochs = config.integer("training.num_epochs");
  s.max_steps = config.integer("training.max_steps");
  s.learning_rate = config.real("training.learning_rate");
  s.scheduler = config.text("training.scheduler");
  s.lr_warmup_steps = config.integer("training.warmup_steps");
  s.eval = config.boolean("training.eval");
  s.eval_steps = config.integer("training.eval_steps");
  s.log_interval = config.integer("training.log_interval");
  s.warmup_step = config.integer("training.warmup_step");
  s.digest_every = config.integer("run.digest_every");
  if (config.has("run.checkpoint")) s.checkpoint = config.text("run.checkpoint");
  s.save_steps = config.integer("training.save_steps");
  s.keep_last = config.integer("training.keep_last");
  s.save_gradients = config.boolean("training.save_gradients");
  s.output_dir = config.text("run.output_dir");
  s.run_name = config.text("run.name");
  return s;
}

}  // namespace zs::train
