// SPDX-License-Identifier: Apache-2.0
#include "attribute/table.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace zs::attribute {
namespace {

constexpr Type kInt = Type::integer, kReal = Type::real;
constexpr Role decides = Role::decides, arithmetic = Role::arithmetic, layout = Role::layout,
               measurement = Role::measurement, identity = Role::identity;

// clang-format off
constexpr auto kTable = std::to_array<Attribute>({
    // ---- what is trained
    {.name = "model.name", .role = decides, .label = "model", .key = "model.name", .aliases = "model_name model MODEL model_name_or_path", .main = true, .work = true},
    {.name = "model.parameters", .role = decides, .label = "parameters", .type = kInt, .main = true, .work = true, .found = true},
    {.name = "model.num_layers", .role = decides, .label = "layers", .key = "model.num_layers", .aliases = "num_layers", .type = kInt, .main = true, .work = true},
    {.name = "seq_length", .role = decides, .label = "sequence length", .key = "model.context_length", .aliases = "model.seq_length training.seq_length data.seq_length context_length seq", .type = kInt, .main = true, .work = true},
    {.name = "dropout", .role = decides, .label = "dropout", .key = "model.dropout", .type = kReal},
    {.name = "router_aux_loss_coef", .role = decides, .label = "auxiliary loss of experts", .key = "model.router_aux_loss_coef", .type = kReal},
    {.name = "vocab_size", .role = decides, .label = "vocabulary", .key = "model.vocab_size", .unit = "tokens", .type = kInt, .work = true},
    {.name = "image_size", .role = decides, .label = "image size", .key = "model.image_size", .unit = "pixels", .type = kInt, .main = true, .work = true},
    {.name = "num_labels", .role = decides, .label = "classes", .key = "model.num_labels", .type = kInt},
    {.name = "tokenizer", .role = decides, .label = "tokenizer", .key = "model.tokenizer", .through = "dataset_sha256", .place = true},
    {.name = "lora_rank", .role = decides, .label = "rank of the adapters", .key = "model.lora_rank", .type = kInt, .main = true},
    {.name = "lora_alpha", .role = decides, .label = "alpha of the adapters", .key = "model.lora_alpha", .type = kReal},
    {.name = "lora_targets", .role = decides, .label = "products with adapters", .key = "model.lora_targets"},
    {.name = "use_rslora", .role = decides, .label = "rank-stabilized adapters", .key = "model.use_rslora"},
    {.name = "modules_to_save", .role = decides, .label = "modules trained whole beside adapters", .key = "model.modules_to_save"},
    {.name = "lora_adapter", .role = decides, .label = "adapters to begin with", .key = "model.lora_adapter", .place = true},
    {.name = "freeze", .role = decides, .label = "frozen parameters", .key = "training.freeze"},
    {.name = "model.trained", .role = decides, .label = "trained parameters", .type = kInt, .found = true},
    {.name = "model.active", .role = decides, .label = "parameters that a token meets", .type = kInt, .found = true},
    {.name = "init_type", .role = decides, .label = "initialization", .key = "initialization.init_type", .aliases = "run.init_type"},
    {.name = "init_mean", .role = decides, .label = "mean of the initial weights", .key = "initialization.init_mean", .type = kReal},
    {.name = "init_std", .role = decides, .label = "standard deviation of the initial weights", .key = "initialization.init_std", .type = kReal},
    {.name = "checkpoint", .role = decides, .label = "checkpoint to begin with", .key = "run.checkpoint", .aliases = "resume_from", .place = true},
    {.name = "begun_after_step", .role = decides, .label = "steps before the first one", .type = kInt, .found = true},
    {.name = "dataset", .role = decides, .label = "data", .key = "data.dataset_path", .aliases = "data.dataset data.dataset_name dataset_name dataset_path", .through = "dataset_sha256", .main = true, .place = true},
    {.name = "text_key", .role = decides, .label = "field of the text", .key = "data.text_key", .through = "dataset_sha256"},
    {.name = "packing", .role = decides, .label = "packing of documents", .key = "data.packing", .through = "dataset_sha256"},
    {.name = "too_long", .role = decides, .label = "documents longer than a sequence", .key = "data.too_long", .through = "dataset_sha256"},
    {.name = "loss_on", .role = decides, .label = "tokens that the loss is of", .key = "data.loss_on", .through = "dataset_sha256"},
    {.name = "dataset_sha256", .role = decides, .label = "checksum of the data", .found = true},
    {.name = "dataset_tokens", .role = decides, .label = "tokens of the data", .through = "dataset_sha256", .type = kInt, .main = true, .scaled = true, .found = true},
    {.name = "dataset_size", .role = decides, .label = "tokens or images asked of the data", .key = "data.dataset_size", .through = "dataset_sha256", .type = kInt},
    {.name = "dataset_percentage", .role = decides, .label = "share of the data", .key = "data.dataset_percentage", .through = "dataset_sha256", .unit = "%", .type = kReal, .main = true},
    {.name = "dataset_images", .role = decides, .label = "images to train on", .through = "dataset_sha256", .type = kInt, .main = true, .scaled = true, .found = true},
    {.name = "validation_fraction", .role = decides, .label = "share held out for evaluation", .key = "data.validation_fraction", .type = kReal},
    {.name = "test_fraction", .role = decides, .label = "share held out for the last evaluation", .key = "data.test_fraction", .type = kReal},
    {.name = "use_augmentation", .role = decides, .label = "random parts of images", .key = "data.use_augmentation"},
    {.name = "image_mean", .role = decides, .label = "mean of the channels", .key = "data.image_mean"},
    {.name = "image_std", .role = decides, .label = "standard deviation of the channels", .key = "data.image_std"},
    {.name = "skip_bad_images", .role = decides, .label = "bad images left out", .key = "data.skip_bad_images", .through = "dataset_sha256"},
    {.name = "steps_per_epoch", .role = decides, .label = "steps of an epoch", .through = "global_batch_size", .type = kReal, .scaled = true, .found = true},
    {.name = "global_batch_size", .role = decides, .label = "global batch", .type = kInt, .work = true, .scaled = true, .found = true},
    {.name = "num_epochs", .role = decides, .label = "epochs asked", .key = "training.num_epochs", .through = "expected_steps", .type = kInt, .main = true, .scaled = true},
    {.name = "max_steps", .role = decides, .label = "steps asked", .key = "training.max_steps", .aliases = "bench_step training.bench_step", .through = "expected_steps", .type = kInt, .scaled = true},
    {.name = "expected_steps", .role = decides, .label = "steps expected", .type = kInt, .main = true, .scaled = true, .found = true},
    {.name = "optimizer", .role = decides, .label = "optimizer", .key = "training.optimizer", .main = true},
    {.name = "learning_rate", .role = decides, .label = "learning rate", .key = "training.learning_rate", .type = kReal, .main = true, .recorded = true, .repeats = true},
    {.name = "initial_learning_rate", .role = decides, .label = "initial learning rate", .type = kReal},
    {.name = "scheduler", .role = decides, .label = "schedule of the learning rate", .key = "training.scheduler", .main = true},
    {.name = "lr_warmup_steps", .role = decides, .label = "warm-up steps of the learning rate", .key = "training.lr_warmup_steps", .aliases = "training.warmup_steps", .type = kInt},
    {.name = "warmup_type", .role = decides, .label = "kind of warm-up", .key = "training.warmup_type"},
    {.name = "warmup_min_lr", .role = decides, .label = "learning rate before the warm-up", .key = "training.warmup_min_lr", .type = kReal},
    {.name = "warmup_min_ratio", .role = decides, .label = "share of the learning rate before the warm-up", .key = "training.warmup_min_ratio", .type = kReal},
    {.name = "cos_min_ratio", .role = decides, .label = "share of the learning rate at the end", .key = "training.cos_min_ratio", .type = kReal},
    {.name = "total_num_steps", .role = decides, .label = "steps of the schedule", .key = "training.total_num_steps", .type = kInt},
    {.name = "weight_decay", .role = decides, .label = "weight decay", .key = "training.weight_decay", .type = kReal, .main = true},
    {.name = "decay", .role = decides, .label = "parameters with weight decay", .key = "training.decay"},
    {.name = "beta1", .role = decides, .label = "beta 1", .key = "training.beta1", .type = kReal},
    {.name = "beta2", .role = decides, .label = "beta 2", .key = "training.beta2", .type = kReal},
    {.name = "epsilon", .role = decides, .label = "epsilon", .key = "training.epsilon", .type = kReal},
    {.name = "correct_bias", .role = decides, .label = "bias correction", .key = "training.correct_bias"},
    {.name = "momentum", .role = decides, .label = "momentum", .key = "training.momentum", .type = kReal},
    {.name = "nesterov", .role = decides, .label = "Nesterov's momentum", .key = "training.nesterov"},
    {.name = "ns_steps", .role = decides, .label = "Newton-Schulz iterations", .key = "training.ns_steps", .type = kInt},
    {.name = "adjust_lr", .role = decides, .label = "learning rate by shape", .key = "training.adjust_lr"},
    {.name = "adamw_learning_rate", .role = decides, .label = "learning rate of AdamW beside Muon", .key = "training.adamw_learning_rate", .type = kReal},
    {.name = "max_grad_norm", .role = decides, .label = "gradient norm limit", .key = "training.max_grad_norm", .type = kReal, .main = true},
    {.name = "seed", .role = decides, .label = "seed", .key = "training.seed", .type = kInt, .main = true},

    // ---- in which arithmetic
    {.name = "dtype", .role = arithmetic, .label = "number format", .key = "training.dtype", .main = true},
    {.name = "autocast", .role = arithmetic, .label = "autocast", .key = "training.autocast"},
    {.name = "static_loss_scale", .role = arithmetic, .label = "loss scale asked", .key = "training.loss_scale", .type = kReal},
    {.name = "initial_scale_power", .role = arithmetic, .label = "first loss scale, as a power of two", .key = "training.initial_scale_power", .type = kInt},
    {.name = "loss_scale_window", .role = arithmetic, .label = "steps before the loss scale grows", .key = "training.loss_scale_window", .type = kInt},
    {.name = "hysteresis", .role = arithmetic, .label = "overflows before the loss scale falls", .key = "training.hysteresis", .type = kInt},
    {.name = "consecutive_hysteresis", .role = arithmetic, .label = "overflow count restarts", .key = "training.consecutive_hysteresis"},
    {.name = "min_loss_scale", .role = arithmetic, .label = "least loss scale", .key = "training.min_loss_scale", .type = kReal},
    {.name = "bf16", .role = arithmetic, .label = "bfloat16", .through = "dtype"},
    {.name = "fp16", .role = arithmetic, .label = "float16", .through = "dtype"},
    {.name = "kernels", .role = arithmetic, .label = "kernels", .main = true, .found = true},
    {.name = "compile", .role = arithmetic, .label = "compile", .key = "zero.compile", .aliases = "COMPILE", .through = "kernels", .main = true},
    {.name = "compile_backend", .role = arithmetic, .label = "compiler backend"},
    {.name = "reduction", .role = arithmetic, .label = "reduction"},
    {.name = "sequence_chunks", .role = arithmetic, .label = "chunks of a sequence", .key = "zero.sequence_chunks", .type = kInt},
    {.name = "deterministic", .role = arithmetic, .label = "deterministic operations", .key = "training.deterministic"},
    {.name = "device", .role = arithmetic, .label = "device", .key = "run.device", .found = true},
    {.name = "tf32", .role = arithmetic, .label = "TF32 products", .key = "training.tf32"},
    {.name = "fp8", .role = arithmetic, .label = "products of 8 bits", .key = "training.fp8"},
    {.name = "products", .role = arithmetic, .label = "kernels of matrix products", .key = "training.products", .found = true},
    {.name = "cuda", .role = arithmetic, .label = "CUDA", .found = true},
    {.name = "cublas", .role = arithmetic, .label = "cuBLAS", .found = true},
    {.name = "cudnn", .role = arithmetic, .label = "cuDNN", .found = true},
    {.name = "instruction_set", .role = arithmetic, .label = "instruction set", .found = true},
    {.name = "torch", .role = arithmetic, .label = "LibTorch", .found = true},
    {.name = "blas", .role = arithmetic, .label = "BLAS", .found = true},
    {.name = "python", .role = arithmetic, .label = "Python", .found = true},
    {.name = "packages", .role = arithmetic, .label = "Python packages", .found = true, .program = true},
    {.name = "package.*", .role = arithmetic, .label = "Python package", .found = true},
    {.name = "gpu_driver", .role = arithmetic, .label = "driver of the accelerator", .found = true, .circumstance = true},

    // ---- in which layout
    {.name = "method", .role = layout, .label = "method", .key = "zero.method"},
    {.name = "deepspeed_config", .role = identity, .label = "DeepSpeed's configuration file", .key = "zero.deepspeed_config"},
    {.name = "backend", .role = layout, .label = "backend", .key = "zero.backend", .aliases = "BACKEND", .main = true, .sums = true},
    {.name = "zero_stage", .role = layout, .label = "ZeRO stage", .key = "zero.stage", .aliases = "ZERO_STAGE", .type = kInt, .main = true, .sums = true},
    {.name = "world_size", .role = layout, .label = "ranks", .aliases = "num_processes np ranks NUM_PROCESSES", .through = "global_batch_size", .type = kInt, .main = true, .sums = true, .scaled = true},
    {.name = "num_nodes", .role = layout, .label = "nodes", .aliases = "NUM_NODES", .type = kInt, .scaled = true},
    {.name = "comm", .role = layout, .label = "transport between GPUs", .key = "run.comm"},
    {.name = "nccl", .role = layout, .label = "NCCL", .found = true},
    {.name = "gpus_per_node", .role = layout, .label = "accelerators of a node", .aliases = "NGPUS_PER_NODE", .type = kInt, .scaled = true},
    {.name = "batch_size", .role = layout, .label = "micro-batch of a rank", .key = "training.batch_size", .through = "global_batch_size", .type = kInt, .main = true, .rounds = true, .scaled = true},
    {.name = "train_batch_size", .role = decides, .label = "global batch asked", .key = "training.train_batch_size", .through = "global_batch_size", .type = kInt, .scaled = true},
    {.name = "gradient_accumulation_steps", .role = layout, .label = "accumulation steps", .key = "training.gradient_accumulation_steps", .aliases = "GRADIENT_ACCUMULATION_STEPS acc", .through = "global_batch_size", .type = kInt, .main = true, .sums = true, .scaled = true},
    {.name = "max_gpu_batch_size", .role = layout, .label = "samples at once on a device", .key = "training.max_gpu_batch_size", .through = "global_batch_size", .unit = "samples", .type = kInt, .sums = true, .scaled = true},
    {.name = "sequence_parallel", .role = layout, .label = "ranks that share sequences", .key = "zero.sequence_parallel", .aliases = "sequence_parallel_size sp_size", .type = kInt, .main = true},
    {.name = "expert_parallel", .role = layout, .label = "ranks that divide experts", .key = "zero.expert_parallel", .aliases = "expert_parallel_size ep_size", .type = kInt, .main = true},
    {.name = "deepcompile", .role = layout, .label = "deepcompile", .key = "zero.deepcompile", .main = true},
    {.name = "passes", .role = layout, .label = "passes", .key = "zero.passes", .main = true},
    {.name = "plan_profile", .role = layout, .label = "profile of the plan", .key = "zero.plan_profile"},
    {.name = "activation_checkpointing", .role = layout, .label = "activation checkpointing", .key = "zero.activation_checkpointing", .aliases = "ac", .main = true},
    {.name = "offload", .role = layout, .label = "offload", .key = "zero.offload_device", .aliases = "offload_device", .main = true},
    {.name = "offload_ratio", .role = layout, .label = "offloaded share of optimizer state", .key = "zero.offload_ratio", .type = kReal},
    {.name = "offload_param", .role = layout, .label = "offload of parameters", .key = "zero.offload_param"},
    {.name = "nvme_path", .role = layout, .label = "folder for what is offloaded", .key = "zero.nvme_path"},
    {.name = "hpz_partition_size", .role = layout, .label = "ranks of a secondary partition", .key = "zero.hpz_partition_size", .aliases = "zero_hpz_partition_size", .type = kInt},
    {.name = "fp8_all_gather", .role = layout, .label = "factors of 8 bits travel so", .key = "training.fp8_all_gather"},
    {.name = "quantized_weights", .role = arithmetic, .label = "parameters in 8 bits on their way", .key = "zero.quantized_weights", .aliases = "zero_quantized_weights"},
    {.name = "quantized_gradients", .role = arithmetic, .label = "gradients in 4 bits on their way", .key = "zero.quantized_gradients", .aliases = "zero_quantized_gradients"},
    {.name = "self_test_every", .role = layout, .label = "steps between self-tests", .key = "zero.self_test_every", .unit = "steps", .type = kInt},
    {.name = "memory_budget", .role = layout, .label = "memory that passes may fill", .key = "zero.memory_budget", .unit = "bytes", .type = kInt},
    {.name = "use_torch_adam", .role = arithmetic, .label = "LibTorch's own AdamW", .key = "training.use_torch_adam"},
    {.name = "eval", .role = layout, .label = "evaluation at the end", .key = "training.eval", .watches = true},
    {.name = "eval_steps", .role = layout, .label = "steps between evaluations", .key = "training.eval_steps", .type = kInt, .watches = true},
    {.name = "eval_batch_size", .role = layout, .label = "micro-batch of the evaluation", .key = "training.eval_batch_size", .unit = "samples", .type = kInt, .watches = true},
    {.name = "num_workers", .role = layout, .label = "threads that decode images", .key = "data.num_workers", .aliases = "dataloader_num_workers", .type = kInt},
    {.name = "save_steps", .role = layout, .label = "steps between checkpoints", .key = "training.save_steps", .type = kInt, .watches = true},
    {.name = "resumed_after_step", .role = layout, .label = "resumed after step", .type = kInt, .found = true},

    // ---- by which program, where
    {.name = "revision", .role = arithmetic, .label = "revision", .main = true, .found = true, .program = true},
    {.name = "version", .role = arithmetic, .label = "version", .found = true, .program = true},
    {.name = "commit", .role = arithmetic, .label = "commit", .through = "revision", .found = true, .program = true},
    {.name = "uncommitted_changes", .role = arithmetic, .label = "uncommitted changes", .found = true, .program = true},
    {.name = "git_diff", .role = arithmetic, .label = "uncommitted changes to the code", .found = true, .program = true},
    {.name = "cpu", .role = arithmetic, .label = "processor", .main = true, .found = true},
    {.name = "gpu", .role = arithmetic, .label = "accelerator", .main = true, .found = true},
    {.name = "threads", .role = arithmetic, .label = "threads of a rank", .type = kInt, .main = true, .found = true},
    {.name = "host", .role = identity, .label = "host", .main = true, .circumstance = true, .per_run = true},
    {.name = "experiment_date", .role = identity, .label = "date", .main = true},

    // ---- outcomes: of every step
    {.name = "step", .role = identity, .label = "step", .type = kInt, .recorded = true},
    {.name = "epoch", .role = measurement, .label = "epoch", .type = kInt, .recorded = true, .repeats = true},
    {.name = "loss", .role = measurement, .label = "loss", .unit = "nats/token", .type = kReal, .recorded = true, .repeats = true},
    {.name = "valid_loss", .role = measurement, .label = "validation loss", .unit = "nats/token", .type = kReal, .recorded = true, .repeats = true},
    {.name = "valid_accuracy", .role = measurement, .label = "validation accuracy", .type = kReal, .recorded = true, .repeats = true},
    {.name = "iteration_time", .role = measurement, .label = "time of a step", .unit = "s", .type = kReal, .recorded = true},
    {.name = "timed", .role = measurement, .label = "its time counts", .type = kInt, .recorded = true},
    {.name = "alloc_mem", .role = measurement, .label = "memory of a rank", .unit = "bytes", .type = kInt, .recorded = true},
    {.name = "peak_mem", .role = measurement, .label = "peak memory of a rank", .unit = "bytes", .type = kInt, .column = "peak_memory", .recorded = true},
    {.name = "grad_norm", .role = measurement, .label = "gradient norm", .type = kReal, .recorded = true, .repeats = true},
    {.name = "clipped_norm", .role = measurement, .label = "gradient norm after clipping", .type = kReal, .recorded = true, .repeats = true},
    {.name = "tokens", .role = measurement, .label = "tokens of a step", .unit = "", .type = kInt, .recorded = true, .repeats = true},
    {.name = "images", .role = measurement, .label = "images of a step", .unit = "", .type = kInt, .recorded = true, .repeats = true},
    {.name = "comm_bytes", .role = measurement, .label = "bytes that a rank sends", .unit = "bytes", .type = kInt, .recorded = true},
    {.name = "comm_bytes_between_nodes", .role = measurement, .label = "bytes that a rank sends to other nodes", .unit = "bytes", .type = kInt, .recorded = true},
    {.name = "sync", .role = measurement, .label = "optimizer step", .type = kInt, .recorded = true},
    {.name = "loss_scale", .role = measurement, .label = "loss scale", .type = kReal, .recorded = true, .repeats = true},
    {.name = "skipped", .role = measurement, .label = "steps skipped so far", .type = kInt, .recorded = true, .repeats = true},
    {.name = "state_digest", .role = measurement, .label = "state digest", .aliases = "digest", .recorded = true, .repeats = true},
    {.name = "gpu_utilization", .role = measurement, .label = "time in which an accelerator worked", .unit = "%", .type = kReal, .recorded = true},
    {.name = "gpu_memory", .role = measurement, .label = "memory in use on the fullest accelerator", .unit = "bytes", .type = kInt, .recorded = true},
    {.name = "gpu_power", .role = measurement, .label = "power of the accelerators", .unit = "W", .type = kReal, .recorded = true},
    {.name = "host_cpus", .role = measurement, .label = "processors of the host that worked", .unit = "", .type = kReal, .recorded = true},
    {.name = "host_memory", .role = measurement, .label = "memory in use on the host", .unit = "bytes", .type = kInt, .recorded = true},
    {.name = "rank", .role = identity, .label = "rank", .type = kInt, .recorded = true},
    {.name = "line", .role = identity, .label = "line of the log", .type = kInt, .recorded = true},

    // ---- outcomes: of the whole run
    {.name = "final_train_loss", .role = measurement, .label = "final loss", .unit = "nats/token", .type = kReal, .repeats = true},
    {.name = "final_valid_loss", .role = measurement, .label = "final validation loss", .unit = "nats/token", .type = kReal, .repeats = true},
    {.name = "final_train_step", .role = measurement, .label = "step of the final loss", .type = kInt},
    {.name = "final_valid_step", .role = measurement, .label = "step of the final validation loss", .type = kInt},
    {.name = "final_valid_perplexity", .role = measurement, .label = "final validation perplexity", .type = kReal, .repeats = true},
    {.name = "final_valid_accuracy", .role = measurement, .label = "final validation accuracy", .type = kReal, .repeats = true},
    {.name = "final_valid_accuracy_top5", .role = measurement, .label = "final validation accuracy, best five", .type = kReal, .repeats = true},
    {.name = "test_loss", .role = measurement, .label = "test loss", .unit = "nats/token", .type = kReal, .repeats = true},
    {.name = "test_perplexity", .role = measurement, .label = "test perplexity", .type = kReal, .repeats = true},
    {.name = "test_accuracy", .role = measurement, .label = "test accuracy", .type = kReal, .repeats = true},
    {.name = "test_accuracy_top5", .role = measurement, .label = "test accuracy, best five", .type = kReal, .repeats = true},
    {.name = "total_steps", .role = measurement, .label = "steps of the training", .type = kInt, .main = true},
    {.name = "total_epochs", .role = measurement, .label = "epochs of the training", .type = kReal, .main = true},
    {.name = "epoch_time", .role = measurement, .label = "time of an epoch", .unit = "s", .type = kReal},
    {.name = "model_size_M", .role = measurement, .label = "size of the model", .unit = "million parameters", .type = kReal, .main = true},
    {.name = "samples_per_second", .role = measurement, .label = "samples per second", .unit = "1/s", .type = kReal},
    {.name = "class_accuracy.*", .role = measurement, .label = "accuracy of a class"},
    {.name = "train_loss_epoch.*", .role = measurement, .label = "mean loss of an epoch"},
    {.name = "throughput", .role = measurement, .label = "throughput", .aliases = "tokens_per_second", .unit = "1/s", .type = kReal},
    {.name = "mfu", .role = measurement, .label = "share of the measured matrix rate", .type = kReal},
    {.name = "wall_time", .role = measurement, .label = "wall time", .unit = "s", .type = kReal},
    {.name = "seconds", .role = measurement, .label = "seconds of the whole run", .unit = "s", .type = kReal},
    {.name = "compile_time", .role = measurement, .label = "time of compilation", .unit = "s", .type = kReal},
    {.name = "pass_effects", .role = measurement, .label = "effects of passes", .main = true},
    {.name = "state_bytes", .role = measurement, .label = "training state of a rank", .unit = "bytes", .type = kInt},
    {.name = "ideal_state_bytes", .role = measurement, .label = "training state of a rank, predicted", .unit = "bytes", .type = kInt},
    {.name = "ideal_comm_bytes", .role = measurement, .label = "bytes that a rank sends, predicted", .unit = "bytes", .type = kInt},
    {.name = "ideal_comm_bytes_between_nodes", .role = measurement, .label = "bytes that a rank sends to other nodes, predicted", .unit = "bytes", .type = kInt},
    {.name = "steps_done", .role = measurement, .label = "steps done", .type = kInt, .ending = true},
    {.name = "steps", .role = measurement, .label = "steps done, of those expected", .ending = true},
    {.name = "exit_code", .role = measurement, .label = "exit code", .type = kInt, .ending = true},
    {.name = "exit_state", .role = measurement, .label = "end of the log", .ending = true},
    {.name = "found.*", .role = measurement, .label = "outcome", .ending = true},
    {.name = "failure", .role = measurement, .label = "failure", .ending = true},
    {.name = "lacks", .role = measurement, .label = "what it lacks", .ending = true},
    {.name = "error*", .role = measurement, .label = "error", .ending = true},
    {.name = "summary.*", .role = measurement, .label = "the run's own summary"},
    {.name = "memory.*", .role = measurement, .label = "memory"},
    {.name = "use.*", .role = measurement, .label = "use of the machine"},
    {.name = "log_bytes_lost", .role = measurement, .label = "bytes that the log lacks", .unit = "bytes", .type = kInt},
    {.name = "wandb.summary.*", .role = measurement, .label = "W&B's summary"},
    {.name = "verdict*", .role = measurement, .label = "verdict"},
    {.name = "load_before", .role = measurement, .label = "load before the run", .type = kReal, .circumstance = true},
    {.name = "other_load", .role = measurement, .label = "processors used by others", .type = kReal, .circumstance = true},
    {.name = "cpu_mhz", .role = measurement, .label = "mean clock", .unit = "MHz", .type = kReal, .circumstance = true},
    {.name = "cpu_mhz_least", .role = measurement, .label = "least clock", .unit = "MHz", .type = kReal, .circumstance = true},
    {.name = "gpu_mhz", .role = measurement, .label = "mean clock of the accelerator", .unit = "MHz", .type = kReal, .circumstance = true},
    {.name = "gpu_mhz_least", .role = measurement, .label = "least clock of the accelerator", .unit = "MHz", .type = kReal, .circumstance = true},

    // ---- who, when, where, and how much was written down
    {.name = "run_id", .role = identity, .label = "run", .leads = true},
    {.name = "run_name", .role = identity, .label = "name", .key = "run.name", .column = "run_name", .leads = true, .place = true},
    {.name = "timestamp", .role = identity, .label = "begun", .leads = true},
    {.name = "sweep_name", .role = identity, .label = "sweep", .key = "sweep_name", .leads = true, .place = true},
    {.name = "status", .role = identity, .label = "status", .leads = true},
    {.name = "state", .role = identity, .label = "state"},
    {.name = "basis", .role = identity, .label = "evidence of the state"},
    {.name = "output_dir", .role = identity, .label = "registry", .key = "run.output_dir", .aliases = "registry", .place = true},
    {.name = "log_interval", .role = identity, .label = "steps between log lines", .key = "training.log_interval", .type = kInt},
    {.name = "digest_every", .role = identity, .label = "steps between state digests", .key = "run.digest_every", .type = kInt},
    {.name = "timing_warmup", .role = identity, .label = "warm-up of the timing", .key = "training.timing_warmup", .aliases = "warmup_step training.warmup_step", .unit = "steps", .type = kInt},
    {.name = "keep_last", .role = identity, .label = "checkpoints kept", .key = "training.keep_last", .type = kInt},
    {.name = "checkpoint_format", .role = identity, .label = "other form of checkpoints", .key = "training.checkpoint_format"},
    {.name = "save_final", .role = identity, .label = "final model saved", .key = "training.save_final"},
    {.name = "dump_logits", .role = identity, .label = "file of logits", .key = "training.dump_logits", .place = true},
    {.name = "save_pretrained", .role = identity, .label = "folder for the trained model", .key = "training.save_pretrained", .place = true},
    {.name = "save_gradients", .role = identity, .label = "gradients saved", .key = "training.save_gradients"},
    {.name = "save_gradient_norms", .role = identity, .label = "norms of micro-batches' gradients saved", .key = "training.save_gradient_norms"},
    {.name = "save_initial", .role = identity, .label = "initial weights written"},
    {.name = "dump_batches", .role = identity, .label = "batches written"},
    {.name = "verbose_logging", .role = identity, .label = "every step logged"},
    {.name = "debug_log", .role = identity, .label = "every step logged with its digest"},
    {.name = "timeout", .role = identity, .label = "timeout of a collective", .unit = "s", .type = kReal},
    {.name = "resume", .role = identity, .label = "resumed run"},
    {.name = "resume_command", .role = identity, .label = "command that resumed"},
    {.name = "command", .role = identity, .label = "command"},
    {.name = "extra_opts", .role = identity, .label = "further options", .aliases = "EXTRA_OPTS"},
    {.name = "launch", .role = identity, .label = "launcher"},
    {.name = "user", .role = identity, .label = "user"},
    {.name = "directory", .role = identity, .label = "folder", .per_run = true},
    {.name = "process", .role = identity, .label = "process", .per_run = true},
    {.name = "host_ip", .role = identity, .label = "address", .aliases = "HOST_IP"},
    {.name = "master_port", .role = identity, .label = "port"},
    {.name = "cpu_binding", .role = identity, .label = "binding to processors"},
    {.name = "cpu_governor", .role = identity, .label = "governor of the clock", .circumstance = true},
    {.name = "devices", .role = identity, .label = "devices"},
    {.name = "hardware", .role = identity, .label = "hardware"},
    {.name = "nodes", .role = identity, .label = "nodes of the job"},
    {.name = "slurm_*", .role = identity, .label = "Slurm", .per_run = true},
    {.name = "environment.*", .role = identity, .label = "environment"},
    {.name = "restarts", .role = identity, .label = "restarts", .type = kInt},
    {.name = "segments", .role = identity, .label = "steps at which it was resumed"},
    {.name = "tool", .role = identity, .label = "tool"},
    {.name = "zs_version", .role = identity, .label = "version of zs"},
    {.name = "script", .role = identity, .label = "script", .per_run = true},
    {.name = "experiment", .role = identity, .label = "experiment", .per_run = true},
    {.name = "condition", .role = identity, .label = "condition"},
    {.name = "max_slowdown", .role = identity, .label = "growth allowed", .type = kReal},
    {.name = "report", .role = identity, .label = "kind of report"},
    {.name = "title", .role = identity, .label = "title"},
    {.name = "max_restarts", .role = identity, .label = "restarts allowed", .type = kInt},
    {.name = "date", .role = identity, .label = "date of the run", .circumstance = true},
    {.name = "batch_start", .role = identity, .label = "start of the batch"},
    {.name = "batch_end", .role = identity, .label = "end of the batch"},
    {.name = "log", .role = identity, .label = "log"},
    {.name = "source*", .role = identity, .label = "log read"},
    {.name = "run", .role = identity, .label = "number of the run", .type = kInt},
    {.name = "order", .role = identity, .label = "place in the order of runs", .type = kInt},
    {.name = "commit_subject", .role = identity, .label = "subject of the commit"},
    {.name = "repo", .role = identity, .label = "repository"},
    {.name = "build_command", .role = identity, .label = "command that builds"},
    {.name = "run_command", .role = identity, .label = "command that runs"},
    {.name = "resumed_from", .role = identity, .label = "checkpoint that it went on from"},
    {.name = "hang", .role = identity, .label = "hang"},
    {.name = "resume_with", .role = identity, .label = "words that go on with a run"},
    {.name = "test_config", .role = identity, .label = "options of every run"},
    {.name = "runs_planned", .role = identity, .label = "runs planned", .type = kInt},
    {.name = "runs_per_revision", .role = identity, .label = "runs of each revision", .type = kInt},
    {.name = "note", .role = identity, .label = "note"},
    {.name = "use_tensorboard", .role = identity, .label = "TensorBoard", .key = "tracking.use_tensorboard"},
    {.name = "tensorboard_dir", .role = identity, .label = "folder of TensorBoard", .key = "tracking.tensorboard_dir"},
    {.name = "tensorboard.*", .role = identity, .label = "text of TensorBoard"},
    {.name = "profile", .role = identity, .label = "profile", .key = "tracking.profile"},
    {.name = "profile_steps", .role = identity, .label = "steps profiled", .key = "tracking.profile_steps"},
    {.name = "profile_dir", .role = identity, .label = "folder of the profile", .key = "tracking.profile_dir"},
    {.name = "probe_comparison", .role = identity, .label = "comparison of the probes"},
    {.name = "probe_verdict", .role = identity, .label = "verdict on the probes"},
    {.name = "probe", .role = identity, .label = "probe", .key = "tracking.probe"},
    {.name = "probe_every", .role = identity, .label = "steps between those probed", .key = "tracking.probe_every"},
    {.name = "probe_values", .role = identity, .label = "values of probed steps", .key = "tracking.probe_values"},
    {.name = "imported_from", .role = identity, .label = "table that it was imported from"},
    {.name = "imported_id", .role = identity, .label = "id in that table"},
    {.name = "use_wandb", .role = identity, .label = "W&B", .key = "tracking.use_wandb"},
    {.name = "wandb_run", .role = identity, .label = "W&B run"},
    {.name = "wandb_folder", .role = identity, .label = "folder of the W&B run"},
    {.name = "wandb_project", .role = identity, .label = "W&B project", .key = "tracking.wandb_project", .aliases = "run.wandb_project_name"},
    {.name = "wandb_entity", .role = identity, .label = "W&B entity", .key = "tracking.wandb_entity"},
    {.name = "wandb_run_name", .role = identity, .label = "W&B name", .key = "tracking.wandb_run_name"},
    {.name = "wandb_tags", .role = identity, .label = "W&B tags", .key = "tracking.wandb_tags"},
    {.name = "wandb_mode", .role = identity, .label = "W&B mode", .key = "tracking.wandb_mode"},
    {.name = "wandb_dir", .role = identity, .label = "folder of W&B", .key = "tracking.wandb_dir"},
    {.name = "wandb*", .role = identity, .label = "W&B"},
});
// clang-format on

/// Every fixed name of every row, and the rows whose name is a beginning.
struct Index {
  std::map<std::string_view, const Attribute*> names;
  std::vector<const Attribute*> beginnings;

  Index() {
    for (const Attribute& row : kTable) {
      if (row.name.ends_with('*')) {
        beginnings.push_back(&row);
        continue;
      }
      for (std::string_view name : {row.name, row.key, row.column}) {
        if (!name.empty()) names.emplace(name, &row);
      }
      for (std::string_view rest = row.aliases; !rest.empty();) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        names.emplace(rest.substr(0, end), &row);
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
  }
};

}  // namespace

std::span<const Attribute> table() { return kTable; }

std::string_view name(Role role) {
  static constexpr std::array<std::string_view, 5> kNames = {"decides", "arithmetic", "layout", "measurement",
                                                             "identity"};
  return kNames[static_cast<std::size_t>(role)];
}

const Attribute* find(std::string_view any_name) {
  static const Index index;
  const auto found = index.names.find(any_name);
  if (found != index.names.end()) return found->second;
  for (const Attribute* const row : index.beginnings) {
    if (any_name.starts_with(row->name.substr(0, row->name.size() - 1))) return row;
  }
  return nullptr;
}

Role role(std::string_view any_name) {
  const Attribute* const row = find(any_name);
  return row ? row->role : Role::decides;
}

std::string_view primary(std::string_view any_name) {
  const Attribute* const row = find(any_name);
  return row && !row->name.ends_with('*') ? row->name : any_name;
}

std::vector<std::string> in_order(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    const Attribute *const x = find(a), *const y = find(b);
    if (x != y) return x && y ? x < y : x != nullptr;
    return a < b;
  });
  return names;
}

std::string_view column(const Attribute& row) {
  return !row.column.empty() ? row.column : !row.key.empty() ? row.key : row.name;
}

std::string_view label(std::string_view any_name) {
  const Attribute* const row = find(any_name);
  return row && !row->name.ends_with('*') ? row->label : any_name;
}

}  // namespace zs::attribute
