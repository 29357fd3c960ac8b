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
    Alias{"global_step", "step", 6},
    Alias{"train/global_step", "step", 7},
    Alias{"trainer/global_step", "step", 6},
    Alias{"train/step", "step", 5},
    Alias{"iter", "step", 4},
    Alias{"iteration", "step", 4},
    Alias{"Step", "step", 4},
    Alias{"_step", "step", 1},  // W&B counts its own calls
    Alias{"train/epoch", "epoch", 4},
    Alias{"train_loss", "loss", 3},
    Alias{"train/loss", "loss", 5},
    Alias{"Loss", "loss", 4},
    Alias{"loss_metrics/global_avg_loss", "loss", 3},
    Alias{"valid/loss", "valid_loss", 5},
    Alias{"validation_loss", "valid_loss", 4},
    Alias{"val_loss", "valid_loss", 4},
    Alias{"val/loss", "valid_loss", 4},
    Alias{"eval_loss", "valid_loss", 4},
    Alias{"eval/loss", "valid_loss", 4},
    Alias{"lr", "learning_rate", 4},
    Alias{"train/learning_rate", "learning_rate", 5},
    Alias{"train/lr", "learning_rate", 3},
    Alias{"norm", "grad_norm", 2},
    Alias{"train/grad_norm", "grad_norm", 5},
    Alias{"train/iteration_time", "iteration_time", 3},
    Alias{"train/train_loss", "loss", 4},
    Alias{"validation/valid_loss", "valid_loss", 4},
    Alias{"train/memory_allocated", "alloc_mem", 3},
    Alias{"train/memory_peak", "peak_mem", 3},
    Alias{"system/cuda_memory_allocated", "alloc_mem", 3},
    Alias{"system/cuda_memory_peak", "peak_mem", 3},
};

}  // namespace

ColumnName column_named(std::string_view key) {
  const auto* const alias =
      std::find_if(kColumns.begin(), kColumns.end(), [&](const Alias& one) { return one.key == key; });
  return alias != kColumns.end() ? ColumnName{alias->name, alias->priority} : ColumnName{key, 9};
}

std::string attribute_named(std::string_view key) { return std::string(attribute::primary(key)); }

std::string_view attribute_value(std::string_view value) {
  if (value == "True") return "true";
  if (value == "False") return "false";
  return value;
}

}  // namespace zs::parse
