// SPDX-License-Identifier: Apache-2.0
#include "train/deepspeed.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/number.hpp"
#include "setup/describe.hpp"

namespace zs::train {
namespace {

using Json = nlohmann::ordered_json;

Json scheduler(const setup::Schedule& s, std::vector<std::string>& remaining) {
  if (!s.name.starts_with("Warmup")) {
    const bool constant = s.name == "constant" && s.warmup == 0;
    if (!constant) {
      remaining.push_back("the schedule: give deepspeed.initialize the lr_scheduler of transformers' get_scheduler(\"" +
                          (s.name == "constant" ? "constant_with_warmup" : s.name) +
                          "\", num_warmup_steps=" + to_text(s.warmup) + "); DeepSpeed's own have other values");
    }
    return {};
  }
  Json params = {{"warmup_num_steps", s.warmup}, {"warmup_type", s.log_warmup ? "log" : "linear"}};
  if (s.name == "WarmupCosineLR") {
    params["warmup_min_ratio"] = s.warmup_min_ratio;
    params["cos_min_ratio"] = s.cos_min_ratio;
  } else {
    params["warmup_min_lr"] = s.min_lr;
    params["warmup_max_lr"] = s.learning_rate;
  }
  if (s.name != "WarmupLR") params["total_num_steps"] = s.total > 0 ? Json(s.total) : Json("auto");
  return {{"type", s.name}, {"params", params}};
}

/// In DeepSpeed's own words.
Json optimizer_of(const setup::Settings& s) {
  const optimizer::Settings& chosen = s.engine.optimizer;
  const optimizer::Description& row = optimizer::description(chosen.kind);
  Json params = {{"lr", s.schedule.learning_rate}};
  if (optimizer::reads(row, "beta1")) params["betas"] = {chosen.beta1, chosen.beta2};
  if (optimizer::reads(row, "epsilon")) params["eps"] = chosen.epsilon;
  params["weight_decay"] = chosen.weight_decay;
  if (optimizer::reads(row, "momentum")) params["momentum"] = chosen.momentum;
  if (chosen.kind == optimizer::Kind::adam) params["adam_w_mode"] = false;
  if (chosen.kind == optimizer::Kind::sgd) params["nesterov"] = chosen.nesterov;
  if (chosen.kind == optimizer::Kind::muon) {
    params["ns_method"] = "standard";
    params["adam_lr"] = s.schedule.learning_rate * chosen.adamw_rate_ratio;
  }
  if (s.engine.use_torch_adam) params["torch_adam"] = true;
  if (!chosen.correct_bias) params["bias_correction"] = false;
  return {{"type", row.deepspeed}, {"params", params}};
}

Json fp16(const zero::LossScaling& rules) {
  return {{"enabled", true},
          {"loss_scale", rules.fixed},
          {"initial_scale_power", rules.initial_power},
          {"loss_scale_window", rules.window},
          {"hysteresis", rules.hysteresis},
          {"consecutive_hysteresis", rules.consecutive},
          {"min_loss_scale", rules.minimum}};
}

Json zero_optimization(const Settings& s) {
  Json json = {{"stage", s.stage}};
  const auto offload = [&](const char* key, zero::Place place) {
    if (place == zero::Place::device) return;
    Json target = {{"device", place == zero::Place::host ? "cpu" : "nvme"}, {"pin_memory", true}};
    if (place == zero::Place::disk) target["nvme_path"] = s.engine.offload.nvme_path;
    json[key] = std::move(target);
  };
  offload("offload_optimizer", s.engine.offload.optimizer);
  if (s.engine.offload.ratio < 1) json["offload_optimizer"]["ratio"] = s.engine.offload.ratio;
  offload("offload_param", s.engine.offload.parameters);
  const zero::ZeroPlusPlus& zeropp = s.engine.zeropp;
  if (zeropp.secondary > 0) json["zero_hpz_partition_size"] = zeropp.secondary;
  if (zeropp.quantized_weights) json["zero_quantized_weights"] = true;
  if (zeropp.quantized_gradients) json["zero_quantized_gradients"] = true;
  return json;
}

/// The passes that DeepCompile has too.
Json compile(const Settings& s) {
  Json json = {{"deepcompile", true}};
  for (const auto& [key, pass] :
       {std::pair{"offload_parameters", "offload_parameters"}, std::pair{"offload_opt_states", "offload_adam_states"},
        std::pair{"offload_activation", "offload_activation"}}) {
    for (const plan::Scheduled& entry : s.passes) {
      if (std::ranges::any_of(entry.passes, [&](const std::string& name) { return name.starts_with(pass); }))
        json[key] = true;
    }
  }
  return json;
}

}  // namespace

DeepSpeedConfig deepspeed_config(const Settings& s) {
  if (s.chunks > 1)
    throw Error(
        "DeepSpeed's file does not say how sequences are divided: leave out --sequence_parallel and "
        "--sequence_chunks");
  if (s.experts > 1) throw Error("DeepSpeed's file does not say how experts are divided: leave out --expert_parallel");
  if (s.short_ranks > 0)
    throw Error("DeepSpeed takes the same number of micro-batches on every rank, and " + to_text(s.leaves()) +
                " do not divide among " + std::to_string(s.ranks) + " ranks");
  DeepSpeedConfig result;
  Json json = {{"train_batch_size", s.batch_size * s.leaves()},
               {"train_micro_batch_size_per_gpu", s.batch_size},
               {"gradient_accumulation_steps", s.micro_steps},
               {"gradient_clipping", s.engine.max_grad_norm},
               {"steps_per_print", s.log_interval}};
  json["optimizer"] = optimizer_of(s);
  if (s.engine.optimizer.kind == optimizer::Kind::adamw_8bit) {
    const std::string said = json["optimizer"]["params"].dump();
    json.erase("optimizer");
    json["zero_allow_untested_optimizer"] = true;
    result.remaining.push_back("the optimizer: give deepspeed.initialize() a bitsandbytes.optim.AdamW8bit with " +
                               said);
  }
  if (Json written = scheduler(s.schedule, result.remaining); !written.is_null()) json["scheduler"] = written;
  if (s.engine.dtype == at::kHalf) json["fp16"] = fp16(s.engine.loss_scaling);
  if (s.engine.dtype == at::kBFloat16) json["bf16"] = {{"enabled", true}};
  if (s.engine.autocast != at::kFloat)
    json["torch_autocast"] = {{"enabled", true}, {"dtype", setup::dtype_name(s.engine.autocast)}};
  if (s.engine.dtype != at::kFloat) json["data_types"] = {{"grad_accum_dtype", "fp32"}};
  json["zero_optimization"] = zero_optimization(s);
  if (s.deepcompile) json["compile"] = compile(s);
  if (!s.engine.decay_all)
    result.remaining.emplace_back("weight decay of matrices only: give the optimizer two groups of parameters");
  if (s.activation_checkpointing)
    result.remaining.emplace_back(
        std::string("activation checkpointing: the model does it (gradient_checkpointing_enable)") +
        (s.keeps_attention ? ", and computes attention again" : ""));
  result.json = json.dump(2) + "\n";
  return result;
}

}  // namespace zs::train
