// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "checkpoints/deepspeed_writer.hpp"

namespace zs::checkpoints {

namespace {

using tensorfile::Dict;
using tensorfile::List;
using tensorfile::StoragePtr;
using tensorfile::Tensor;
using tensorfile::Value;

Dict shapes_of(const std::vector<const Parameter*>& group) {
  Dict shapes;
  for (const Parameter* const parameter : group)
    shapes.items.push_back({parameter->name, torch_size(numbers(*parameter)->shape)});
  return shapes;
}

/// Puts a value under words joined by points.
void nest(Dict& into, const std::string& words, Value value) {
  const std::size_t point = words.find('.');
  const std::string first = words.substr(0, point);
  if (point == std::string::npos) {
    into.items.push_back({first, std::move(value)});
    return;
  }
  for (tensorfile::Item& item : into.items) {
    const std::string* const key = item.key.get<std::string>();
    if (key && *key == first && item.value.get<Dict>())
      return nest(*item.value.get<Dict>(), words.substr(point + 1), std::move(value));
  }
  into.items.push_back({first, Dict{}});
  nest(*into.items.back().value.get<Dict>(), words.substr(point + 1), std::move(value));
}

}  // namespace

Dict DeepSpeedWriter::model(std::int64_t rank) {
  Dict module, shared, frozen_shapes, fragments;
  List buffers, param_shapes;
  std::map<std::string, StoragePtr> tied;
  for (const Parameter& parameter : state_.parameters) {
    const Parameter& owner = own_of(parameter);
    const Whole* const held = owner.weight ? &*owner.weight : numbers(owner);
    if (!held) continue;
    if (&owner != &parameter) shared.items.push_back({parameter.name, owner.name});
    if (parameter.buffer) buffers.values.emplace_back(parameter.name);
    const bool cut = divided_.parameters && !parameter.buffer;
    Tensor tensor = cut ? laid_out(held->dtype, {0}, {}) : streamed(*held, parameter.name);
    // One storage for all names of a tensor, as the model has it.
    if (!cut) tensor.storage = tied.try_emplace(owner.name, tensor.storage).first->second;
    module.items.push_back({parameter.name, tensor});
    if (!parameter.frozen && std::ranges::find(unknown_, parameter.name) == unknown_.end()) continue;
    frozen_shapes.items.push_back({parameter.name, torch_size(held->shape)});
    const std::int64_t part = share(held->count(), ranks_), begin = std::min(part * rank, held->count()),
                       count = std::min(part, held->count() - begin);
    fragments.items.push_back(
        {parameter.name, cut ? laid_out(held->dtype, {part}, {{held, begin, count}}, part - count) : tensor});
  }
  if (divided_.parameters) {
    for (const auto& [number, group] : sub_groups()) param_shapes.values.emplace_back(shapes_of(group));
  } else {
    for (const Group& group : groups_) param_shapes.values.emplace_back(shapes_of(group));
  }
  Dict root{{{"module", module},
             {"buffer_names", buffers},
             {"optimizer", Value()},
             {"param_shapes", param_shapes},
             {"frozen_param_shapes", frozen_shapes},
             {"shared_params", shared},
             {"frozen_param_fragments", fragments},
             {"lr_scheduler", Value()},
             {"data_sampler", Value()},
             {"random_ltd", Value()},
             {"skipped_steps", state_.skipped.value_or(0)},
             {"global_steps", state_.step.value_or(0)},
             {"dp_world_size", ranks_},
             {"mp_world_size", 1},
             {"checkpoint_parallel_dimensions", Dict{{{"pp_degree", 1}, {"tp_degree", 1}}}},
             {"ds_config", Dict{}},
             {"ds_version", release()}}};
  facts(root);
  return root;
}

void DeepSpeedWriter::facts(Dict& root) {
  Dict schedule;
  for (const auto& [fact, text] : state_.facts) {
    const std::string kind(kind_of(fact)), rest = fact.substr(std::min(kind.size() + 1, fact.size()));
    if (kind == "scaler" || (kind != "schedule" && kind != "training")) continue;
    auto value = value_of(state_, fact);
    if (!value) continue;
    if (kind == "schedule")
      nest(schedule, rest, std::move(*value));
    else if (!has_key(root, rest))
      nest(root, rest, std::move(*value));
  }
  if (schedule.items.empty()) return;
  for (tensorfile::Item& item : root.items) {
    if (*item.key.get<std::string>() == "lr_scheduler") item.value = schedule;
  }
}

}  // namespace zs::checkpoints
