// SPDX-License-Identifier: Apache-2.0
#include "setup/settings.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/host.hpp"
#include "config/reading.hpp"
#include "device/memory.hpp"
#include "device/tensor.hpp"
#include "optimizer/optimizer.hpp"
#include "plan/pass.hpp"
#include "plan/profile.hpp"
#include "setup/choices.hpp"
#include "setup/describe.hpp"
#include "setup/memory.hpp"

namespace zs::setup {

double usual_memory(std::int64_t capacity) { return 0.9 * static_cast<double>(capacity); }

namespace {

using config::setting;

/// The passes and when they run: the usual ones with --deepcompile alone.
plan::Schedule passes(const config::Reading& config, bool deepcompile) {
  const std::vector<std::string> named = config[setting<"zero.passes">];
  if (named.empty()) return deepcompile ? plan::from_the_start(plan::usual_passes()) : plan::Schedule{};
  try {
    return plan::schedule_from(named);
  } catch (const Error& error) {
    throw Error(config.entry(setting<"zero.passes">)->origin + ": zero.passes: " + error.what());
  }
}

/// Chooses the passes and the memory that they may fill with gathered parameters: --memory_budget, else half of this
/// machine's memory over its ranks (of a GPU's: place_on()).
void choose_passes(const config::Reading& config, Settings& s) {
  s.deepcompile = config[setting<"zero.deepcompile">];
  s.passes = passes(config, s.deepcompile);
  std::optional<std::int64_t> budget;
  if (!s.passes.empty()) {
    budget = config[setting<"zero.memory_budget">];
    if (const auto profile = config[setting<"zero.plan_profile">])
      s.plan_profile = std::make_shared<plan::Profile>(plan::read_profile(*profile));
  }
  s.has_budget = budget.has_value();
  s.gathered_elements = budget.value_or(host_memory() / 2 / s.ranks) / static_cast<std::int64_t>(sizeof(float));
  s.memory = budget ? static_cast<double>(*budget) : usual_memory(host_memory() / s.ranks);
}

/// Chooses what stays from forward to backward.
void choose_checkpointing(const config::Reading& config, Settings& s) {
  const std::string how = config[setting<"zero.activation_checkpointing">];
  s.activation_checkpointing = how != "false";
  s.keeps_attention = how == "selective";
  if (!s.keeps_attention) return;
  const config::Entry& entry = *config.entry(setting<"zero.activation_checkpointing">);
  if (!s.model.fused)
    refuse(entry, "only fused kernels keep what attention computed: use --compile, or leave selective out");
  for (const plan::Scheduled& passes : s.passes) {
    if (std::ranges::find(passes.passes, "offload_activation") != passes.passes.end())
      refuse(entry, "the pass offload_activation moves what checkpointing keeps away: leave out one of them");
  }
}

/// Whether a pass moves something out of device memory.
bool offloads(const plan::Schedule& passes) {
  return std::ranges::any_of(passes, [](const plan::Scheduled& entry) {
    return std::ranges::any_of(entry.passes, [](const std::string& name) { return name.starts_with("offload_"); });
  });
}

/// A value where one is set: these settings have no default, lest runs of before look different.
template <typename Number, typename Value>
void take(const std::optional<Value>& from, Number& to) {
  if (from) to = static_cast<Number>(*from);
}

Schedule schedule(const config::Reading& config) {
  Schedule s{.name = config[setting<"training.scheduler">],
             .learning_rate = config[setting<"training.learning_rate">],
             .warmup = config[setting<"training.lr_warmup_steps">]};
  const bool cosine = s.name == "WarmupCosineLR", deepspeed = s.name.starts_with("Warmup");
  if (s.name != "constant" && s.name != "WarmupLR") take(config[setting<"training.total_num_steps">], s.total);
  if (deepspeed) s.log_warmup = config[setting<"training.warmup_type">] == "log";
  if (deepspeed && !cosine) take(config[setting<"training.warmup_min_lr">], s.min_lr);
  if (cosine) {
    take(config[setting<"training.warmup_min_ratio">], s.warmup_min_ratio);
    take(config[setting<"training.cos_min_ratio">], s.cos_min_ratio);
  }
  return s;
}

/// The optimizer, with the settings that it reads (its row lists them).
optimizer::Settings optimizer_of(const config::Reading& config) {
  const optimizer::Description& description = *optimizer::named(config[setting<"training.optimizer">]);
  optimizer::Settings s{.kind = description.kind};
  const auto take = [&]<config::Key key>(config::Setting<key> which, auto&& to) {
    if (optimizer::reads(description, key.view().substr(key.view().find('.') + 1))) to(config[which]);
  };
  take(setting<"training.beta1">, [&](double value) { s.beta1 = value; });
  take(setting<"training.beta2">, [&](double value) { s.beta2 = value; });
  take(setting<"training.epsilon">, [&](double value) { s.epsilon = value; });
  take(setting<"training.weight_decay">, [&](double value) { s.weight_decay = value; });
  take(setting<"training.correct_bias">, [&](bool value) { s.correct_bias = value; });
  take(setting<"training.momentum">, [&](std::optional<double> value) { s.momentum = value.value_or(0); });
  take(setting<"training.nesterov">, [&](std::optional<bool> value) { s.nesterov = value.value_or(false); });
  take(setting<"training.ns_steps">,
       [&](std::optional<std::int64_t> value) { s.ns_steps = static_cast<int>(value.value_or(s.ns_steps)); });
  take(setting<"training.adjust_lr">,
       [&](const std::optional<std::string>& value) { s.match_rms = value == "match_rms_adamw"; });
  take(setting<"training.adamw_learning_rate">, [&](std::optional<double> value) {
    const double rate = config[setting<"training.learning_rate">];
    if (value && rate == 0 && *value > 0)
      throw Error(place_of(*config.entry(setting<"training.adamw_learning_rate">)) +
                  " goes up and down with learning_rate, and that is 0: set --learning_rate");
    if (value && rate > 0) s.adamw_rate_ratio = *value / rate;
  });
  if (s.kind == optimizer::Kind::sgd && s.nesterov && s.momentum == 0)
    throw Error(place_of(*config.entry(setting<"training.nesterov">)) + " is true, and momentum is 0: set --momentum");
  return s;
}

/// REQUIRES: "none", "cpu" or "nvme".
zero::Place place(const std::string& name) {
  return name == "none" ? zero::Place::device : name == "cpu" ? zero::Place::host : zero::Place::disk;
}

/// Offloads what the user asked for. Throws Error if the stage does not divide it, or it cannot be offloaded.
zero::Offload offload(const config::Reading& config, Settings& s) {
  constexpr auto kState = setting<"zero.offload_device">;
  constexpr auto kShards = setting<"zero.offload_param">;
  const std::string where = config[kState], where_shards = config[kShards];
  const bool state = where != "none", shards = where_shards != "none";
  const plan::Division divided = plan::divided_by(s.stage);
  if (state && !divided.optimizer_state)
    refuse(*config.entry(kState), "stage 0 keeps all on the device: use --zero_stage 1, 2 or 3");
  if (shards && !divided.parameters)
    refuse(*config.entry(kShards), "stage " + std::to_string(s.stage) + " has no shards: use --zero_stage 3");
  if ((state || shards) && s.engine.use_torch_adam) {
    const std::string why =
        "LibTorch's own AdamW keeps its state where it is: leave out use_torch_adam, zs's AdamW is as exact";
    state ? refuse(*config.entry(kState), why) : refuse(*config.entry(kShards), why);
  }
  if (offloads(s.passes) && s.engine.use_torch_adam) {
    throw Error(place_of(*config.entry(setting<"zero.passes">)) +
                " move state out of device memory, and LibTorch's own AdamW keeps it where it is: leave "
                "out use_torch_adam, zs's AdamW is as exact");
  }
  const bool disk = where == "nvme" || where_shards == "nvme";
  std::string folder;
  if (disk || offloads(s.passes)) folder = config[setting<"zero.nvme_path">].value_or("");
  if (disk && folder.empty()) {
    const std::string why = "there is no folder for it: set --nvme_path DIR, on a disk of this node";
    where == "nvme" ? refuse(*config.entry(kState), why) : refuse(*config.entry(kShards), why);
  }
  if (!folder.empty() && !is_there(folder)) {
    // A disk that is not mounted, or a slip of the pen: the system's own disk would take its place.
    const std::string parent = std::filesystem::absolute(folder + "/").parent_path().parent_path().string();
    if (!is_there(parent))
      throw Error(folder, 0,
                  "there is no folder " + parent + " for zero.nvme_path to be made in: mount the disk, or make it");
    s.notes.push_back("the folder " + folder + " of zero.nvme_path is made, and stays");
  }
  zero::Offload chosen{place(where), place(where_shards), folder,
                       folder.empty() ? zero::Place::host : zero::Place::disk};
  if (state) chosen.ratio = config[setting<"zero.offload_ratio">];
  return chosen;
}

/// The parts of ZeRO++ that the user asked for. Throws Error if the stage has no such part.
zero::ZeroPlusPlus zeropp(const config::Reading& config, const Settings& s) {
  constexpr auto kSecondary = setting<"zero.hpz_partition_size">;
  constexpr auto kWeights = setting<"zero.quantized_weights">;
  constexpr auto kGradients = setting<"zero.quantized_gradients">;
  const std::int64_t secondary = config[kSecondary].value_or(1);
  zero::ZeroPlusPlus parts{secondary > 1 ? static_cast<int>(secondary) : 0, config[kWeights].value_or(false),
                           config[kGradients].value_or(false)};
  if (!plan::divided_by(s.stage).parameters) {
    const std::string why = "it is a part of stage 3: use --zero_stage 3";
    if (parts.secondary > 0) refuse(*config.entry(kSecondary), why);
    if (parts.quantized_weights) refuse(*config.entry(kWeights), why);
    if (parts.quantized_gradients) refuse(*config.entry(kGradients), why);
  }
  const model::Adaptation& adaptation = s.model.adaptation;
  if (adaptation.adapts() || !adaptation.frozen.empty()) {
    const std::string why = "some parameters are frozen (--lora_rank, --freeze): zs rounds whole units to integers";
    if (parts.quantized_weights) refuse(*config.entry(kWeights), why);
    if (parts.quantized_gradients) refuse(*config.entry(kGradients), why);
  }
  if (parts.secondary > 0 && s.ranks % parts.secondary != 0)
    refuse(*config.entry(kSecondary),
           "does not divide the " + std::to_string(s.ranks) + " ranks: set it to the ranks of a node");
  if (parts.quantized_weights || parts.quantized_gradients)
    take(config[setting<"zero.self_test_every">], parts.self_test_every);
  return parts;
}

/// The rules of loss scaling, which float16 alone needs.
zero::LossScaling loss_scaling(const config::Reading& config, const zero::Settings& engine) {
  zero::LossScaling rules = engine.autocast != at::kFloat ? zero::grad_scaler() : zero::LossScaling();
  if (!engine.scales()) return rules;
  take(config[setting<"training.loss_scale">], rules.fixed);
  if (rules.fixed > 0) return rules;
  take(config[setting<"training.initial_scale_power">], rules.initial_power);
  take(config[setting<"training.loss_scale_window">], rules.window);
  take(config[setting<"training.hysteresis">], rules.hysteresis);
  take(config[setting<"training.consecutive_hysteresis">], rules.consecutive);
  take(config[setting<"training.min_loss_scale">], rules.minimum);
  return rules;
}

constexpr std::array kDtypes = {std::pair{at::kFloat, "float32"}, std::pair{at::kBFloat16, "bfloat16"},
                                std::pair{at::kHalf, "float16"}};

/// REQUIRES: the configuration's choices.
at::ScalarType dtype_named(std::string name) {
  if (name.starts_with("torch.")) name.erase(0, 6);
  return std::ranges::find_if(kDtypes, [&](const auto& row) { return row.second == name; })->first;
}

/// The type of autocast, float32 where it is off.
at::ScalarType autocast(const config::Reading& config, const Settings& s) {
  const std::string name = config[setting<"training.autocast">].value_or("none");
  if (name == "none") return at::kFloat;
  const std::string origin = config.entry(setting<"training.autocast">)->origin;
  if (s.engine.dtype != at::kFloat)
    throw Error(origin + ": autocast computes from float32 parameters, and dtype is " + dtype_name(s.engine.dtype) +
                ": leave one of them out");
  if (s.model.fused) throw Error(origin + ": autocast is of LibTorch's own kernels: leave out --compile");
  return dtype_named(name);
}

/// The backend, the method, and the stage that follows from them.
void choose_backend(const config::Reading& config, Settings& s) {
  s.backend = config[setting<"zero.backend">];
  s.method = config[setting<"zero.method">].value_or("");
  s.stage = static_cast<int>(config[setting<"zero.stage">]);
  if (s.backend == "fsdp") s.stage = 3;
  if (s.backend == "singlegpu") s.backend = "single";
  if (s.backend == "ddp" || s.backend == "single") s.stage = 0;
  if (s.backend == "single" && s.ranks > 1)
    throw Error("backend single is for one rank, not " + std::to_string(s.ranks) + ": use ddp");
  if (s.method == "single_gpu_offload" && s.ranks > 1)
    throw Error("the method single_gpu_offload is for one rank, not " + std::to_string(s.ranks) +
                ": use --offload_device");
}

}  // namespace

std::string dtype_name(at::ScalarType dtype) {
  return std::ranges::find_if(kDtypes, [&](const auto& row) { return row.first == dtype; })->second;
}

std::string autocast_name(const Settings& settings) {
  return settings.engine.autocast == at::kFloat ? "none" : dtype_name(settings.engine.autocast);
}

std::string matrix_format(const Settings& settings) {
  if (settings.engine.autocast != at::kFloat) return dtype_name(settings.engine.autocast);
  if (settings.float8 != kernel::Scales::none) return "float8";
  return settings.tf32 && settings.engine.dtype == at::kFloat ? "tf32" : dtype_name(settings.engine.dtype);
}

void choose_evaluation(const config::Reading& config, Settings& s) {
  s.eval_batch_size = config[setting<"training.eval_batch_size">].value_or(s.batch_size);
  s.dump_logits = config[setting<"training.dump_logits">].value_or("");
  if (s.chunks > 1 && !s.dump_logits.empty())
    throw Error(place_of(*config.entry(setting<"training.dump_logits">)) +
                " is of whole sequences, and they are computed in chunks: leave out --sequence_parallel and "
                "--sequence_chunks");
}

Settings settings(const config::Reading& config, int ranks, bool gpu) {
  Settings s;
  s.ranks = ranks;
  s.checkpoint = config[setting<"run.checkpoint">].value_or("");
  choose_inputs(config, s);

  choose_backend(config, s);
  choose_passes(config, s);
  choose_checkpointing(config, s);

  s.engine.optimizer = optimizer_of(config);
  if (s.engine.optimizer.kind == optimizer::Kind::adamw)
    s.engine.use_torch_adam = config[setting<"training.use_torch_adam">];
  if (s.engine.use_torch_adam && !s.engine.optimizer.correct_bias) {
    throw Error("training.correct_bias: torch::optim::AdamW always corrects the bias: leave out --use_torch_adam");
  }
  s.engine.offload = offload(config, s);
  s.engine.zeropp = zeropp(config, s);
  s.engine.decay_all = config[setting<"training.decay">] == "all";
  s.engine.dtype = dtype_named(config[setting<"training.dtype">]);
  s.engine.autocast = autocast(config, s);
  s.engine.loss_scaling = loss_scaling(config, s.engine);
  s.engine.max_grad_norm = config[setting<"training.max_grad_norm">];
  s.deterministic = config[setting<"training.deterministic">];
  s.engine.seed = static_cast<std::uint64_t>(config[setting<"training.seed">]);
  if (gpu && s.model.fused && s.engine.dtype == at::kHalf)
    throw Error(place_of(*config.entry(setting<"zero.compile">)) +
                " is true, dtype is float16, and fused kernels on a GPU compute in float32 or bfloat16: leave out "
                "--compile, or use --dtype bfloat16");
  if (gpu) {
    s.tf32 = config[setting<"training.tf32">];
    s.transport = config[setting<"run.comm">];
    if (s.model.fused) s.calibrated = config[setting<"training.products">] == "calibrated";
    choose_float8(config, s);
    // Passes that hide communication and cost only the memory of a unit are on by default; --passes none leaves them
    // out.
    if (ranks > 1 && s.passes.empty()) s.passes = plan::from_the_start(plan::free_passes());
  }

  choose_nf4(config, s);
  choose_sequences(config, s);
  choose_experts(config, s);
  choose_steps(config, s);
  s.schedule = schedule(config);
  s.eval = config[setting<"training.eval">];
  s.eval_steps = config[setting<"training.eval_steps">];
  s.eval_batch_size = s.batch_size;
  if (s.eval || s.eval_steps > 0) choose_evaluation(config, s);
  s.log_interval = config[setting<"training.log_interval">];
  s.timing_warmup = config[setting<"training.timing_warmup">];
  s.digest_every = config[setting<"run.digest_every">];
  choose_checkpoints(config, s);
  choose_observation(config, s);
  s.output_dir = config[setting<"run.output_dir">].value_or("");
  s.run_name = config[setting<"run.name">].value_or("");
  config.settle(setting<"run.device">);
  config.settle(setting<"sweep_name">);
  return s;
}

}  // namespace zs::setup
