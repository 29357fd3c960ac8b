// SPDX-License-Identifier: Apache-2.0
#include "config/deepspeed_keys.hpp"

#include <algorithm>
#include <array>

namespace zs::config {
namespace {

constexpr Fate sets = Fate::sets, read = Fate::read, idle = Fate::idle, refused = Fate::refused;

constexpr std::string_view kWhole = "zs reduces and gathers a unit at a time, without buckets",
                           kDivide = "sums are divided once, at the root of the tree",
                           kPasses = "which units stay gathered is a pass's affair: --deepcompile, --memory_budget",
                           kStaging = "zs sizes its staging buffers by the units",
                           kLog = "see --log_interval and zs-report",
                           kSection = "write {\"enabled\": false}, or leave it out", kOther = "zs has no equivalent",
                           kTrackers = "metrics go to the run's folder, and zs-report reads them",
                           kFloat = "sums, masters and moments are always float32",
                           kAio = "zs writes whole units, four requests at a time",
                           kCheckpoint = "a checkpoint of zs is read at any stage and number of ranks",
                           kCompiled = "see --deepcompile and --passes";

// clang-format off
constexpr auto kKeys = std::to_array<DeepSpeedKey>({
    {"train_batch_size", sets, "training.train_batch_size"},
    {"train_micro_batch_size_per_gpu", sets, "training.batch_size"},
    {"gradient_accumulation_steps", sets, "training.gradient_accumulation_steps"},
    {"managed_gradient_accumulation", refused, "a step of zs is a whole step, with all its micro-batches", "true"},
    {"gradient_clipping", sets, "training.max_grad_norm"},
    {"steps_per_print", sets, "training.log_interval"},

    {"optimizer.type", read},
    {"optimizer.params.lr", read},
    {"optimizer.params.betas", read},
    {"optimizer.params.eps", sets, "training.epsilon"},
    {"optimizer.params.weight_decay", sets, "training.weight_decay"},
    {"optimizer.params.bias_correction", sets, "training.correct_bias"},
    {"optimizer.params.torch_adam", sets, "training.use_torch_adam"},
    {"optimizer.params.adam_w_mode", read},
    {"optimizer.params.momentum", sets, "training.momentum"},
    {"optimizer.params.dampening", refused, "momentum is not damped", "0 0.0"},
    {"optimizer.params.nesterov", sets, "training.nesterov"},
    {"optimizer.params.muon_lr", read},
    {"optimizer.params.adam_lr", read},
    {"optimizer.params.ns_method", read},
    {"optimizer.params.per_head_muon", refused, "zs orthogonalises whole matrices", "false"},
    {"optimizer.params.adamw_mode", refused, "DeepSpeed calls it adam_w_mode", "true"},
    {"optimizer.params.fp32_optimizer_states", refused, kFloat, "true"},
    {"optimizer.params.maximize", refused, kOther, "false"},
    {"optimizer.params.amsgrad", refused, kOther, "false"},
    {"optimizer.params.fused", idle, "the update is one pass always"},
    {"optimizer.params.foreach", idle, "the update is one pass always"},
    {"optimizer.params.capturable", idle, "the update is one pass always"},
    {"optimizer.params.differentiable", idle, "the update is one pass always"},
    {"optimizer.params.set_grad_none", idle, "a gradient's memory is another's after the update"},
    {"optimizer.params.max_grad_norm", refused, "use gradient_clipping"},
    {"optimizer.legacy_fusion", idle, "the update is one pass always"},

    {"scheduler.type", read},
    {"scheduler.params.warmup_min_lr", sets, "training.warmup_min_lr"},
    {"scheduler.params.warmup_max_lr", read},
    {"scheduler.params.warmup_num_steps", sets, "training.lr_warmup_steps"},
    {"scheduler.params.warmup_type", sets, "training.warmup_type"},
    {"scheduler.params.warmup_min_ratio", sets, "training.warmup_min_ratio"},
    {"scheduler.params.cos_min_ratio", sets, "training.cos_min_ratio"},
    {"scheduler.params.total_num_steps", sets, "training.total_num_steps"},
    {"scheduler.params.last_batch_iteration", refused, "--resume continues where a run ended", "-1"},

    {"fp16.enabled", read},
    {"fp16.loss_scale", sets, "training.loss_scale"},
    {"fp16.initial_scale_power", sets, "training.initial_scale_power"},
    {"fp16.loss_scale_window", sets, "training.loss_scale_window"},
    {"fp16.hysteresis", sets, "training.hysteresis"},
    {"fp16.consecutive_hysteresis", sets, "training.consecutive_hysteresis"},
    {"fp16.min_loss_scale", sets, "training.min_loss_scale"},
    {"fp16.auto_cast", idle, "tokens have no number format"},
    {"fp16.fp16_master_weights_and_grads", refused, kFloat, "false"},
    {"bf16.enabled", read},  // and "bfloat16", as it was once called
    {"bf16.immediate_grad_update", idle, "gradients are added as they come"},
    {"bf16.check_grad_overflow", idle, "a gradient that is not finite ends the run"},
    {"bf16.bf16_master_weights_and_grads", refused, kFloat, "false"},
    {"bf16.bf16_optimizer_states", refused, kFloat, "false"},
    {"data_types.grad_accum_dtype", idle, kFloat},
    {"data_types.param_dtype", refused, "write {\"bf16\": {\"enabled\": true}}, or fp16"},
    {"data_types.buffer_dtype", idle, "a model has no buffers"},
    {"data_types.keep_in_fp32_modules", idle, "a model has no buffers"},
    {"communication_data_type", idle, "collectives send the type of the computation"},
    {"seq_parallel_communication_data_type", idle, "all-to-alls of sequences move numbers in the type that they have"},
    {"torch_autocast.enabled", read},
    {"torch_autocast.dtype", read},
    {"torch_autocast.lower_precision_safe_modules", idle, "PyTorch's own lists say what is computed in 16 bits"},
    {"amp.enabled", refused, "apex is no more: use bf16 or fp16", "false"},
    {"amp.*", idle, "it acts only with amp.enabled"},

    {"prescale_gradients", idle, kDivide},
    {"gradient_predivide_factor", idle, kDivide},
    {"gradient_allreduce_op", refused, "zs trains on the mean", "mean"},
    {"sparse_gradients", refused, kOther, "false"},
    {"disable_allgather", idle, kWhole},
    {"disable_python_gc", idle, "there is no Python here"},
    {"vocabulary_size", idle, "the model says it"},

    {"zero_optimization.stage", sets, "zero.stage"},
    {"zero_optimization.reduce_bucket_size", idle, kWhole},
    {"zero_optimization.allgather_bucket_size", idle, kWhole},
    {"zero_optimization.allgather_partitions", idle, kWhole},
    {"zero_optimization.reduce_scatter", idle, kWhole},
    {"zero_optimization.use_multi_rank_bucket_allreduce", idle, kWhole},
    {"zero_optimization.contiguous_gradients", idle, "the gradient of a unit is one piece of memory always"},
    {"zero_optimization.overlap_comm", idle, "--deepcompile overlaps communication, with the same bits"},
    {"zero_optimization.compute_grad_norm", idle, "every step has its norm"},
    {"zero_optimization.parameter_alignment", idle, kWhole},
    {"zero_optimization.enable_sanity_checks", idle, "every plan is checked before it runs"},
    {"zero_optimization.save_muon_momentum_buffer_in_memory", idle, "the optimizer is zs's own"},
    {"zero_optimization.round_robin_gradients", idle, "every rank has a slice of each unit"},
    {"zero_optimization.sub_group_size", idle, "the update goes unit by unit"},
    {"zero_optimization.ignore_unused_parameters", idle, "every parameter is used"},
    {"zero_optimization.load_from_fp32_weights", idle, kCheckpoint},
    {"zero_optimization.elastic_checkpoint", idle, kCheckpoint},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", idle, "a checkpoint has whole parameters always"},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save", idle, "a checkpoint has whole parameters always"},
    {"zero_optimization.gather_16bit_weights_on_model_save", idle, "a checkpoint has whole parameters always"},
    {"zero_optimization.stage3_max_live_parameters", idle, kPasses},
    {"zero_optimization.stage3_max_reuse_distance", idle, kPasses},
    {"zero_optimization.stage3_prefetch_bucket_size", idle, kPasses},
    {"zero_optimization.stage3_param_persistence_threshold", idle, kPasses},
    {"zero_optimization.stage3_model_persistence_threshold", idle, kPasses},
    {"zero_optimization.stage3_module_granularity_threshold", idle, kPasses},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", idle, kWhole},
    {"zero_optimization.stage3_allgather_sequential", idle, kWhole},
    {"zero_optimization.memory_efficient_linear", idle, "LibTorch decides what its products keep"},
    {"zero_optimization.override_module_apply", idle, "a model is made of units, not of modules"},
    {"zero_optimization.log_trace_cache_warnings", idle, "the plan of a step is known before it: --print_plan"},
    {"zero_optimization.pipeline_loading_checkpoint", idle, kCheckpoint},
    {"zero_optimization.use_all_reduce_for_fetch_params", idle, kWhole},
    {"zero_optimization.param_persistence_threshold", idle, kPasses},
    {"zero_optimization.model_persistence_threshold", idle, kPasses},
    {"zero_optimization.module_granularity_threshold", idle, kPasses},
    {"zero_optimization.allgather_sequential", idle, kWhole},
    {"zero_optimization.max_live_parameters", idle, kPasses},
    {"zero_optimization.max_reuse_distance", idle, kPasses},
    {"zero_optimization.prefetch_bucket_size", idle, kPasses},
    {"zero_optimization.cpu_offload", refused, "write \"offload_optimizer\": {\"device\": \"cpu\"}", "false"},
    {"zero_optimization.cpu_offload_params", refused, "write \"offload_param\": {\"device\": \"cpu\"}", "false"},
    {"zero_optimization.cpu_offload_param", refused, "write \"offload_param\": {\"device\": \"cpu\"}", "false"},
    {"zero_optimization.cpu_offload_use_pin_memory", idle, kStaging},
    {"zero_optimization.offload_optimizer.device", sets, "zero.offload_device"},
    {"zero_optimization.offload_optimizer.nvme_path", sets, "zero.nvme_path"},
    {"zero_optimization.offload_optimizer.ratio", sets, "zero.offload_ratio"},
    {"zero_optimization.offload_optimizer.super_offload", refused, kOther, "false"},
    {"zero_optimization.offload_optimizer.*", idle, kStaging},
    {"zero_optimization.offload_param.device", sets, "zero.offload_param"},
    {"zero_optimization.offload_param.nvme_path", sets, "zero.nvme_path"},
    {"zero_optimization.offload_param.*", idle, kStaging},
    {"zero_optimization.zero_quantized_weights", sets, "zero.quantized_weights"},
    {"zero_optimization.zero_quantized_nontrainable_weights", idle, "every parameter is trained"},
    {"zero_optimization.zero_quantized_gradients", sets, "zero.quantized_gradients"},
    {"zero_optimization.zero_hpz_partition_size", sets, "zero.hpz_partition_size"},
    {"zero_optimization.zeropp_loco_param", refused, "gradients are rounded once, and no error is carried on", "{}"},
    {"zero_optimization.zeropp_loco_param.*", refused, "gradients are rounded once, and no error is carried on"},
    {"zero_optimization.zenflow", refused, kOther, "{}"},
    {"zero_optimization.zenflow.*", refused, kOther},
    {"zero_optimization.mics_shard_size", refused, kOther, "-1"},
    {"zero_optimization.mics_hierarchical_params_gather", refused, kOther, "false"},
    {"zero_optimization.legacy_stage1", refused, kOther, "false"},
    {"zero_optimization.leaf_module.*", idle, "a model is made of units, not of modules"},
    {"zero_optimization", refused, "write {\"stage\": 1}", "{} false"},
    {"zero_allow_untested_optimizer", idle, "the optimizer is zs's own"},
    {"zero_force_ds_cpu_optimizer", idle, "the optimizer is zs's own, wherever its state is"},
    {"aio.use_gds", refused, "zs writes through the host's memory", "false"},
    {"aio.*", idle, kAio},

    {"activation_checkpointing.*", idle, "see --activation_checkpointing"},
    {"compile.deepcompile", sets, "zero.deepcompile"},
    {"compile.offload_activation", read},
    {"compile.offload_opt_states", read},
    {"compile.offload_parameters", read},
    {"compile.symmetric_memory", idle, kCompiled},
    {"compile.*", idle, kCompiled},
    {"checkpoint.*", idle, kCheckpoint},
    {"nebula.*", refused, kOther},
    {"datastates_ckpt.*", refused, kOther},
    {"use_data_before_expert_parallelism", idle, "there are no experts here"},
    {"dataloader_drop_last", idle, "a step that is not whole is left out always"},
    {"wall_clock_breakdown", idle, kLog},
    {"memory_breakdown", idle, kLog},
    {"dump_state", idle, kLog},
    {"log_level", idle, kLog},
    {"timers.*", idle, kLog},
    {"flops_profiler.*", idle, kLog},
    {"comms_logger.*", idle, kLog},
    {"monitor_config.*", idle, kTrackers},
    {"tensorboard.*", idle, kTrackers},
    {"wandb.*", idle, kTrackers},
    {"csv_monitor.*", idle, kTrackers},
    {"comet.*", idle, kTrackers},
    {"elasticity.enabled", refused, "a run of zs resumes on any number of ranks: --resume", "false"},
    {"autotuning.enabled", refused, "see zs-sweep", "false"},
    {"curriculum_learning.enabled", refused, kSection, "false"},
    {"data_efficiency.enabled", refused, kSection, "false"},
    {"progressive_layer_drop.enabled", refused, kSection, "false"},
    {"eigenvalue.enabled", refused, kSection, "false"},
    {"quantize_training.enabled", refused, kSection, "false"},
    {"hybrid_engine.enabled", refused, kSection, "false"},
    {"weight_quantization.enabled", refused, kSection, "false"},
    {"weight_quantization.*", refused, kOther},
    {"expert_parallel.enabled", refused, kSection, "false"},
    {"graph_harvesting", refused, kOther, "false"},
    {"compression_training.*", refused, kOther},
    {"sparse_attention.*", refused, kOther},
    {"pipeline.*", refused, kOther},
    {"tensor_parallel.autotp_size", refused, kOther, "0 1"},
    {"tensor_parallel.*", refused, kOther},
    {"sequence_parallel_size", refused, kOther, "1"},
    {"expert_parallel_size", refused, kOther, "1"},
});
// clang-format on

/// Sections that act with their `enabled` alone: the rest of them is idle.
constexpr std::string_view kActs = "it acts only with its section's \"enabled\"";
constexpr DeepSpeedKey kIdle{"", Fate::idle, kActs};

constexpr std::string_view kOldBfloat16 = "bfloat16.";

std::string_view section(std::string_view path) { return path.substr(0, path.find('.')); }

}  // namespace

const DeepSpeedKey* deepspeed_key(std::string_view path) {
  if (path.starts_with(kOldBfloat16)) return deepspeed_key("bf16." + std::string(path.substr(kOldBfloat16.size())));
  for (const DeepSpeedKey& key : kKeys) {
    if (key.path == path) return &key;
  }
  for (const DeepSpeedKey& key : kKeys) {
    if (key.path.ends_with(".*") && path.starts_with(key.path.substr(0, key.path.size() - 1))) return &key;
  }
  if (path.find('.') == std::string_view::npos) return nullptr;
  const bool acts = std::any_of(kKeys.begin(), kKeys.end(), [&](const DeepSpeedKey& key) {
    return key.fate == Fate::refused && key.path.ends_with(".enabled") && section(key.path) == section(path);
  });
  return acts ? &kIdle : nullptr;
}

bool deepspeed_section(std::string_view path) {
  if (path == kOldBfloat16.substr(0, kOldBfloat16.size() - 1)) return true;
  return std::any_of(kKeys.begin(), kKeys.end(), [&](const DeepSpeedKey& key) {
    return key.path.starts_with(path) && key.path.substr(path.size()).starts_with('.');
  });
}

std::vector<std::string> deepspeed_paths() {
  std::vector<std::string> paths;
  for (const DeepSpeedKey& key : kKeys) {
    if (!key.path.ends_with(".*")) paths.emplace_back(key.path);
  }
  return paths;
}

}  // namespace zs::config
