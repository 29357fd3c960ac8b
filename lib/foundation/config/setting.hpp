// SPDX-License-Identifier: Apache-2.0
// The table of settings: one row each, with key, type, default, range, help, options and the settings that it needs to
// have an effect. zs-train's options, the checks, the record and the manual are filters over it; did-you-mean also
// knows the synonyms in cli/command.cpp. Code reads config[setting<"training.learning_rate">] (reading.hpp), whose type
// follows from the row.
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace zs::config {

enum class Type {
  text,
  integer,
  real,
  boolean,
  count,  ///< a whole number, "10M" and "64k" allowed
  list,   ///< words: "a,b", or a YAML list
};

struct Known {
  std::string_view key;        ///< "training.batch_size"
  std::string_view options{};  ///< zs-train's options for it, "max_steps bench_step"; the first is shown
  Type type = Type::text;
  std::string_view value{};     ///< placeholder, "N"; a boolean without one is a flag that sets true
  std::string_view fallback{};  ///< default; "" for none
  std::string_view help{};      ///< lower case, no period
  std::string_view choices{};   ///< the only values allowed, "zero fsdp ddp"; "" for any
  double lowest = std::numeric_limits<double>::lowest();
  double highest = std::numeric_limits<double>::max();
  std::string_view aliases{};   ///< other keys that mean the same, "model.seq_length training.seq_length"
  std::string_view alone{};     ///< the value of an option without one, "true": the row has it among its choices
  std::string_view synonyms{};  ///< names in other trainers, "lr": not accepted, for "did you mean"
  /// Settings of which one must hold for this one to have an effect: "KEY=VALUE", or "KEY" for any value except 0,
  /// false and none. "" if it always has one, or if `where` describes it.
  std::string_view needs{};
  std::string_view where{};  ///< the same in words, if no setting alone decides: "a model that takes images"
};

inline constexpr double kMany = 1e15;
inline constexpr double kBelowOne = 1 - 0x1p-53;
inline constexpr double kTiny = std::numeric_limits<double>::denorm_min();

// clang-format off
inline constexpr auto kSettings = std::to_array<Known>({
    {.key = "model.name", .options = "model_name model", .value = "NAME", .fallback = "gpt2", .help = "model: a folder that Hugging Face's save_pretrained wrote, with its weights, or one of tiny, gpt2, gpt2-medium, gpt2-large, gpt2-xl, tiny-llama, TinyLlama-1.1B, Llama-2-7b-hf, Meta-Llama-3-8B, Meta-Llama-3-70B, Meta-Llama-3.1-8B, Llama-3.2-1B, Llama-3.2-3B, SmolLM-135M, SmolLM2-135M, SmolLM2-360M, SmolLM2-1.7B, tiny-qwen2, Qwen2-0.5B, Qwen2.5-0.5B, Qwen2.5-1.5B, Qwen2.5-3B, Qwen2.5-7B, tiny-qwen3, Qwen3-0.6B, Qwen3-1.7B, Qwen3-4B, Qwen3-8B, tiny-mistral, Mistral-7B-v0.1, Mistral-7B-v0.3, tiny-olmo2, OLMo-2-0425-1B, OLMo-2-1124-7B, tiny-phi3, Phi-3-mini-4k-instruct, phi-4, tiny-gemma2, gemma-2-2b, gemma-2-9b, tiny-gemma3, gemma-3-270m, gemma-3-1b-pt, tiny-mixtral, Mixtral-8x7B-v0.1, Mixtral-8x22B-v0.1, tiny-qwen3-moe, Qwen3-30B-A3B, Qwen3-235B-A22B, tiny-gpt-oss, gpt-oss-20b, gpt-oss-120b, tiny-vit, vit-base-patch16-224, vit-base-patch16-224-in21k, vit-large-patch16-224, vit-huge-patch14-224-in21k, with initial values", .synonyms = "model_name_or_path"},
    {.key = "model.context_length", .options = "seq_length", .type = Type::integer, .value = "N", .help = "tokens in a sequence; default: the positions of the model, at most 512", .lowest = 1, .highest = 1 << 24, .aliases = "model.seq_length training.seq_length data.seq_length", .synonyms = "context seq_len sequence_length max_seq_length max_length block_size n_positions n_ctx"},
    {.key = "model.num_layers", .options = "num_layers", .type = Type::integer, .value = "N", .fallback = "0", .help = "transformer blocks; 0 means all of the model's; of a model folder, the first ones", .lowest = 0, .highest = 1e5, .synonyms = "layers n_layer n_layers num_hidden_layers"},
    {.key = "model.dropout", .options = "dropout", .type = Type::real, .value = "P", .fallback = "0", .help = "probability of dropping an activation; in decoders other than GPT-2, an attention weight", .lowest = 0, .highest = kBelowOne},
    {.key = "model.router_aux_loss_coef", .options = "router_aux_loss_coef", .type = Type::real, .value = "X", .help = "for a model with experts, add X times the loss that balances them; 0: leave it out; default: output_router_logits and router_aux_loss_coef of config.json", .lowest = 0, .where = "a model with experts"},
    {.key = "model.vocab_size", .type = Type::integer, .value = "N", .help = "size of the vocabulary; default: the tokenizer's", .lowest = 1, .highest = 1e9, .where = "a model that takes text"},
    {.key = "model.image_size", .options = "image_size", .type = Type::integer, .value = "N", .help = "pixels along a side of an image, for a ViT; positions are interpolated; default: the model's", .lowest = 1, .highest = 1 << 14, .where = "a model that takes images"},
    {.key = "model.num_labels", .options = "num_labels", .type = Type::integer, .value = "N", .help = "classes of a ViT; default: from the model's folder, else from the data set; if the number differs from the folder's, the classifier is initialized again", .lowest = 1, .highest = 1e7, .where = "a model that takes images"},
    {.key = "model.tokenizer", .options = "tokenizer", .value = "PATH", .help = "tokenizer for text: a tokenizer.json, a SentencePiece model, a folder with one, or bytes; default: the model folder's tokenizer, else bytes", .where = "a model that takes text"},

    {.key = "model.lora_rank", .options = "lora_rank", .type = Type::integer, .value = "R", .fallback = "0", .help = "train adapters of this rank (LoRA) instead of the model's parameters; 0: none", .lowest = 0, .highest = 1 << 16, .synonyms = "lora_r r"},
    {.key = "model.lora_alpha", .options = "lora_alpha", .type = Type::real, .value = "A", .fallback = "8", .help = "multiply the adapters' output by A / R", .lowest = 0, .needs = "model.lora_rank"},
    {.key = "model.lora_targets", .options = "lora_targets", .type = Type::list, .value = "NAMES", .fallback = "all-linear", .help = "products of blocks that get an adapter, by the ends of their modules' names, with * and ?, joined by commas: q_proj,v_proj; all-linear takes all of them", .synonyms = "target_modules lora_target_modules", .needs = "model.lora_rank"},
    {.key = "model.nf4", .options = "nf4", .value = "HOW", .help = "beside adapters: hold the frozen matrices of blocks in 4 bits, QLoRA's NF4 as bitsandbytes stores it, and widen them to dtype where a block computes: single keeps a float32 scale for each 64 numbers; double keeps the scales in 8 bits too (double quantization)", .choices = "none single double", .synonyms = "load_in_4bit quantize_base quantization_bit", .where = "--lora_rank or --lora_adapter"},
    {.key = "model.use_rslora", .options = "use_rslora", .type = Type::boolean, .fallback = "false", .help = "multiply the adapters' output by A / sqrt(R)", .needs = "model.lora_rank"},
    {.key = "model.modules_to_save", .options = "modules_to_save", .type = Type::list, .value = "NAMES", .help = "modules that are trained whole in addition to the adapters, and written with them", .needs = "model.lora_rank"},
    {.key = "model.lora_adapter", .options = "lora_adapter", .value = "DIR", .help = "continue with the adapters of this folder, as peft's save_pretrained writes it; its adapter_config.json sets rank, targets and all other settings"},

    {.key = "data.dataset_path", .options = "dataset dataset_name", .value = "PATH", .help = "data to train on, or the name of a folder in $ZS_DATA that holds it: text, JSON Lines or token files (NAME.bin of zs-tokenize, llm.c, nanoGPT), in one file or in a folder, with or without train, valid and test; images, in a folder for each class, or Food-101; default: the licence texts of this machine, or generated images", .aliases = "data.dataset data.dataset_name", .synonyms = "data data_path data_dir"},
    {.key = "data.text_key", .options = "text_key", .value = "KEY", .help = "read JSON Lines with the text in this field; default: text, in files *.jsonl and *.ndjson", .where = "a model that takes text"},
    {.key = "data.packing", .options = "packing", .value = "HOW", .help = "how documents become sequences: whole joins them with the end-of-text token and cuts the result; none starts a sequence with each document and pads its end, which no loss counts (a longer document continues in the next); masked fills a sequence with whole documents that do not see each other, each from position 0; whole by default", .choices = "none masked whole", .where = "a model that takes text"},
    {.key = "data.too_long", .options = "too_long", .value = "HOW", .help = "a document longer than a sequence: split continues it in another, cut leaves out its rest, drop leaves out all of it; the log counts them; split by default", .choices = "split cut drop", .needs = "data.packing=none data.packing=masked"},
    {.key = "data.loss_on", .options = "loss_on", .value = "WHAT", .help = "tokens of conversations that count in the loss: all, or only the assistant's with its end token; default: all, or the marks of a token file", .choices = "all assistant", .where = "a model that takes text"},
    {.key = "data.dataset_size", .options = "dataset_size", .type = Type::count, .value = "N", .help = "tokens, or images, of the data set to train on: 10M, 64k", .lowest = 1, .highest = kMany},
    {.key = "data.dataset_percentage", .options = "dataset_percentage", .type = Type::real, .value = "P", .fallback = "100", .help = "per cent of the data set to use", .lowest = kTiny, .highest = 100},
    {.key = "data.validation_fraction", .options = "validation_fraction", .type = Type::real, .value = "X", .fallback = "0.1", .help = "share of the samples that is held out for evaluation if the data set has no validation part", .lowest = 0, .highest = 1},
    {.key = "data.test_fraction", .options = "test_fraction", .type = Type::real, .value = "X", .fallback = "0", .help = "share that is held out for a last evaluation if it has no test part", .lowest = 0, .highest = 1},
    {.key = "data.use_augmentation", .options = "use_augmentation", .type = Type::boolean, .fallback = "false", .help = "train on random parts of images, mirrored or not, and evaluate on their middles, instead of resizing whole images", .where = "a model that takes images"},
    {.key = "data.image_mean", .options = "image_mean", .type = Type::list, .value = "R,G,B", .fallback = "0.5", .help = "mean of the channels, 0 to 1; default: from the model's folder, else", .where = "a model that takes images"},
    {.key = "data.image_std", .options = "image_std", .type = Type::list, .value = "R,G,B", .fallback = "0.5", .help = "standard deviation of the channels; default: from the model's folder, else", .where = "a model that takes images"},
    {.key = "data.skip_bad_images", .options = "skip_bad_images", .type = Type::boolean, .fallback = "false", .help = "leave out images that cannot be decoded, and name them: decodes every image once before the first step", .where = "a model that takes images"},
    {.key = "data.num_workers", .options = "num_workers dataloader_num_workers", .type = Type::integer, .value = "N", .help = "threads of a rank that decode images; default: the machine's processors divided by its ranks", .lowest = 1, .highest = 4096, .where = "a model that takes images"},

    {.key = "training.batch_size", .options = "batch_size", .type = Type::integer, .value = "N", .fallback = "1", .help = "sequences, or images, in a rank's micro-batch; with max_gpu_batch_size, in a rank's step", .lowest = 1, .highest = 1e9, .synonyms = "bs batch micro_batch_size per_device_train_batch_size train_micro_batch_size_per_gpu"},
    {.key = "training.max_gpu_batch_size", .options = "max_gpu_batch_size", .type = Type::integer, .value = "N", .help = "most sequences, or images, at once on a device: a larger batch_size is split into accumulation steps, which replace gradient_accumulation_steps", .lowest = 1, .highest = 1e9},
    {.key = "training.eval_batch_size", .options = "eval_batch_size", .type = Type::integer, .value = "N", .help = "sequences, or images, in a rank's micro-batch of the evaluation; default: batch_size", .lowest = 1, .highest = 1e9, .needs = "training.eval training.eval_steps"},
    {.key = "training.gradient_accumulation_steps", .options = "gradient_accumulation_steps", .type = Type::integer, .value = "N", .help = "micro-batches of a rank in a step; default: 1", .lowest = 1, .highest = 1e9, .synonyms = "accumulation accumulation_steps grad_accum grad_accum_steps accumulate_grad_batches"},
    {.key = "training.train_batch_size", .options = "train_batch_size", .type = Type::integer, .value = "N", .help = "sequences, or images, in a step over all ranks; it gives batch_size and gradient_accumulation_steps if they are not set, and must agree with them if they are", .lowest = 1, .highest = 1e12, .synonyms = "global_batch_size"},
    {.key = "training.optimizer", .options = "optimizer", .value = "NAME", .fallback = "adamw", .help = "optimizer: adamw; adam, with weight decay in the gradient; sgd; lion; muon, which orthogonalises the momentum of the blocks' matrices and uses adamw for all other parameters; or adamw_8bit, with moments in 8 bits", .choices = "adamw adam sgd lion muon adamw_8bit", .synonyms = "optim optimizer_name opt"},
    {.key = "training.learning_rate", .options = "learning_rate", .type = Type::real, .value = "X", .fallback = "0.001", .help = "learning rate", .lowest = 0, .synonyms = "lr"},
    {.key = "training.weight_decay", .options = "weight_decay", .type = Type::real, .value = "X", .fallback = "0.01", .help = "weight decay; default: 0 for adam, sgd and lion, 0.1 for muon, else", .lowest = 0, .synonyms = "wd"},
    {.key = "training.beta1", .type = Type::real, .value = "X", .fallback = "0.9", .help = "decay of AdamW's, Adam's first moment; Lion's share of the momentum in the direction", .lowest = 0, .highest = kBelowOne, .synonyms = "betas adam_beta1", .needs = "training.optimizer=adamw training.optimizer=adam training.optimizer=lion training.optimizer=muon training.optimizer=adamw_8bit"},
    {.key = "training.beta2", .type = Type::real, .value = "X", .fallback = "0.999", .help = "decay of AdamW's, Adam's second moment, and of Lion's momentum; default: 0.99 for lion, else", .lowest = 0, .highest = kBelowOne, .synonyms = "adam_beta2", .needs = "training.optimizer=adamw training.optimizer=adam training.optimizer=lion training.optimizer=muon training.optimizer=adamw_8bit"},
    {.key = "training.epsilon", .type = Type::real, .value = "X", .fallback = "1e-8", .help = "term in AdamW's, Adam's divisor, against division by 0", .lowest = 0, .synonyms = "eps adam_epsilon", .needs = "training.optimizer=adamw training.optimizer=adam training.optimizer=muon training.optimizer=adamw_8bit"},
    {.key = "training.correct_bias", .options = "correct_bias", .type = Type::boolean, .value = "BOOL", .fallback = "true", .help = "AdamW's, Adam's bias correction of the moments in the first steps", .needs = "training.optimizer=adamw training.optimizer=adam training.optimizer=muon training.optimizer=adamw_8bit"},
    {.key = "training.momentum", .options = "momentum", .type = Type::real, .value = "X", .help = "share of the last steps in a step; default: 0 for sgd, 0.95 for muon", .lowest = 0, .highest = kBelowOne, .needs = "training.optimizer=sgd training.optimizer=muon"},
    {.key = "training.nesterov", .options = "nesterov", .type = Type::boolean, .value = "BOOL", .help = "Nesterov's momentum; default: false for sgd, true for muon", .needs = "training.optimizer=sgd training.optimizer=muon"},
    {.key = "training.ns_steps", .options = "ns_steps", .type = Type::integer, .value = "N", .help = "Newton-Schulz iterations that orthogonalise a matrix; default: 5", .lowest = 1, .highest = 99, .needs = "training.optimizer=muon"},
    {.key = "training.adjust_lr", .options = "adjust_lr", .value = "HOW", .help = "factor of a matrix's learning rate: original is sqrt(max(1, rows / columns)), match_rms_adamw is 0.2 sqrt(max(rows, columns)), for steps of AdamW's size; original by default", .choices = "original match_rms_adamw", .needs = "training.optimizer=muon"},
    {.key = "training.adamw_learning_rate", .options = "adamw_learning_rate", .type = Type::real, .value = "X", .help = "learning rate of parameters that muon leaves to AdamW (embeddings, head, norms, biases), with the same schedule; default: learning_rate", .lowest = 0, .needs = "training.optimizer=muon"},
    {.key = "training.use_torch_adam", .options = "use_torch_adam", .type = Type::boolean, .fallback = "false", .help = "update with LibTorch's torch::optim::AdamW instead of the fused pass; the same bits if LibTorch rounds square roots correctly (MKL does not)", .needs = "training.optimizer=adamw"},
    {.key = "training.decay", .options = "decay", .value = "WHAT", .fallback = "all", .help = "parameters with weight decay: all, or matrices only, without biases and norms", .choices = "all matrices"},
    {.key = "training.freeze", .options = "freeze", .type = Type::list, .value = "NAMES", .help = "parameters that stay as they begin, by words of their names, with * and ?, joined by commas: embed_tokens, layers.0, *.bias; they have no gradient and no optimizer state", .synonyms = "frozen freeze_layers"},
    {.key = "training.dtype", .options = "dtype", .value = "NAME", .fallback = "float32", .help = "number format of parameters in forward and backward; masters and sums stay float32", .choices = "float32 bfloat16 float16 torch.float32 torch.bfloat16 torch.float16", .synonyms = "precision torch_dtype bf16 fp16"},
    {.key = "training.autocast", .options = "autocast", .value = "NAME", .help = "number format of matrix products and attention, from float32 parameters, as in PyTorch's autocast; none by default", .choices = "none bfloat16 float16"},
    {.key = "training.loss_scale", .type = Type::real, .value = "X", .help = "factor on the loss for float16; 0, the default, adapts it during training (dynamic loss scaling)", .lowest = 0, .needs = "training.dtype=float16 training.autocast=float16"},
    {.key = "training.initial_scale_power", .type = Type::integer, .value = "N", .help = "dynamic loss scaling starts at 2 to the power of this; default: 16", .lowest = 0, .highest = 126, .where = "float16 (--dtype or --autocast), and a loss scale that is not fixed"},
    {.key = "training.loss_scale_window", .type = Type::integer, .value = "N", .help = "steps without overflow after which the loss scale doubles; default: 1000", .lowest = 1, .highest = kMany, .where = "float16 (--dtype or --autocast), and a loss scale that is not fixed"},
    {.key = "training.hysteresis", .type = Type::integer, .value = "N", .help = "number of overflows at which the loss scale halves; the first ones are tolerated; default: 2", .lowest = 1, .highest = 1e6, .where = "float16 (--dtype or --autocast), and a loss scale that is not fixed"},
    {.key = "training.consecutive_hysteresis", .type = Type::boolean, .value = "BOOL", .help = "restart the count of these overflows after every step without one; false by default", .where = "float16 (--dtype or --autocast), and a loss scale that is not fixed"},
    {.key = "training.min_loss_scale", .type = Type::real, .value = "X", .help = "smallest loss scale; default: 1", .lowest = kTiny, .where = "float16 (--dtype or --autocast), and a loss scale that is not fixed"},
    {.key = "training.tf32", .options = "tf32", .type = Type::boolean, .fallback = "false", .help = "compute float32 matrix products in TF32 on a GPU: faster, 10 bits of mantissa", .where = "a GPU"},
    {.key = "training.fp8", .options = "fp8", .value = "HOW", .help = "round the factors of the blocks' matrix products to 8 bits: tensorwise gives each matrix one scale, by its largest magnitude, values in E4M3 and gradients in E5M2; rowwise gives each row one, and all are E4M3, which is more precise and slower; none by default", .choices = "none tensorwise rowwise", .synonyms = "float8", .where = "a GPU and --compile"},
    {.key = "training.fp8_all_gather", .options = "fp8_all_gather", .type = Type::boolean, .help = "at stage 3 with --fp8 tensorwise: all-gathers send these factors in the 8 bits of the products, about half of the bytes; no result changes", .where = "a GPU, --zero_stage 3 and --fp8 tensorwise"},
    {.key = "training.products", .options = "products", .value = "WHICH", .fallback = "calibrated", .help = "kernels of matrix products on a GPU with --compile: calibrated (the fastest that a calibration of this GPU found) or first (cuBLASLt's choice)", .choices = "calibrated first", .where = "a GPU and --compile"},
    {.key = "training.max_grad_norm", .options = "max_grad_norm", .type = Type::real, .value = "X", .fallback = "1", .help = "norm to which gradients are clipped; 0 does not clip", .lowest = 0, .synonyms = "clip grad_clip gradient_clipping clip_grad_norm"},
    {.key = "training.scheduler", .options = "scheduler", .value = "NAME", .fallback = "constant", .help = "learning rate schedule, of Hugging Face (constant, linear, cosine) or of DeepSpeed", .choices = "constant linear cosine WarmupLR WarmupDecayLR WarmupCosineLR", .synonyms = "lr_scheduler lr_scheduler_type schedule lr_schedule"},
    {.key = "training.lr_warmup_steps", .options = "lr_warmup_steps", .type = Type::integer, .value = "N", .fallback = "0", .help = "steps over which the learning rate rises from 0", .lowest = 0, .highest = kMany, .aliases = "training.warmup_steps", .synonyms = "warmup warmup_steps num_warmup_steps warmup_iters"},
    {.key = "training.warmup_type", .value = "HOW", .help = "how the learning rate rises in DeepSpeed's schedules; linear by default", .choices = "log linear", .needs = "training.scheduler=WarmupLR training.scheduler=WarmupDecayLR training.scheduler=WarmupCosineLR"},
    {.key = "training.warmup_min_lr", .type = Type::real, .value = "X", .help = "learning rate at the start of WarmupLR and WarmupDecayLR; default: 0", .lowest = 0, .needs = "training.scheduler=WarmupLR training.scheduler=WarmupDecayLR"},
    {.key = "training.warmup_min_ratio", .type = Type::real, .value = "X", .help = "share of the learning rate at the start of WarmupCosineLR; default: 0", .lowest = 0, .highest = 1, .needs = "training.scheduler=WarmupCosineLR"},
    {.key = "training.cos_min_ratio", .type = Type::real, .value = "X", .help = "share of the learning rate at the end of WarmupCosineLR; default: 0.0001", .lowest = 0, .highest = 1, .needs = "training.scheduler=WarmupCosineLR"},
    {.key = "training.total_num_steps", .type = Type::integer, .value = "N", .help = "steps after which DeepSpeed's schedules end; default: those of the training", .lowest = 1, .highest = kMany, .needs = "training.scheduler=WarmupDecayLR training.scheduler=WarmupCosineLR training.scheduler=linear training.scheduler=cosine"},
    {.key = "training.num_epochs", .options = "num_epochs", .type = Type::integer, .value = "N", .help = "passes over the data set; default: until max_steps", .lowest = 1, .highest = 1e9, .synonyms = "epochs epoch num_train_epochs max_epochs"},
    {.key = "training.max_steps", .options = "max_steps bench_step", .type = Type::integer, .value = "N", .help = "largest number of steps; 0 means no limit; default: no limit with num_epochs, 100 without", .lowest = 0, .highest = kMany, .aliases = "training.bench_step", .synonyms = "steps step num_steps iterations iters max_iters train_iters"},
    {.key = "training.seed", .options = "seed", .type = Type::integer, .value = "N", .fallback = "42", .help = "seed of initialization, sampling and dropout", .lowest = 0, .highest = 9e15},
    {.key = "training.deterministic", .options = "deterministic", .type = Type::boolean, .fallback = "true", .help = "require the same bits in every run (no effect on CPUs, where they always are); false, in a configuration, lets a GPU's libraries take any kernel and add in any order"},
    {.key = "training.eval", .options = "eval", .type = Type::boolean, .fallback = "false", .help = "also evaluate at the end"},
    {.key = "training.eval_steps", .options = "eval_steps", .type = Type::integer, .value = "N", .fallback = "0", .help = "steps between evaluations; 0 means none", .lowest = 0, .highest = kMany, .synonyms = "eval_interval eval_every"},
    {.key = "training.dump_logits", .options = "dump_logits", .value = "FILE", .help = "write the logits and targets of the last evaluation to an HDF5 file", .needs = "training.eval training.eval_steps"},
    {.key = "training.save_steps", .options = "save_steps", .type = Type::integer, .value = "N", .fallback = "0", .help = "steps between checkpoints; 0 means only the final one", .lowest = 0, .highest = kMany, .synonyms = "save_interval save_every checkpoint_interval"},
    {.key = "training.save_final", .options = "save_final", .type = Type::boolean, .value = "BOOL", .fallback = "true", .help = "save the final model, as final_checkpoint"},
    {.key = "training.save_pretrained", .options = "save_pretrained", .value = "DIR", .help = "also write the trained model to DIR as Hugging Face's from_pretrained loads it: model.safetensors, config.json, the tokenizer of the model's folder"},
    {.key = "training.checkpoint_format", .options = "checkpoint_format", .value = "FORM", .help = "also write each checkpoint in another form, in its subfolder FORM, as zs-checkpoint convert --to FORM does", .choices = "hf safetensors dcp deepspeed universal", .needs = "training.save_steps training.save_final"},
    {.key = "training.keep_last", .options = "keep_last", .type = Type::integer, .value = "N", .fallback = "0", .help = "number of newest checkpoints to keep; 0 keeps all", .lowest = 0, .highest = kMany, .needs = "training.save_steps"},
    {.key = "training.save_gradients", .options = "save_gradients", .type = Type::boolean, .value = "BOOL", .fallback = "true", .help = "save the gradients with a checkpoint", .needs = "training.save_steps training.save_final"},
    {.key = "training.save_gradient_norms", .options = "save_gradient_norms", .type = Type::boolean, .fallback = "false", .help = "with the gradients, also save the norm of each micro-batch's gradient, for the noise scale of zs-report --gradients", .needs = "training.save_steps training.save_final"},
    {.key = "training.log_interval", .options = "log_interval", .type = Type::integer, .value = "N", .fallback = "10", .help = "steps between log lines", .lowest = 1, .highest = kMany, .synonyms = "log_every logging_steps log_steps"},
    {.key = "training.timing_warmup", .options = "timing_warmup warmup_step", .type = Type::integer, .value = "N", .fallback = "5", .help = "first steps, which the mean iteration time leaves out", .lowest = 0, .highest = kMany, .aliases = "training.warmup_step"},

    {.key = "zero.stage", .options = "zero_stage", .type = Type::integer, .value = "N", .fallback = "3", .help = "ZeRO stage: 0 partitions nothing, 1 optimizer state, 2 also gradients, 3 also parameters", .lowest = 0, .highest = 3, .synonyms = "stage zero"},
    {.key = "zero.method", .options = "method", .value = "NAME", .help = "short name for stage, backend and offload", .choices = "ddp zero1 zero2 zero3 zeropp single single_gpu_simple single_gpu_offload"},
    {.key = "zero.deepspeed_config", .options = "deepspeed_config", .value = "FILE", .help = "take the settings of DeepSpeed's configuration file; \"auto\" there means the settings of zs", .synonyms = "deepspeed"},
    {.key = "zero.backend", .options = "backend", .value = "NAME", .fallback = "zero", .help = "engine; deepspeed means zero, singlegpu single", .choices = "zero deepspeed fsdp ddp single singlegpu"},
    {.key = "zero.compile", .options = "compile", .type = Type::boolean, .fallback = "false", .help = "use fused kernels inside units: faster, with other bits"},
    {.key = "zero.deepcompile", .options = "deepcompile", .type = Type::boolean, .fallback = "false", .help = "run passes over the plan of a step"},
    {.key = "zero.passes", .options = "passes", .type = Type::list, .value = "LIST", .help = "passes to run, joined by commas; ALL for the passes of --deepcompile; 5:prefetch+overlap_reduce,... for passes after 5 steps"},
    {.key = "zero.plan_profile", .options = "plan_profile", .value = "FILE", .help = "times of the operations of a step, for the passes: the profile.json that --deepcompile writes into a run's folder", .needs = "zero.deepcompile zero.passes", .where = "--print_plan --cost"},
    {.key = "zero.offload_device", .options = "offload_device", .value = "WHERE", .fallback = "none", .help = "where to keep optimizer state between updates, at stages 1 to 3: none (on the device), cpu (the host's memory) or nvme (a disk)", .choices = "none cpu nvme"},
    {.key = "zero.offload_ratio", .options = "offload_ratio", .type = Type::real, .value = "X", .fallback = "1", .help = "share of the optimizer state that offload_device moves, 0 to 1, in whole units; the rest stays on the device", .lowest = 0, .highest = 1, .needs = "zero.offload_device=cpu zero.offload_device=nvme"},
    {.key = "zero.offload_param", .options = "offload_param", .value = "WHERE", .fallback = "none", .help = "where to keep a rank's shard of the parameters between uses, at stage 3", .choices = "none cpu nvme"},
    {.key = "zero.nvme_path", .options = "nvme_path", .value = "DIR", .help = "folder on a disk for state offloaded to nvme; nothing is left there at the end", .needs = "zero.offload_device=nvme zero.offload_param=nvme", .where = "passes that offload"},
    {.key = "zero.hpz_partition_size", .options = "zero_hpz_partition_size", .type = Type::integer, .value = "K", .help = "ZeRO++'s hpZ, at stage 3: each group of K consecutive ranks keeps a second copy of the parameters, divided among them, and gathers from it after the first gather in a step; set K to the ranks of a node; 1 means none", .lowest = 1, .highest = 1 << 20},
    {.key = "zero.quantized_weights", .options = "zero_quantized_weights", .type = Type::boolean, .help = "ZeRO++'s qwZ, at stage 3: send parameters as integers of 8 bits; the masters are not rounded"},
    {.key = "zero.quantized_gradients", .options = "zero_quantized_gradients", .type = Type::boolean, .help = "ZeRO++'s qgZ, at stage 3: send gradients of micro-batches as integers of 4 bits, rounded once"},
    {.key = "zero.self_test_every", .options = "self_test_every", .type = Type::integer, .value = "N", .help = "steps between self-tests of quantized collectives against the exact numbers; default: only the first step", .lowest = 1, .highest = kMany, .needs = "zero.quantized_weights zero.quantized_gradients"},
    {.key = "zero.activation_checkpointing", .options = "activation_checkpointing", .value = "[HOW]", .fallback = "false", .help = "keep only the inputs of units, and compute their activations again in backward; selective keeps the results of attention too, with --compile: more memory, and no second attention; true if no value follows", .choices = "true selective false", .alone = "true", .synonyms = "gradient_checkpointing recompute"},
    {.key = "zero.sequence_parallel", .options = "sequence_parallel", .type = Type::integer, .value = "N", .fallback = "1", .help = "number of consecutive ranks that share each micro-batch, each with a part of every sequence's tokens; for attention all-to-alls give each all tokens of a part of the heads (DeepSpeed-Ulysses)", .lowest = 1, .highest = 1 << 16, .synonyms = "sequence_parallel_size sp_size ulysses_degree context_parallel"},
    {.key = "zero.sequence_chunks", .options = "sequence_chunks", .type = Type::integer, .value = "C", .help = "compute sequences in C chunks of tokens, and attention in C blocks of heads: the digest depends on C, not on the number of ranks that share a sequence; a multiple of sequence_parallel; default: sequence_parallel", .lowest = 1, .highest = 1 << 16},
    {.key = "zero.expert_parallel", .options = "expert_parallel", .type = Type::integer, .value = "N", .fallback = "1", .help = "number of consecutive ranks that divide the experts of each layer; all-to-alls send tokens to the ranks of their experts and back; the digest is the same as for undivided experts", .lowest = 1, .highest = 1 << 16, .synonyms = "expert_parallel_size ep_size expert_model_parallel_size", .where = "a model with experts"},
    {.key = "zero.memory_budget", .options = "memory_budget", .type = Type::count, .value = "BYTES", .help = "device memory of a rank that passes may fill: 16G", .lowest = 1, .highest = kMany, .needs = "zero.deepcompile zero.passes"},

    {.key = "initialization.init_type", .options = "init_type", .value = "HOW", .fallback = "normal", .help = "initialization when the model has no weights: normal draws matrices from init_mean and init_std, with biases 0, norms 1 and GPT-2's residual projections scaled down; gaussian draws all parameters in the same way", .choices = "normal gaussian", .aliases = "run.init_type", .where = "a model that begins without weights"},
    {.key = "initialization.init_mean", .type = Type::real, .value = "X", .fallback = "0", .help = "mean of the initial weights", .where = "a model that begins without weights"},
    {.key = "initialization.init_std", .type = Type::real, .value = "X", .fallback = "0.02", .help = "standard deviation of the initial weights", .lowest = 0, .where = "a model that begins without weights"},

    {.key = "run.name", .options = "run_name", .value = "NAME", .help = "name of the run; default: its id"},
    {.key = "run.device", .options = "device", .value = "NAME", .fallback = "auto", .help = "where to compute: auto takes a GPU if there is one", .choices = "auto cpu cuda"},
    {.key = "run.comm", .options = "comm", .value = "NAME", .fallback = "auto", .help = "how GPU memory moves between ranks: nccl (with a GPU for each rank), mpi (through the host), or auto", .choices = "auto nccl mpi", .where = "a GPU"},
    {.key = "run.checkpoint", .options = "checkpoint resume_from", .value = "PATH", .help = "checkpoint to start from: of zs, or of any program that zs-checkpoint reads"},
    {.key = "run.output_dir", .options = "output_dir registry", .value = "DIR", .help = "folder of the registry, in which the run gets its own folder; default: $ZS_REGISTRY, else saved_models"},
    {.key = "run.digest_every", .options = "digest_every", .type = Type::integer, .value = "N", .fallback = "0", .help = "steps between state digests; 0 means only at the end", .lowest = 0, .highest = kMany},
    {.key = "tracking.use_tensorboard", .options = "use_tensorboard", .type = Type::boolean, .fallback = "false", .help = "also write TensorBoard's event files, into the run's folder"},
    {.key = "tracking.tensorboard_dir", .options = "tensorboard_dir", .value = "DIR", .help = "folder of this run for TensorBoard; implies use_tensorboard; default: RUN/tensorboard"},
    {.key = "tracking.use_wandb", .options = "use_wandb", .type = Type::boolean, .fallback = "false", .help = "also write an offline run of W&B, which 'wandb sync' uploads; zs itself sends nothing"},
    {.key = "tracking.wandb_project", .options = "wandb_project", .value = "NAME", .fallback = "zs", .help = "W&B project", .aliases = "run.wandb_project_name", .needs = "tracking.use_wandb"},
    {.key = "tracking.wandb_entity", .options = "wandb_entity", .value = "NAME", .help = "W&B user or team; default: the user who syncs", .needs = "tracking.use_wandb"},
    {.key = "tracking.wandb_run_name", .options = "wandb_run_name", .value = "NAME", .help = "name of the run in W&B; default: the run's name", .needs = "tracking.use_wandb"},
    {.key = "tracking.wandb_tags", .options = "wandb_tags", .type = Type::list, .value = "LIST", .help = "W&B tags, joined by commas", .needs = "tracking.use_wandb"},
    {.key = "tracking.wandb_mode", .options = "wandb_mode", .value = "MODE", .fallback = "offline", .help = "offline; or disabled, which writes nothing in spite of use_wandb", .choices = "offline disabled"},
    {.key = "tracking.wandb_dir", .options = "wandb_dir", .value = "DIR", .help = "folder of wandb/; default: $WANDB_DIR, else the run's folder", .needs = "tracking.use_wandb"},
    {.key = "tracking.profile", .options = "profile", .type = Type::boolean, .fallback = "false", .help = "profile some steps with the events of PyTorch's profiler, into rank-R.pt.trace.json.gz in the run's folder, for Perfetto, TensorBoard, Holistic Trace Analysis and zs-trace"},
    {.key = "tracking.profile_steps", .options = "profile_steps", .value = "STEPS", .help = "steps to profile, 7 or 10-12; implies profile; default: three after the first timing_warmup ones"},
    {.key = "tracking.probe", .options = "probe", .value = "DIR", .help = "record digests and sketches of gradients, optimizer state and parameters at each step, as zs_probe does for a PyTorch training; zs-verify compares two recordings; off records none; default: the folder that $ZS_PROBE names"},
    {.key = "tracking.probe_every", .options = "probe_every", .type = Type::integer, .value = "N", .help = "record every Nth step, and always the first; default: $ZS_PROBE_EVERY, else 1", .lowest = 1, .highest = kMany, .where = "a probe (--probe or $ZS_PROBE)"},
    {.key = "tracking.probe_values", .options = "probe_values", .value = "STEPS", .help = "also keep the values of these recorded steps, joined by commas, or of all; default: $ZS_PROBE_VALUES", .where = "a probe (--probe or $ZS_PROBE)"},
    {.key = "tracking.profile_dir", .options = "profile_dir", .value = "DIR", .help = "folder for the traces; default: the run's folder", .needs = "tracking.profile tracking.profile_steps"},
    {.key = "sweep_name", .value = "NAME", .help = "the sweep that a run belongs to"},
});
// clang-format on

/// A key as a template argument.
template <std::size_t N>
struct Key {
  char text[N] = {};
  consteval Key(const char (&key)[N]) { std::copy_n(key, N, text); }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

consteval const Known& row_of(std::string_view key) {
  const Known* const found =
      std::find_if(kSettings.begin(), kSettings.end(), [&](const Known& row) { return row.key == key; });
  if (found == kSettings.end()) throw "no setting has this key";  // reported by the compiler
  return *found;
}

/// The name of a setting in code. An unknown name does not compile.
template <Key key>
struct Setting {
  static constexpr const Known& row = row_of(key.view());
};
template <Key key>
inline constexpr Setting<key> setting;

}  // namespace zs::config
