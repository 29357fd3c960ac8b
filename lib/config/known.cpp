// SPDX-License-Identifier: Apache-2.0
#include "config/known.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "base/number.hpp"

namespace zs::config {
namespace {

constexpr double kMany = 1e15;
constexpr double kNoBound = std::numeric_limits<double>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

// clang-format off
constexpr auto kKnown = std::to_array<Known>({
    {"model.name", "model_name model", Type::text, "NAME", "gpt2", "model: a folder that Hugging Face's save_pretrained wrote, with its weights, or one of tiny, gpt2, gpt2-medium, gpt2-large, gpt2-xl, tiny-llama, TinyLlama-1.1B, Llama-2-7b-hf, Meta-Llama-3-8B, Meta-Llama-3-70B, Meta-Llama-3.1-8B, Llama-3.2-1B, Llama-3.2-3B, tiny-vit, vit-base-patch16-224, vit-base-patch16-224-in21k, vit-large-patch16-224, vit-huge-patch14-224-in21k, with initial values"},
    {"model.context_length", "seq_length", Type::integer, "N", "", "tokens in a sequence; when not set the positions of the model, at most 512", "", 1, 1 << 24, "model.seq_length training.seq_length data.seq_length"},
    {"model.num_layers", "num_layers", Type::integer, "N", "0", "transformer blocks; 0 means the model's own; of a folder's, the first ones", "", 0, 1e5},
    {"model.dropout", "dropout", Type::real, "P", "0", "probability of dropping an activation; of a Llama, an attention weight", "", 0, 1},
    {"model.vocab_size", "", Type::integer, "N", "", "size of the vocabulary; the tokenizer's own when not set", "", 1, 1e9},
    {"model.image_size", "image_size", Type::integer, "N", "", "pixels along a side of an image, of a ViT; the model's own when not set; positions are interpolated", "", 1, 1 << 14},
    {"model.num_labels", "num_labels", Type::integer, "N", "", "classes that a ViT tells apart; when not set those of the model's folder, else of the data set; a folder's classifier of another number begins anew", "", 1, 1e7},
    {"model.tokenizer", "tokenizer", Type::text, "PATH", "", "tokenizer of the data set's text: a tokenizer.json, a SentencePiece model, a folder with one, or bytes; when not set that of the model's folder, else bytes"},

    {"data.dataset_path", "dataset dataset_name", Type::text, "PATH", "", "what to train on, or the name of a folder in $ZS_DATA that holds it: text, JSON Lines or token files (NAME.bin of zs-tokenize, llm.c, nanoGPT), in one file or in a folder, perhaps with train, valid and test; of images a folder for each class, or Food-101; when not set the licence texts of this machine, or images that are made up", "", -kNoBound, kNoBound, "data.dataset data.dataset_name"},
    {"data.text_key", "text_key", Type::text, "KEY", "", "the data set is JSON Lines with its texts under this key; when not set text, in files *.jsonl and *.ndjson"},
    {"data.packing", "packing", Type::text, "HOW", "", "how documents become sequences: whole joins them, with the end of text between, and cuts the row; none begins a sequence with each document and pads its end, which no loss counts (a longer document goes on in the next); whole when not set", "none whole"},
    {"data.dataset_size", "dataset_size", Type::count, "N", "", "tokens, or images, of the data set to train on: 10M, 64k", "", 1, kMany},
    {"data.dataset_percentage", "dataset_percentage", Type::real, "P", "100", "per cent of the data set to take", "", kTiny, 100},
    {"data.validation_fraction", "validation_fraction", Type::real, "X", "0.1", "share of the samples that is held out for evaluation where the data set has no validation part", "", 0, 1},
    {"data.test_fraction", "test_fraction", Type::real, "X", "0", "share that is held out for a last evaluation where it has no test part", "", 0, 1},
    {"data.use_augmentation", "use_augmentation", Type::boolean, "", "false", "train on random parts of images, mirrored or not, and evaluate on their middles; without, images are resized whole"},
    {"data.image_mean", "image_mean", Type::list, "R,G,B", "0.5", "mean of the channels, 0 to 1; that of the model's folder when not set"},
    {"data.image_std", "image_std", Type::list, "R,G,B", "0.5", "standard deviation of the channels; that of the model's folder when not set"},
    {"data.skip_bad_images", "skip_bad_images", Type::boolean, "", "false", "leave out images that cannot be decoded, and say which: every image is decoded once before the first step"},
    {"data.num_workers", "num_workers dataloader_num_workers", Type::integer, "N", "", "threads of a rank that decode images; the machine's processors over its ranks when not set", "", 1, 4096},

    {"training.batch_size", "batch_size", Type::integer, "N", "1", "sequences, or images, in a rank's micro-batch, or of all those that max_gpu_batch_size splits it into", "", 1, 1e9},
    {"training.max_gpu_batch_size", "max_gpu_batch_size", Type::integer, "N", "", "most sequences, or images, at once on a device: a larger batch_size is split into accumulation steps, in place of gradient_accumulation_steps", "", 1, 1e9},
    {"training.eval_batch_size", "eval_batch_size", Type::integer, "N", "", "sequences, or images, in a rank's micro-batch of the evaluation; batch_size when not set", "", 1, 1e9},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps", Type::integer, "N", "", "micro-batches of a rank in a step; 1 when not set", "", 1, 1e9},
    {"training.train_batch_size", "train_batch_size", Type::integer, "N", "", "sequences, or images, of a step over all ranks: batch_size and gradient_accumulation_steps follow from it where they are not set, and must agree with it where they are", "", 1, 1e12},
    {"training.learning_rate", "learning_rate", Type::real, "X", "0.001", "AdamW's learning rate", "", 0, kNoBound},
    {"training.weight_decay", "weight_decay", Type::real, "X", "0.01", "AdamW's weight decay", "", 0, kNoBound},
    {"training.beta1", "", Type::real, "X", "0.9", "AdamW's decay of the first moment", "", 0, 1},
    {"training.beta2", "", Type::real, "X", "0.999", "AdamW's decay of the second moment", "", 0, 1},
    {"training.epsilon", "", Type::real, "X", "1e-8", "AdamW's term that keeps the divisor from 0", "", 0, kNoBound},
    {"training.correct_bias", "correct_bias", Type::boolean, "BOOL", "true", "AdamW's correction of the moments' bias in the first steps"},
    {"training.use_torch_adam", "use_torch_adam", Type::boolean, "", "false", "update with LibTorch's torch::optim::AdamW itself, not with the fused pass; the same bits where LibTorch's square root is rounded correctly (MKL's is not)"},
    {"training.decay", "decay", Type::text, "WHAT", "all", "what weight decay shrinks: all parameters, or matrices without biases and norms", "all matrices"},
    {"training.dtype", "dtype", Type::text, "NAME", "float32", "number format of parameters in forward and backward; masters and sums stay float32", "float32 bfloat16 float16 torch.float32 torch.bfloat16 torch.float16"},
    {"training.autocast", "autocast", Type::text, "NAME", "", "number format of matrix products and attention, from float32 parameters, as PyTorch's autocast has it; none when not set", "none bfloat16 float16"},
    {"training.loss_scale", "", Type::real, "X", "", "what float16 multiplies the loss with; 0, or not set, finds it out as it goes (dynamic loss scaling)", "", 0, kNoBound},
    {"training.initial_scale_power", "", Type::integer, "N", "", "dynamic loss scaling begins at 2 to the power of this; 16 when not set", "", 0, 126},
    {"training.loss_scale_window", "", Type::integer, "N", "", "steps without overflow after which the loss scale doubles; 1000 when not set", "", 1, kMany},
    {"training.hysteresis", "", Type::integer, "N", "", "overflows, the first ones tolerated, before the loss scale halves; 2 when not set", "", 1, 1e6},
    {"training.consecutive_hysteresis", "", Type::boolean, "BOOL", "", "count these overflows anew after every step without one; false when not set"},
    {"training.min_loss_scale", "", Type::real, "X", "", "least loss scale; 1 when not set", "", kTiny, kNoBound},
    {"training.tf32", "tf32", Type::boolean, "", "false", "float32 matrix products by TF32 on a GPU: faster, 10 bits of mantissa"},
    {"training.products", "products", Type::text, "WHICH", "calibrated", "kernels of matrix products on a GPU with --compile: calibrated (the fastest that a calibration of this GPU has found) or first (as cuBLASLt chooses)", "calibrated first"},
    {"training.max_grad_norm", "max_grad_norm", Type::real, "X", "1", "norm that gradients are clipped to; 0 does not clip", "", 0, kNoBound},
    {"training.scheduler", "scheduler", Type::text, "NAME", "constant", "learning rate schedule: of Hugging Face (constant, linear, cosine) or of DeepSpeed", "constant linear cosine WarmupLR WarmupDecayLR WarmupCosineLR"},
    {"training.lr_warmup_steps", "lr_warmup_steps", Type::integer, "N", "0", "steps over which the learning rate rises from 0", "", 0, kMany, "training.warmup_steps"},
    {"training.warmup_type", "", Type::text, "HOW", "", "how the learning rate of DeepSpeed's schedules rises; linear when not set", "log linear"},
    {"training.warmup_min_lr", "", Type::real, "X", "", "learning rate that WarmupLR and WarmupDecayLR begin with; 0 when not set", "", 0, kNoBound},
    {"training.warmup_min_ratio", "", Type::real, "X", "", "share of the learning rate that WarmupCosineLR begins with; 0 when not set", "", 0, 1},
    {"training.cos_min_ratio", "", Type::real, "X", "", "share of the learning rate that WarmupCosineLR ends with; 0.0001 when not set", "", 0, 1},
    {"training.total_num_steps", "", Type::integer, "N", "", "steps after which DeepSpeed's schedules end; the training's own when not set", "", 1, kMany},
    {"training.num_epochs", "num_epochs", Type::integer, "N", "", "passes over the data set; as many as max_steps takes when not set", "", 1, 1e9},
    {"training.max_steps", "max_steps bench_step", Type::integer, "N", "", "steps at most; 0 means no limit; when not set no limit beside num_epochs, and 100 without it", "", 0, kMany, "training.bench_step"},
    {"training.seed", "seed", Type::integer, "N", "42", "seed of initialization, sampling and dropout", "", 0, 9e15},
    {"training.deterministic", "deterministic", Type::boolean, "", "true", "the same bits in every run: on CPUs always so, at no cost"},
    {"training.eval", "eval", Type::boolean, "", "false", "evaluate at the end too"},
    {"training.eval_steps", "eval_steps", Type::integer, "N", "0", "steps between evaluations; 0 means none", "", 0, kMany},
    {"training.dump_logits", "dump_logits", Type::text, "FILE", "", "write the logits and targets of the last evaluation to an HDF5 file"},
    {"training.save_steps", "save_steps", Type::integer, "N", "0", "steps between checkpoints; 0 means none but the final one", "", 0, kMany},
    {"training.save_final", "save_final", Type::boolean, "BOOL", "true", "save the final model, as final_checkpoint"},
    {"training.save_pretrained", "save_pretrained", Type::text, "DIR", "", "write the trained model to DIR too, as Hugging Face's from_pretrained loads it: model.safetensors, config.json, the tokenizer of the model's folder"},
    {"training.keep_last", "keep_last", Type::integer, "N", "0", "newest checkpoints to keep; 0 keeps all", "", 0, kMany},
    {"training.save_gradients", "save_gradients", Type::boolean, "BOOL", "true", "save the gradients with a checkpoint"},
    {"training.save_gradient_norms", "save_gradient_norms", Type::boolean, "", "false", "save with the gradients the norm of each micro-batch's, from which zs-report --gradients tells how far micro-batches differ"},
    {"training.log_interval", "log_interval", Type::integer, "N", "10", "steps between log lines", "", 1, kMany},
    {"training.timing_warmup", "timing_warmup warmup_step", Type::integer, "N", "5", "first steps that the mean iteration time leaves out", "", 0, kMany, "training.warmup_step"},

    {"zero.stage", "zero_stage", Type::integer, "N", "3", "what is partitioned: 0 nothing, 1 optimizer, 2 and gradients, 3 and parameters", "", 0, 3},
    {"zero.method", "method", Type::text, "NAME", "", "stage, backend and offload by one name", "ddp zero1 zero2 zero3 zeropp single single_gpu_offload"},
    {"zero.deepspeed_config", "deepspeed_config", Type::text, "FILE", "", "DeepSpeed's configuration file, whose settings are taken; \"auto\" there means the settings of zs"},
    {"zero.backend", "backend", Type::text, "NAME", "zero", "engine; deepspeed means zero, singlegpu single", "zero deepspeed fsdp ddp single singlegpu"},
    {"zero.compile", "compile", Type::boolean, "", "false", "use fused kernels inside units: faster, bits of their own"},
    {"zero.deepcompile", "deepcompile", Type::boolean, "", "false", "run passes over the plan of a step"},
    {"zero.passes", "passes", Type::list, "LIST", "", "passes to run, joined by commas; ALL for those of --deepcompile; or 5:prefetch+overlap_reduce,... for passes from 5 steps done on"},
    {"zero.plan_profile", "plan_profile", Type::text, "FILE", "", "what the operations of a step took, as --deepcompile measures and leaves it in a run's folder (profile.json), for the passes to go by"},
    {"zero.offload_device", "offload_device", Type::text, "WHERE", "none", "where optimizer state lies between updates, at stages 1 to 3: none (on the device), cpu (the host's memory) or nvme (a disk)", "none cpu nvme"},
    {"zero.offload_param", "offload_param", Type::text, "WHERE", "none", "where a rank's shard of the parameters lies between uses, at stage 3", "none cpu nvme"},
    {"zero.nvme_path", "nvme_path", Type::text, "DIR", "", "folder on a disk for what is offloaded to nvme; nothing is left there at the end"},
    {"zero.hpz_partition_size", "zero_hpz_partition_size", Type::integer, "K", "", "ZeRO++'s hpZ, at stage 3: each group of K ranks in order keeps the parameters once more, divided among them, and gathers them there after their first gather in a step; the ranks of a node; 1 means none", "", 1, 1 << 20},
    {"zero.quantized_weights", "zero_quantized_weights", Type::boolean, "", "", "ZeRO++'s qwZ, at stage 3: parameters travel as integers of 8 bits, and are rounded so; masters are not"},
    {"zero.quantized_gradients", "zero_quantized_gradients", Type::boolean, "", "", "ZeRO++'s qgZ, at stage 3: gradients of micro-batches travel as integers of 4 bits, and are rounded so, once"},
    {"zero.self_test_every", "self_test_every", Type::integer, "N", "", "steps between self-tests of what travels as integers, each against the exact numbers; the first step alone when not set", "", 1, kMany},
    {"zero.reduction", "reduction", Type::text, "HOW", "exact", "exact: powers of two of ranks and accumulation steps, the same bits for all; any: any number", "exact any"},
    {"zero.activation_checkpointing", "activation_checkpointing", Type::boolean, "", "false", "keep only the inputs of units, and compute their insides again in backward"},
    {"zero.memory_budget", "memory_budget", Type::count, "BYTES", "", "device memory of a rank that passes may fill: 16G", "", 1, kMany},

    {"initialization.init_type", "init_type", Type::text, "HOW", "normal", "how parameters begin where the model is no folder with weights: normal draws matrices from init_mean and init_std, biases 0, norms 1, GPT-2's residual projections scaled down; gaussian draws all alike", "normal gaussian", -kNoBound, kNoBound, "run.init_type"},
    {"initialization.init_mean", "", Type::real, "X", "0", "mean of the initial weights"},
    {"initialization.init_std", "", Type::real, "X", "0.02", "standard deviation of the initial weights", "", 0, kNoBound},

    {"run.name", "run_name", Type::text, "NAME", "", "name of the run; its id when not set"},
    {"run.device", "device", Type::text, "NAME", "auto", "where to compute: auto takes a GPU if there is one", "auto cpu cuda"},
    {"run.comm", "comm", Type::text, "NAME", "auto", "what moves a GPU's memory between ranks: nccl (a GPU for each rank), mpi (through the host), or auto", "auto nccl mpi"},
    {"run.checkpoint", "checkpoint", Type::text, "PATH", "", "checkpoint to go on from"},
    {"run.output_dir", "output_dir registry", Type::text, "DIR", "", "folder of the registry, in which the run gets its own: $ZS_REGISTRY or saved_models when not set"},
    {"run.digest_every", "digest_every", Type::integer, "N", "0", "steps between state digests; 0 means only at the end", "", 0, kMany},
    {"tracking.use_tensorboard", "use_tensorboard", Type::boolean, "", "false", "write TensorBoard's event files too, into the run's folder"},
    {"tracking.tensorboard_dir", "tensorboard_dir", Type::text, "DIR", "", "folder of this run for TensorBoard: RUN/tensorboard when not set; implies use_tensorboard"},
    {"tracking.use_wandb", "use_wandb", Type::boolean, "", "false", "write an offline run of W&B too, which 'wandb sync' sends; zs itself sends nothing"},
    {"tracking.wandb_project", "wandb_project", Type::text, "NAME", "zs", "W&B project", "", -kNoBound, kNoBound, "run.wandb_project_name"},
    {"tracking.wandb_entity", "wandb_entity", Type::text, "NAME", "", "W&B user or team; that of who syncs when not set"},
    {"tracking.wandb_run_name", "wandb_run_name", Type::text, "NAME", "", "name of the run in W&B; the run's own when not set"},
    {"tracking.wandb_tags", "wandb_tags", Type::list, "LIST", "", "W&B tags, joined by commas"},
    {"tracking.wandb_mode", "wandb_mode", Type::text, "MODE", "offline", "offline, or disabled: write nothing in spite of use_wandb", "offline disabled"},
    {"tracking.wandb_dir", "wandb_dir", Type::text, "DIR", "", "folder in which wandb/ lies: $WANDB_DIR, else the run's folder, when not set"},
    {"tracking.profile", "profile", Type::boolean, "", "false", "profile some steps as PyTorch's profiler does, into rank-R.pt.trace.json.gz of the run's folder, for Perfetto, TensorBoard, Holistic Trace Analysis and zs-trace"},
    {"tracking.profile_steps", "profile_steps", Type::text, "STEPS", "", "steps to profile, 7 or 10-12; when not set three, behind the first timing_warmup ones; implies profile"},
    {"tracking.probe", "probe", Type::text, "DIR", "", "record a digest and the norm of each gradient and parameter after each step, as zs_probe.py does of a PyTorch training: zs-verify names the first element where two such trainings part; the folder that $ZS_PROBE names when not set, off: none"},
    {"tracking.probe_every", "probe_every", Type::integer, "N", "", "steps from one that is probed to the next; the first one always is; $ZS_PROBE_EVERY, else 1, when not set", "", 1, kMany},
    {"tracking.probe_values", "probe_values", Type::text, "STEPS", "", "keep the values too of these steps of those probed, joined by commas, or of all; those that $ZS_PROBE_VALUES names when not set"},
    {"tracking.profile_dir", "profile_dir", Type::text, "DIR", "", "folder for the traces in place of the run's"},
    {"sweep_name", "", Type::text, "NAME", "", "the sweep that a run belongs to"},
});

/// What people call a key in other trainers.
struct Synonyms {
  std::string_view key, words;
};
constexpr auto kSynonyms = std::to_array<Synonyms>({
    {"model.name", "model_name_or_path"},
    {"model.context_length", "context seq_len sequence_length max_seq_length max_length block_size n_positions n_ctx"},
    {"model.num_layers", "layers n_layer n_layers num_hidden_layers"},
    {"data.dataset_path", "data data_path data_dir"},
    {"training.batch_size", "bs batch micro_batch_size per_device_train_batch_size train_micro_batch_size_per_gpu"},
    {"training.gradient_accumulation_steps", "accumulation accumulation_steps grad_accum grad_accum_steps accumulate_grad_batches"},
    {"training.learning_rate", "lr"},
    {"training.weight_decay", "wd"},
    {"training.beta1", "betas adam_beta1"},
    {"training.beta2", "adam_beta2"},
    {"training.epsilon", "eps adam_epsilon"},
    {"training.dtype", "precision torch_dtype bf16 fp16"},
    {"training.max_grad_norm", "clip grad_clip gradient_clipping clip_grad_norm"},
    {"training.scheduler", "lr_scheduler lr_scheduler_type schedule lr_schedule"},
    {"training.lr_warmup_steps", "warmup warmup_steps num_warmup_steps warmup_iters"},
    {"training.num_epochs", "epochs epoch num_train_epochs max_epochs"},
    {"training.max_steps", "steps step num_steps iterations iters max_iters train_iters"},
    {"training.eval_steps", "eval_interval eval_every"},
    {"training.save_steps", "save_interval save_every checkpoint_interval"},
    {"training.log_interval", "log_every logging_steps log_steps"},
    {"zero.stage", "stage zero"},
    {"zero.activation_checkpointing", "gradient_checkpointing"},
    {"zero.deepspeed_config", "deepspeed"},
    {"training.train_batch_size", "global_batch_size"},
});
// clang-format on

void each_word(std::string_view field, const std::function<void(std::string_view)>& use) {
  while (!field.empty()) {
    const std::size_t end = std::min(field.find(' '), field.size());
    use(field.substr(0, end));
    field.remove_prefix(std::min(end + 1, field.size()));
  }
}

bool has_word(std::string_view field, std::string_view word) {
  bool found = false;
  each_word(field, [&](std::string_view one) { found = found || one == word; });
  return found;
}

}  // namespace

std::span<const Known> known() { return kKnown; }

const Known* known(std::string_view key) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const Known*> all;
    for (const Known& row : kKnown) {
      all.emplace(row.key, &row);
      each_word(row.aliases, [&](std::string_view alias) { all.emplace(alias, &row); });
    }
    return all;
  }();
  const auto found = rows.find(key);
  return found == rows.end() ? nullptr : found->second;
}

const Known* known_option(std::string_view option) {
  const auto found =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& row) { return has_word(row.options, option); });
  return found == kKnown.end() ? nullptr : &*found;
}

std::string_view synonyms(std::string_view key) {
  const auto found =
      std::find_if(kSynonyms.begin(), kSynonyms.end(), [&](const Synonyms& row) { return row.key == key; });
  return found == kSynonyms.end() ? "" : found->words;
}

std::vector<std::string> words(std::string_view field) {
  std::vector<std::string> all;
  each_word(field, [&](std::string_view word) { all.emplace_back(word); });
  return all;
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  double scale = 1;
  if (!text.empty()) {
    const std::size_t power =
        std::string_view("kmgt").find(static_cast<char>(std::tolower(static_cast<unsigned char>(text.back()))));
    if (power != std::string_view::npos) {
      scale = std::pow(1000.0, static_cast<double>(power + 1));
      text.remove_suffix(1);
    }
  }
  const auto number = parse_real(text);
  if (!number || !(*number >= 0)) return {};
  const double scaled = *number * scale;
  const double whole = std::round(scaled);
  // 1.1M is whole although 1.1 * 1e6 is not to the last bit; 0.0001k is not.
  if (!(whole < 9e15) || !(std::fabs(scaled - whole) <= 1e-9 * std::max(1.0, whole))) return {};
  return static_cast<std::int64_t>(whole);
}

}  // namespace zs::config
