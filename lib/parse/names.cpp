// SPDX-License-Identifier: Apache-2.0
#include "parse/names.hpp"

#include <algorithm>
#include <array>

namespace zs::parse {
namespace {

struct Alias {
  std::string_view key, name;
  int sureness = 2;
};

// A column's own name has sureness 9.
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
    Alias{"system/cuda_memory_allocated", "alloc_mem", 3},
    Alias{"system/cuda_memory_peak", "peak_mem", 3},
};

constexpr std::array kAttributes = {
    Alias{"MODEL", "model.name"},
    Alias{"model_name", "model.name"},
    Alias{"model_name_or_path", "model.name"},
    Alias{"model", "model.name"},
    Alias{"BACKEND", "backend"},
    Alias{"ZERO_STAGE", "zero_stage"},
    Alias{"NUM_PROCESSES", "world_size"},
    Alias{"num_processes", "world_size"},
    Alias{"np", "world_size"},
    Alias{"NUM_NODES", "num_nodes"},
    Alias{"NGPUS_PER_NODE", "gpus_per_node"},
    Alias{"GRADIENT_ACCUMULATION_STEPS", "gradient_accumulation_steps"},
    Alias{"acc", "gradient_accumulation_steps"},
    Alias{"ac", "activation_checkpointing"},
    Alias{"seq", "seq_length"},
    Alias{"EXTRA_OPTS", "extra_opts"},
    Alias{"HOST_IP", "host_ip"},
    Alias{"COMPILE", "compile"},
    Alias{"dataset_name", "dataset"},
};

template <std::size_t size>
const Alias* find(const std::array<Alias, size>& table, std::string_view key) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Alias& alias) { return alias.key == key; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

ColumnName column_named(std::string_view key) {
  const Alias* const alias = find(kColumns, key);
  return alias ? ColumnName{alias->name, alias->sureness} : ColumnName{key, 9};
}

std::string attribute_named(std::string_view key) {
  const Alias* const alias = find(kAttributes, key);
  return std::string(alias ? alias->name : key);
}

std::string_view attribute_value(std::string_view value) {
  if (value == "True") return "true";
  if (value == "False") return "false";
  return value;
}

}  // namespace zs::parse
