// SPDX-License-Identifier: Apache-2.0
#include "parse/names.hpp"

#include <algorithm>
#include <array>

#include "attribute/table.hpp"

namespace zs::parse {
namespace {

struct Alias {
  std::string_view key, name;
  int priority = 2;
};

// A column's own name has priority 9.
constexpr std::array kColumns = {
    Alias{"", "unnamed"},  // the index that pandas writes into a CSV file
    Alias{"run", "run_in_log"},
    Alias{"line", "line_in_log"},
    Alias{"part", "part_in_log"},
    Alias{"ranks", "ranks_in_log"},
    Alias{"time", "iteration_time"},
    Alias{"timing/iteration_time", "iteration_time", 4},
    Alias{"step_time", "iteration_time", 4},
    Alias{"iter_time", "iteration_time", 4},
    Alias{"batch_time", "iteration_time", 3},
    Alias{"time_per_step", "iteration_time", 4},
    Alias{"time_per_iteration", "iteration_time", 4},
    Alias{"sec_per_step", "iteration_time", 4},
    Alias{"seconds_per_step", "iteration_time", 4},
    Alias{"sec_per_iter", "iteration_time", 4},
    Alias{"step_time_s", "iteration_time", 4},
    Alias{"step_time_sec", "iteration_time", 4},
    Alias{"train/step_time", "iteration_time", 3},
    Alias{"train/iter_time", "iteration_time", 3},
    Alias{"perf/time_per_step", "iteration_time", 3},
    Alias{"timing_s/step", "iteration_time", 4},
    Alias{"s/it", "iteration_time", 2},
    Alias{"sec/step", "iteration_time", 2},
    Alias{"dt", "iteration_time", 2},
    Alias{"seconds", "iteration_time", 2},
    Alias{"iteration-time", "iteration_time", 4},
    Alias{"train_step_timing", "iteration_time", 4},
    Alias{"samples/sec", "samples_per_second", 3},
    Alias{"samples/s", "samples_per_second", 3},
    Alias{"samples_per_sec", "samples_per_second", 3},
    Alias{"train_samples_per_second", "samples_per_second", 3},
    Alias{"tokens/sec", "tokens_per_second", 3},
    Alias{"tokens/s", "tokens_per_second", 3},
    Alias{"tok/s", "tokens_per_second", 3},
    Alias{"tok/sec", "tokens_per_second", 3},
    Alias{"it/s", "iterations_per_second", 2},
    Alias{"img/s", "images_per_second", 2},
    Alias{"imgs/s", "images_per_second", 2},
    Alias{"images/s", "images_per_second", 2},
    Alias{"tps", "tokens_per_second", 2},
    Alias{"wps", "tokens_per_second", 2},
    Alias{"tokens_per_sec", "tokens_per_second", 3},
    Alias{"train/tokens_per_second", "tokens_per_second", 3},
    Alias{"global_step", "step", 6},
    Alias{"train/global_step", "step", 7},
    Alias{"trainer/global_step", "step", 6},
    Alias{"train/step", "step", 5},
    Alias{"iter", "step", 4},
    Alias{"iteration", "step", 4},
    Alias{"Step", "step", 4},
    Alias{"steps", "step", 3},
    Alias{"current_steps", "step", 4},
    Alias{"total/steps", "step", 3},
    Alias{"time/total_timesteps", "step", 3},
    Alias{"total_timesteps", "step", 2},
    Alias{"timesteps_total", "step", 2},
    Alias{"training_iteration", "step", 3},
    Alias{"num_updates", "step", 5},
    Alias{"valid_num_updates", "step", 3},
    Alias{"_step", "step", 1},  // W&B counts its own calls
    Alias{"train/epoch", "epoch", 4},
    Alias{"training/epoch", "epoch", 3},
    Alias{"train_loss", "loss", 3},
    Alias{"train/loss", "loss", 5},
    Alias{"Loss", "loss", 4},
    Alias{"training_loss", "loss", 3},
    Alias{"train_loss_step", "loss", 3},
    Alias{"lm_loss", "loss", 3},
    Alias{"lm loss", "loss", 3},
    Alias{"reduced_train_loss", "loss", 3},
    Alias{"step_loss", "loss", 2},
    Alias{"gpt_loss", "loss", 2},
    Alias{"loss/train/total", "loss", 3},
    Alias{"train/CrossEntropyLoss", "loss", 4},
    Alias{"total_loss", "loss", 2},
    Alias{"train loss", "loss", 4},
    Alias{"valid loss", "valid_loss", 4},
    Alias{"valid accuracy", "valid_accuracy", 4},
    Alias{"avg_loss", "loss", 1},
    Alias{"mean_loss", "loss", 1},
    Alias{"actor/pg_loss", "loss", 1},
    Alias{"loss/policy_avg", "loss", 1},
    Alias{"loss_metrics/global_avg_loss", "loss", 3},
    Alias{"valid/loss", "valid_loss", 5},
    Alias{"validation_loss", "valid_loss", 4},
    Alias{"val_loss", "valid_loss", 4},
    Alias{"val/loss", "valid_loss", 4},
    Alias{"eval_loss", "valid_loss", 4},
    Alias{"valid_loss_epoch", "valid_loss", 3},
    Alias{"val_loss_epoch", "valid_loss", 3},
    Alias{"eval/loss", "valid_loss", 4},
    Alias{"lr", "learning_rate", 4},
    Alias{"train/learning_rate", "learning_rate", 5},
    Alias{"train/lr", "learning_rate", 3},
    Alias{"actor/lr", "learning_rate", 3},
    Alias{"learning rate", "learning_rate", 4},
    Alias{"lr-Adam", "learning_rate", 3},
    Alias{"lr-AdamW", "learning_rate", 3},
    Alias{"lr-SGD", "learning_rate", 3},
    Alias{"norm", "grad_norm", 2},
    Alias{"train/grad_norm", "grad_norm", 5},
    Alias{"actor/grad_norm", "grad_norm", 3},
    Alias{"gnorm", "grad_norm", 3},
    Alias{"optim/total_grad_norm", "grad_norm", 4},
    Alias{"gradient_norm", "grad_norm", 3},
    Alias{"train/iteration_time", "iteration_time", 3},
    Alias{"train/train_loss", "loss", 4},
    Alias{"validation/valid_loss", "valid_loss", 4},
    Alias{"train/memory_allocated", "alloc_mem", 3},
    Alias{"train/memory_peak", "peak_mem", 3},
    Alias{"system/cuda_memory_allocated", "alloc_mem", 3},
    Alias{"mem-allocated-bytes", "alloc_mem", 3},
    Alias{"mem-max-allocated-bytes", "peak_mem", 3},
    Alias{"Perplexity", "perplexity", 4},
    Alias{"train/Perplexity", "perplexity", 4},
    Alias{"system/cuda_memory_peak", "peak_mem", 3},
};

}  // namespace

ColumnName column_named(std::string_view key) {
  const auto* const alias = std::ranges::find(kColumns, key, &Alias::key);
  return alias != kColumns.end() ? ColumnName{alias->name, alias->priority} : ColumnName{key, 9};
}

std::string attribute_named(std::string_view key) { return std::string(attribute::primary(key)); }

std::string_view attribute_value(std::string_view value) {
  if (value == "True") return "true";
  if (value == "False") return "false";
  return value;
}

}  // namespace zs::parse
