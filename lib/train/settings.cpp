// SPDX-License-Identifier: Apache-2.0
#include "train/settings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "data/corpus.hpp"
#include "data/images.hpp"
#include "device/memory.hpp"
#include "device/tensor.hpp"
#include "image/listing.hpp"
#include "plan/pass.hpp"
#include "plan/profile.hpp"
#include "token/tokenize.hpp"
#include "token/tokenizer.hpp"

namespace zs::train {
namespace {

/// What passes may fill with gathered parameters: --memory_budget, else half of this machine's memory over its ranks
/// (of a GPU's: place_on()).
std::int64_t gathered_elements(const config::Config& config, int ranks) {
  const std::int64_t bytes =
      config.has("zero.memory_budget") ? config.integer("zero.memory_budget") : host_memory() / 2 / ranks;
  return bytes / static_cast<std::int64_t>(sizeof(float));
}

/// Bytes that a rank may fill where nothing is asked for: what else lies there needs some.
double usual_memory(std::int64_t all) { return 0.9 * static_cast<double>(all); }

/// The passes and when they run: the usual ones with --deepcompile alone.
plan::Schedule passes(const config::Config& config, bool deepcompile) {
  const std::vector<std::string> named = config.list("zero.passes");
  if (named.empty()) return deepcompile ? plan::from_the_start(plan::usual_passes()) : plan::Schedule{};
  try {
    return plan::schedule_from(named);
  } catch (const Error& error) {
    throw Error(config.find("zero.passes")->origin + ": zero.passes: " + error.what());
  }
}

/// Whether a pass moves something out of device memory.
bool offloads(const plan::Schedule& passes) {
  return std::any_of(passes.begin(), passes.end(), [](const plan::Scheduled& entry) {
    return std::any_of(entry.passes.begin(), entry.passes.end(),
                       [](const std::string& name) { return name.starts_with("offload_"); });
  });
}

const char *const kBatch = "training.batch_size", *const kSteps = "training.gradient_accumulation_steps",
                  *const kMost = "training.max_gpu_batch_size", *const kWhole = "training.train_batch_size";

/// A step's batch over all ranks, train_batch_size, is batch_size x accumulation steps x ranks: what is not set of the
/// first two follows, as DeepSpeed has it.
void divide_batch(const config::Config& config, Settings& s, int ranks) {
  if (config.has(kMost)) {
    throw Error(config.find(kWhole)->origin + ": " + kWhole + " says how a batch is divided, and so does " + kMost +
                " (" + config.find(kMost)->origin + "): leave one out, or set it to null");
  }
  const bool batch = config.find(kBatch)->origin != "default", steps = config.has(kSteps);
  const std::int64_t whole = config.integer(kWhole);
  const auto share = [&](std::int64_t parts) { return whole % parts == 0 ? whole / parts : 0; };
  if (!batch) s.batch_size = share(std::int64_t{s.micro_steps} * ranks);
  if (batch && !steps) s.micro_steps = static_cast<int>(std::min<std::int64_t>(share(s.batch_size * ranks), 1 << 30));
  if (s.batch_size < 1 || s.micro_steps < 1 || s.batch_size * s.micro_steps * ranks != whole) {
    const auto part = [](bool set, std::int64_t value) { return set ? to_text(value) : "?"; };
    throw Error(config.find(kWhole)->origin + ": " + kWhole + " is " + to_text(whole) +
                ", and batch_size x gradient_accumulation_steps x ranks is " + part(batch, s.batch_size) + " x " +
                part(steps, s.micro_steps) + " x " + std::to_string(ranks) + ": no whole numbers make them equal");
  }
}

/// A rank's batch in accumulation steps: so many as are asked for, or as max_gpu_batch_size takes.
void split_batch(const config::Config& config, Settings& s, int ranks) {
  if (config.has(kSteps)) s.micro_steps = static_cast<int>(config.integer(kSteps));
  if (config.has(kWhole)) return divide_batch(config, s, ranks);
  if (!config.has(kMost)) return;
  if (config.has(kSteps)) {
    throw Error(config.find(kSteps)->origin + ": " + kSteps + " says how a batch is split, and so does " + kMost +
                " (" + config.find(kMost)->origin + "): leave one out, or set it to null");
  }
  const std::int64_t most = config.integer(kMost);
  if (s.batch_size <= most) return;
  if (s.batch_size % most != 0) {
    throw Error(config.find(kMost)->origin + ": " + kMost + " must divide batch_size, " + std::to_string(s.batch_size));
  }
  s.micro_steps = static_cast<int>(s.batch_size / most);
  s.batch_size = most;
}

/// How long to train: by steps, by epochs, or by both, whichever comes first.
void limit_steps(const config::Config& config, Settings& s) {
  constexpr std::int64_t kUsualSteps = 100;
  const bool steps = config.has("training.max_steps"), epochs = config.has("training.num_epochs");
  if (steps) s.max_steps = config.integer("training.max_steps");
  if (epochs) s.num_epochs = config.integer("training.num_epochs");
  if (steps && s.max_steps == 0 && !epochs) s.num_epochs = 1;
  if (steps || epochs) return;
  s.max_steps = kUsualSteps;
  s.notes.push_back("max_steps is " + to_text(kUsualSteps) + ": neither max_steps nor num_epochs is set");
}

/// The path of the tokenizer: the one asked for, else that of the model's folder, if it has one; "" for bytes.
std::string tokenizer_of(const config::Config& config) {
  const std::string asked = config.text("model.tokenizer"), folder = config.text("model.name");
  if (!asked.empty()) return asked == "bytes" ? "" : asked;
  return token::holds_tokenizer(folder) ? folder : "";
}

/// A value of the configuration where it is set: these keys have no default, lest runs of before look different.
void take(const config::Config& config, const char* key, double& to) {
  if (config.has(key)) to = config.real(key);
}
template <typename Integer>
void take(const config::Config& config, const char* key, Integer& to) {
  if (config.has(key)) to = static_cast<Integer>(config.integer(key));
}

Schedule schedule(const config::Config& config) {
  Schedule s{.name = config.text("training.scheduler"),
             .learning_rate = config.real("training.learning_rate"),
             .warmup = config.integer("training.lr_warmup_steps")};
  take(config, "training.total_num_steps", s.total);
  s.log_warmup = config.text("training.warmup_type") == "log";
  take(config, "training.warmup_min_lr", s.min_lr);
  take(config, "training.warmup_min_ratio", s.warmup_min_ratio);
  take(config, "training.cos_min_ratio", s.cos_min_ratio);
  return s;
}

/// "none", "cpu" or "nvme".
zero::Place place(const config::Config& config, const char* key) {
  const std::string name = config.text(key);
  return name == "none" ? zero::Place::device : name == "cpu" ? zero::Place::host : zero::Place::disk;
}

/// What is offloaded, where the stage divides it and it can be.
zero::Offload offload(const config::Config& config, const Settings& s) {
  const char *const kState = "zero.offload_device", *const kShards = "zero.offload_param";
  const std::string folder = config.text("zero.nvme_path");
  const zero::Offload offload{place(config, kState), place(config, kShards), folder,
                              folder.empty() ? zero::Place::host : zero::Place::disk};
  const auto refuse = [&](const char* key, const std::string& why) {
    throw Error(config.find(key)->origin + ": " + key + " is " + config.text(key) + ", and " + why);
  };
  const bool state = offload.optimizer != zero::Place::device, shards = offload.parameters != zero::Place::device;
  if (state && s.stage == 0) refuse(kState, "stage 0 keeps all on the device: use --zero_stage 1, 2 or 3");
  if (shards && s.stage != 3)
    refuse(kShards, "stage " + std::to_string(s.stage) + " has no shards: use --zero_stage 3");
  if ((state || shards) && s.engine.use_torch_adam) {
    refuse(state ? kState : kShards,
           "LibTorch's own AdamW keeps its state where it is: leave out use_torch_adam, zs's AdamW is as exact");
  }
  if (offloads(s.passes) && s.engine.use_torch_adam) {
    throw Error(config.find("zero.passes")->origin +
                ": zero.passes move state out of device memory, and LibTorch's own AdamW keeps it where it is: leave "
                "out use_torch_adam, zs's AdamW is as exact");
  }
  for (const char* const key : {kState, kShards}) {
    if (config.text(key) == "nvme" && offload.nvme_path.empty())
      refuse(key, "there is no folder for it: set --nvme_path DIR, on a disk of this node");
  }
  return offload;
}

/// What of ZeRO++ is asked for, where the stage has it.
zero::ZeroPlusPlus zeropp(const config::Config& config, const Settings& s, int ranks) {
  const char *const kSecondary = "zero.hpz_partition_size", *const kWeights = "zero.quantized_weights",
                    *const kGradients = "zero.quantized_gradients", *const kEvery = "zero.self_test_every";
  const auto asked = [&](const char* key) { return config.has(key) && config.boolean(key); };
  zero::ZeroPlusPlus its{0, asked(kWeights), asked(kGradients)};
  if (config.has(kSecondary) && config.integer(kSecondary) > 1)
    its.secondary = static_cast<int>(config.integer(kSecondary));
  take(config, kEvery, its.self_test_every);
  const auto refuse = [&](const char* key, const std::string& why) {
    throw Error(config.find(key)->origin + ": " + key + " is " + config.text(key) + ", and " + why);
  };
  const char* const first = its.secondary > 0         ? kSecondary
                            : its.quantized_weights   ? kWeights
                            : its.quantized_gradients ? kGradients
                                                      : nullptr;
  if (first && s.stage != 3) refuse(first, "it is a part of stage 3: use --zero_stage 3");
  if (its.secondary > 0 && ranks % its.secondary != 0)
    refuse(kSecondary, "does not divide the " + std::to_string(ranks) + " ranks: set it to the ranks of a node");
  if (its.self_test_every > 0 && !its.quantized_weights && !its.quantized_gradients)
    refuse(kEvery, "nothing travels as integers: leave it out, or set --zero_quantized_weights");
  return its;
}

zero::LossScaling loss_scaling(const config::Config& config, bool autocast) {
  zero::LossScaling rules = autocast ? zero::grad_scaler() : zero::LossScaling();
  take(config, "training.loss_scale", rules.fixed);
  take(config, "training.initial_scale_power", rules.initial_power);
  take(config, "training.loss_scale_window", rules.window);
  take(config, "training.hysteresis", rules.hysteresis);
  if (config.has("training.consecutive_hysteresis"))
    rules.consecutive = config.boolean("training.consecutive_hysteresis");
  take(config, "training.min_loss_scale", rules.minimum);
  return rules;
}

/// The number of a configuration's key, or 0 where it is not set.
std::int64_t number(const config::Config& config, const char* key) { return config.has(key) ? config.integer(key) : 0; }

/// The classes of the data set are the labels of a model that has none of its own.
void choose_labels(Settings& s) {
  if (s.dataset == data::kGenerated) return;
  s.model.labels = image::classes_of(data::find(s.dataset));
  if (s.model.num_labels == 0 && !std::filesystem::is_directory(s.model.name))
    s.model.num_labels = static_cast<std::int64_t>(s.model.labels.size());
}

/// The vocabulary of a known name is that of the tokenizer that was asked for.
void choose_vocabulary(const config::Config& config, Settings& s) {
  s.model.vocab_size = number(config, "model.vocab_size");
  if (s.model.vocab_size > 0 || s.tokenizer.empty() || std::filesystem::is_directory(s.model.name)) return;
  s.model.vocab_size = token::open_tokenizer(s.tokenizer)->size();
  s.notes.push_back("vocab_size is " + to_text(s.model.vocab_size) +
                    ": it is not set, and the tokenizer has so many ids");
}

/// The model, with what it decides itself where nothing is asked for.
void choose_model(const config::Config& config, Settings& s) {
  s.model.name = config.text("model.name");
  s.model.num_layers = config.integer("model.num_layers");
  s.model.dropout = config.real("model.dropout");
  s.model.fused = config.boolean("zero.compile");
  s.model.init_mean = config.real("initialization.init_mean");
  s.model.init_std = config.real("initialization.init_std");
  s.model.init_gaussian = config.text("initialization.init_type") == "gaussian";
  s.begins_anew = config.find("initialization.init_type")->origin != "default";
  s.model.seq_length = number(config, "model.context_length");
  s.model.image_size = number(config, "model.image_size");
  s.model.num_labels = number(config, "model.num_labels");
  const bool images = model::takes_images(s.model.name);
  s.tokenizer = images ? "" : tokenizer_of(config);
  if (config.has("data.dataset_path")) {
    s.dataset = config.text("data.dataset_path");
  } else {
    s.dataset = images ? data::kGenerated : data::kDefaultDataset;
    if (images) s.notes.push_back("the images are generated, of patterns with noise: no data set is named");
  }
  if (images)
    choose_labels(s);
  else
    choose_vocabulary(config, s);
  for (const char* const key : {"data.packing", "data.text_key"}) {
    if (config.has(key) && images)
      throw Error(config.find(key)->origin + ": " + key + " is of text, and the model " + s.model.name +
                  " takes images: leave it out");
  }
  if (config.has("data.text_key")) s.text_key = config.text("data.text_key");
  if (config.has("data.packing") && config.text("data.packing") == "none") s.packing = data::Packing::none;
  const model::Model model = model::make(s.model);
  if (s.model.seq_length == model.seq_length) return;
  s.model.seq_length = model.seq_length;
  if (images) return;
  s.notes.push_back("seq_length is " + to_text(model.seq_length) + ": it is not set, and " + model.name + " has " +
                    to_text(model.positions) + " positions");
}

/// Three numbers of a list, for red, green and blue; of one number three.
std::array<double, 3> of_channels(const config::Config& config, const std::string& key) {
  const std::vector<std::string> given = config.list(key);
  std::array<double, 3> all{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::optional<double> value =
        given.size() == 1 || given.size() == 3 ? parse_real(given[i % given.size()]) : std::nullopt;
    if (!value || !std::isfinite(*value) || (key == "data.image_std" && !(*value > 0)))
      throw Error(config.find(key)->origin + ": " + key + " is " + config.find(key)->value +
                  ", expected one number or three, for red, green and blue");
    all[i] = *value;
  }
  return all;
}

/// How images become samples: as asked for, else as the folder of the model says that it was trained.
void choose_transform(config::Config config, Settings& s) {
  const std::string path = s.model.name + "/preprocessor_config.json";
  if (std::filesystem::exists(path)) {
    const auto file = model::Configuration::read(path).values();
    for (const char* const name : {"image_mean", "image_std"}) {
      const std::string key = std::string("data.") + name;
      if (config.find(key)->origin == "default" && file.contains(name)) config.set(key, file[name].dump(), path);
    }
  }
  s.transform.augmentation = config.boolean("data.use_augmentation");
  s.transform.mean = of_channels(config, "data.image_mean");
  s.transform.std = of_channels(config, "data.image_std");
  s.skip_bad_images = config.boolean("data.skip_bad_images");
}

constexpr std::array kDtypes = {std::pair{at::kFloat, "float32"}, std::pair{at::kBFloat16, "bfloat16"},
                                std::pair{at::kHalf, "float16"}};

/// REQUIRES: the configuration's choices.
at::ScalarType dtype_named(std::string name) {
  if (name.starts_with("torch.")) name.erase(0, 6);
  return std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& row) { return row.second == name; })->first;
}

/// The type of autocast, float32 where it is off.
at::ScalarType autocast(const config::Config& config, const Settings& s) {
  const std::string name = config.has("training.autocast") ? config.text("training.autocast") : "none";
  if (name == "none") return at::kFloat;
  const std::string origin = config.find("training.autocast")->origin;
  if (s.engine.dtype != at::kFloat)
    throw Error(origin + ": autocast computes from float32 parameters, and dtype is " + dtype_name(s.engine.dtype) +
                ": leave one of them out");
  if (s.model.fused) throw Error(origin + ": autocast is of LibTorch's own kernels: leave out --compile");
  return dtype_named(name);
}

/// What is asked for, else what the environment says, which is the same for trainings with zs_probe.py.
void choose_probe(const config::Config& config, Settings& s) {
  const auto chosen = [&](const char* key, const char* variable) {
    const std::string asked = config.has(key) ? config.text(key) : "";
    const char* const common = std::getenv(variable);
    return asked.empty() && common ? std::string(common) : asked;
  };
  s.probe = chosen("tracking.probe", "ZS_PROBE");
  if (s.probe == "off") s.probe.clear();
  s.probe_values = chosen("tracking.probe_values", "ZS_PROBE_VALUES");
  const std::string every = chosen("tracking.probe_every", "ZS_PROBE_EVERY");
  const auto number = every.empty() ? std::optional<std::int64_t>(1) : parse_int(every);
  if (!number || *number < 1) throw Error("ZS_PROBE_EVERY: '" + every + "' is not a whole number of at least 1");
  s.probe_every = *number;
  std::istringstream steps(s.probe_values == "all" ? "" : s.probe_values);
  for (std::string step; std::getline(steps, step, ',');) {
    if (const auto value = parse_int(step); !value || *value < 1)
      throw Error("tracking.probe_values: '" + step + "' is neither a step nor all");
  }
}

}  // namespace

std::string dtype_name(at::ScalarType dtype) {
  return std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& row) { return row.first == dtype; })->second;
}

std::string autocast_name(const Settings& settings) {
  return settings.engine.autocast == at::kFloat ? "none" : dtype_name(settings.engine.autocast);
}

std::string matrix_format(const Settings& settings) {
  if (settings.engine.autocast != at::kFloat) return dtype_name(settings.engine.autocast);
  return settings.tf32 && settings.engine.dtype == at::kFloat ? "tf32" : dtype_name(settings.engine.dtype);
}

Settings settings(const config::Config& config, int ranks) {
  Settings s;
  choose_model(config, s);

  s.backend = config.text("zero.backend");
  s.method = config.text("zero.method");
  s.stage = static_cast<int>(config.integer("zero.stage"));
  if (s.backend == "fsdp") s.stage = 3;
  if (s.backend == "singlegpu") s.backend = "single";
  if (s.backend == "ddp" || s.backend == "single") s.stage = 0;
  if (s.backend == "single" && ranks > 1)
    throw Error("backend single is for one rank, not " + std::to_string(ranks) + ": use ddp");
  if (s.method == "single_gpu_offload" && ranks > 1)
    throw Error("the method single_gpu_offload is for one rank, not " + std::to_string(ranks) +
                ": use --offload_device");
  s.activation_checkpointing = config.boolean("zero.activation_checkpointing");
  s.deepcompile = config.boolean("zero.deepcompile");
  s.passes = passes(config, s.deepcompile);
  s.gathered_elements = gathered_elements(config, ranks);
  s.memory = config.has("zero.memory_budget") ? static_cast<double>(config.integer("zero.memory_budget"))
                                              : usual_memory(host_memory() / ranks);
  if (config.has("zero.plan_profile"))
    s.plan_profile = std::make_shared<plan::Profile>(plan::read_profile(config.text("zero.plan_profile")));

  s.engine.adamw = {config.real("training.beta1"), config.real("training.beta2"), config.real("training.epsilon"),
                    config.real("training.weight_decay")};
  s.engine.adamw.correct_bias = config.boolean("training.correct_bias");
  s.engine.use_torch_adam = config.boolean("training.use_torch_adam");
  if (s.engine.use_torch_adam && !s.engine.adamw.correct_bias) {
    throw Error("training.correct_bias: torch::optim::AdamW always corrects the bias: leave out --use_torch_adam");
  }
  s.engine.offload = offload(config, s);
  s.engine.zeropp = zeropp(config, s, ranks);
  s.engine.decay_all = config.text("training.decay") == "all";
  s.engine.exact = config.text("zero.reduction") == "exact";
  s.engine.dtype = dtype_named(config.text("training.dtype"));
  s.engine.autocast = autocast(config, s);
  s.engine.loss_scaling = loss_scaling(config, s.engine.autocast != at::kFloat);
  s.engine.max_grad_norm = config.real("training.max_grad_norm");
  s.tf32 = config.boolean("training.tf32");
  s.calibrated = config.text("training.products") == "calibrated";
  s.deterministic = config.boolean("training.deterministic");
  s.engine.seed = static_cast<std::uint64_t>(config.integer("training.seed"));

  s.held_out = {config.real("data.validation_fraction"), config.real("data.test_fraction")};
  choose_transform(config, s);
  s.num_workers = config.has("data.num_workers") ? static_cast<int>(config.integer("data.num_workers"))
                                                 : std::max(1, token::processors() / ranks);
  s.dataset_percentage = config.real("data.dataset_percentage");
  s.dataset_size = config.has("data.dataset_size") ? config.integer("data.dataset_size") : 0;

  s.batch_size = config.integer("training.batch_size");
  split_batch(config, s, ranks);
  s.eval_batch_size =
      config.has("training.eval_batch_size") ? config.integer("training.eval_batch_size") : s.batch_size;
  limit_steps(config, s);
  s.schedule = schedule(config);
  s.eval = config.boolean("training.eval");
  if (config.has("training.dump_logits")) s.dump_logits = config.text("training.dump_logits");
  s.eval_steps = config.integer("training.eval_steps");
  s.log_interval = config.integer("training.log_interval");
  s.timing_warmup = config.integer("training.timing_warmup");
  s.digest_every = config.integer("run.digest_every");
  if (config.has("run.checkpoint")) s.checkpoint = config.text("run.checkpoint");
  s.save_steps = config.integer("training.save_steps");
  s.save_final = config.boolean("training.save_final");
  if (config.has("training.save_pretrained")) s.save_pretrained = config.text("training.save_pretrained");
  s.keep_last = config.integer("training.keep_last");
  s.save_gradients = config.boolean("training.save_gradients");
  s.save_gradient_norms = config.boolean("training.save_gradient_norms");
  if (s.save_gradient_norms && !s.save_gradients)
    throw Error(config.find("training.save_gradient_norms")->origin +
                ": save_gradient_norms is of gradients that are saved: leave out save_gradients, which is false");
  if (const config::Entry* const asked = config.find("tracking.profile_steps"); asked && !asked->value.empty())
    s.profiled = profiled_steps(asked->value, asked->origin);
  s.profile = config.boolean("tracking.profile") || s.profiled.last > 0;
  if (s.profile && !has_profiler()) throw Error("--profile: Debian's LibTorch has no profiler; that of PyTorch has");
  s.profile_dir = config.text("tracking.profile_dir");
  choose_probe(config, s);
  s.output_dir = config.text("run.output_dir");
  s.run_name = config.text("run.name");
  return s;
}

void place_on(Settings& s, const config::Config& config, const device::Device& device) {
  s.model.device = device::torch_device(device).type();
  const bool gpu = device.kind != device::Device::Kind::cpu;
  if (gpu && s.model.fused && s.engine.dtype == at::kHalf)
    throw Error(config.find("zero.compile")->origin +
                ": zero.compile is true, dtype is float16, and fused kernels on a GPU compute in float32 or bfloat16: "
                "leave out --compile, or use --dtype bfloat16");
  if (!gpu || config.has("zero.memory_budget")) return;
  s.memory = usual_memory(device::capacity(device));
  s.gathered_elements = device::capacity(device) / 2 / static_cast<std::int64_t>(at::elementSize(s.engine.dtype));
}

}  // namespace zs::train
