// SPDX-License-Identifier: Apache-2.0
#include "parse/names.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>

#include "attribute/table.hpp"
#include "base/words.hpp"

namespace zs::parse {
namespace {

/// Names that other programs have for a column, and how sure it is of them; a column's own name has 9.
struct Aliases {
  std::string_view column;
  int priority;
  std::string_view keys;
};

constexpr auto kAliases = std::to_array<Aliases>({
    {"unnamed", 2, ""},  // the index that pandas writes into a CSV file
    {"run_in_log", 2, "run"},
    {"line_in_log", 2, "line"},
    {"part_in_log", 2, "part"},
    {"ranks_in_log", 2, "ranks"},
    {"iteration_time", 2, "time, s/it, sec/step, dt, seconds"},
    {"iteration_time", 3, "batch_time, train/step_time, train/iter_time, perf/time_per_step, train/iteration_time"},
    {"iteration_time", 4,
     "timing/iteration_time, step_time, iter_time, time_per_step, time_per_iteration, "
     "sec_per_step, seconds_per_step, sec_per_iter, step_time_s, step_time_sec, "
     "timing_s/step, iteration-time, train_step_timing"},
    {"samples_per_second", 3, "samples/sec, samples/s, samples_per_sec, train_samples_per_second"},
    {"tokens_per_second", 2, "tps, wps"},
    {"tokens_per_second", 3, "tokens/sec, tokens/s, tok/s, tok/sec, tokens_per_sec, train/tokens_per_second"},
    {"iterations_per_second", 2, "it/s"},
    {"images_per_second", 2, "img/s, imgs/s, images/s"},
    {"step", 1, "_step"},  // W&B counts its own calls
    {"step", 2, "total_timesteps, timesteps_total"},
    {"step", 3, "steps, total/steps, time/total_timesteps, training_iteration, valid_num_updates"},
    {"step", 4, "iter, iteration, Step, current_steps"},
    {"step", 5, "train/step, num_updates"},
    {"step", 6, "global_step, trainer/global_step"},
    {"step", 7, "train/global_step"},
    {"epoch", 3, "training/epoch"},
    {"epoch", 4, "train/epoch"},
    {"loss", 1, "avg_loss, mean_loss, actor/pg_loss, loss/policy_avg"},
    {"loss", 2, "step_loss, gpt_loss, total_loss"},
    {"loss", 3,
     "train_loss, training_loss, train_loss_step, lm_loss, lm loss, reduced_train_loss, "
     "loss/train/total, loss_metrics/global_avg_loss"},
    {"loss", 4, "Loss, train/CrossEntropyLoss, train loss, train/train_loss"},
    {"loss", 5, "train/loss"},
    {"valid_loss", 3, "valid_loss_epoch, val_loss_epoch"},
    {"valid_loss", 4,
     "valid loss, validation_loss, val_loss, val/loss, eval_loss, eval/loss, "
     "validation/valid_loss"},
    {"valid_loss", 5, "valid/loss"},
    {"valid_accuracy", 4, "valid accuracy"},
    {"learning_rate", 3, "train/lr, actor/lr, lr-Adam, lr-AdamW, lr-SGD"},
    {"learning_rate", 4, "lr, learning rate"},
    {"learning_rate", 5, "train/learning_rate"},
    {"grad_norm", 2, "norm"},
    {"grad_norm", 3, "actor/grad_norm, gnorm, gradient_norm"},
    {"grad_norm", 4, "optim/total_grad_norm"},
    {"grad_norm", 5, "train/grad_norm"},
    {"alloc_mem", 3, "train/memory_allocated, system/cuda_memory_allocated, mem-allocated-bytes"},
    {"peak_mem", 3, "train/memory_peak, mem-max-allocated-bytes, system/cuda_memory_peak"},
    {"perplexity", 4, "Perplexity, train/Perplexity"},
});

}  // namespace

ColumnName column_named(std::string_view key) {
  static const auto kNames = [] {
    std::map<std::string, ColumnName, std::less<>> names;
    for (const auto& [column, priority, keys] : kAliases) {
      for (const std::string& one : split(keys, ", ")) names[one] = {column, priority};
    }
    return names;
  }();
  const auto known = kNames.find(key);
  return known == kNames.end() ? ColumnName{key, 9} : known->second;
}

std::string_view unit_of_key(std::string_view key) {
  if (key.ends_with(')')) key.remove_suffix(1);
  const std::size_t at = key.find_last_of("_ ([/.-");
  if (at == std::string_view::npos) return {};
  constexpr std::array kUnits = {"s",   "ms",  "us",  "ns", "min", "h",  "bytes", "kb",  "mb", "gb",
                                 "kib", "mib", "gib", "KB", "MB",  "GB", "KiB",   "MiB", "GiB"};
  const std::string_view last = key.substr(at + 1);
  return std::ranges::find(kUnits, last) == kUnits.end() ? std::string_view() : last;
}

std::string attribute_named(std::string_view key) { return std::string(attribute::primary(key)); }

std::string_view attribute_value(std::string_view value) {
  if (value == "True") return "true";
  if (value == "False") return "false";
  return value;
}

}  // namespace zs::parse
