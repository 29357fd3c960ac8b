// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "base/error.hpp"
#include "checkpoints/deepspeed_writer.hpp"
#include "checkpoints/fact.hpp"

namespace zs::checkpoints {

namespace {

using tensorfile::Dict;
using tensorfile::Dtype;
using tensorfile::List;
using tensorfile::Object;
using tensorfile::Tensor;
using tensorfile::Value;
using Group = std::vector<const Parameter*>;

constexpr std::int64_t kSubGroup = 1'000'000'000;  // elements of a rank: DeepSpeed's default of sub_group_size
constexpr std::int64_t kAlignment = 2;             // elements: nccl_start_alignment_factor

const Whole& of(const Parameter& parameter, const std::string& kind) {
  return kind == "master" ? *numbers(parameter) : parameter.moments.at(kind);
}

Tensor behind_each_other(Dtype dtype, std::int64_t count, std::vector<Tensor> parts) {
  const auto produce = [parts = std::move(parts)](const tensorfile::Sink& sink) {
    for (const Tensor& part : parts) part.storage->stream(sink);
  };
  return make_tensor(
      dtype, {count},
      tensorfile::Storage::produce(static_cast<std::uint64_t>(count) * tensorfile::size_of(dtype), produce));
}

}  // namespace

std::optional<double> DeepSpeedWriter::number(const std::string& fact) const {
  const auto value = value_of(state_, fact);
  return value ? number_of(&*value) : std::nullopt;
}

bool DeepSpeedWriter::dynamic() const { return number("scaler.cur_iter").has_value(); }

Value DeepSpeedWriter::scaler() const {
  const std::string room = "deepspeed.runtime.fp16.loss_scaler.";
  const double scale = number("scaler.cur_scale").value_or(1);
  if (!dynamic()) return Object{room + "LossScaler", {}, {Dict{{{"cur_scale", scale}, {"dynamic", false}}}}};
  const auto whole = [&](const char* key, std::int64_t otherwise) {
    return Value(
        static_cast<std::int64_t>(number(std::string("scaler.") + key).value_or(static_cast<double>(otherwise))));
  };
  return Object{room + "DynamicLossScaler",
                {},
                {Dict{{{"cur_scale", scale},
                       {"cur_iter", whole("cur_iter", 0)},
                       {"last_overflow_iter", whole("last_overflow_iter", -1)},
                       {"scale_factor", number("scaler.scale_factor").value_or(2)},
                       {"scale_window", whole("scale_window", 1000)},
                       {"min_scale", 1},
                       {"delayed_shift", 1},
                       {"cur_hysteresis", whole("cur_hysteresis", 1)},
                       {"consecutive_hysteresis", false},
                       {"raise_error_at_min_scale", true},
                       {"dtype", Object{"torch.float16"}},
                       {"dynamic", true}}}}};
}

Value DeepSpeedWriter::stage() const {
  return Object{"deepspeed.runtime.zero.config.ZeroStageEnum",
                {static_cast<std::int64_t>(divided_.parameters  ? 3
                                           : divided_.gradients ? 2
                                                                : 1)}};
}

std::vector<std::pair<std::size_t, DeepSpeedWriter::Group>> DeepSpeedWriter::sub_groups() const {
  std::vector<std::pair<std::size_t, Group>> found;
  for (std::size_t number = 0; number < groups_.size(); ++number) {
    std::int64_t held = kSubGroup;
    for (const Parameter* const parameter : groups_[number]) {
      if (held >= kSubGroup) found.emplace_back(number, Group{}), held = 0;
      found.back().second.push_back(parameter);
      held += share(numbers(*parameter)->count(), ranks_);
    }
  }
  return found;
}

Dict DeepSpeedWriter::states_of(const Group& group,
                                const std::function<Tensor(const std::string& kind)>& moment) const {
  Dict states;
  const Parameter& first = *group.front();
  if (first.step) states.items.push_back({"step", scalar(static_cast<float>(*first.step))});
  for (const auto& [kind, whole] : first.moments) {
    const bool single = single_.contains(kind);
    for (const Parameter* const parameter : group) {
      const auto found = parameter->moments.find(kind);
      if (found == parameter->moments.end())
        throw Error(parameter->name, 0, "has no " + kind + ", as " + first.name + " has");
      if (single && found->second.shape.empty() && !same_bits(joined(found->second, kind), joined(whole, kind)))
        throw Error(parameter->name, 0,
                    "has another " + kind + " than " + first.name + " of its group, and ZeRO has one for a group");
      if (single ? !found->second.shape.empty() : found->second.count() != numbers(*parameter)->count())
        throw Error(parameter->name, 0,
                    "its " + kind + " has another shape than its weights: which optimizer is it of?");
      if (parameter->step != first.step)
        throw Error(
            parameter->name, 0,
            "has taken another number of steps than " + first.name + " of its group, and ZeRO counts them by group");
    }
    states.items.push_back({kind, single ? joined(whole, kind) : moment(kind)});
  }
  for (const auto& [kind, value] : first.values) {
    const auto same = [&, &kind = kind, &value = value](const Parameter* one) {
      return one->values.contains(kind) && text_of(one->values.at(kind)) == text_of(value);
    };
    if (!has_object(value) && std::ranges::all_of(group, same)) states.items.push_back({kind, value});
  }
  return states;
}

Dict DeepSpeedWriter::group_of(std::size_t number, List ids) const {
  Dict group{settings(*groups_[number].front())};
  group.items.push_back({"params", std::move(ids)});
  return group;
}

Dict DeepSpeedWriter::by_group(std::int64_t rank) const {
  List masters, paddings, alignments, counts, mappings, param_groups;
  Dict states;
  for (std::size_t number = 0; number < groups_.size(); ++number) {
    const Group& group = groups_[number];
    std::int64_t elements = 0;
    for (const Parameter* const parameter : group) elements += numbers(*parameter)->count();
    const std::int64_t unit = kAlignment * ranks_, part = (elements + unit - 1) / unit * unit / ranks_,
                       first = part * rank, held = std::clamp<std::int64_t>(elements - first, 0, part);
    const auto runs = [&](const std::string& kind, Dict* mapping) {
      std::vector<Run> found;
      std::int64_t at = 0;
      for (const Parameter* const parameter : group) {
        const Whole& whole = of(*parameter, kind);
        const std::int64_t begin = std::max(at, first), end = std::min(at + whole.count(), first + held);
        if (begin < end) {
          found.push_back({&whole, begin - at, end - begin});
          if (mapping)
            mapping->items.push_back(
                {parameter->name, Object{"deepspeed.utils.tensor_fragment.fragment_address",
                                         {},
                                         {Dict{{{"numel", end - begin}, {"start", begin - first}}}}}});
        }
        at += whole.count();
      }
      return found;
    };
    Dict mapping;
    masters.values.emplace_back(laid_out(Dtype::f32, {held}, runs("master", &mapping)));
    mappings.values.emplace_back(mapping);
    paddings.values.emplace_back(part - held);
    counts.values.emplace_back(ranks_);
    alignments.values.emplace_back(List{std::vector<Value>(group.size(), 0)});
    const auto index = static_cast<std::int64_t>(number);
    states.items.push_back({index, states_of(group, [&](const std::string& kind) {
                              return laid_out(of(*group.front(), kind).dtype, {part}, runs(kind, nullptr), part - held);
                            })});
    param_groups.values.emplace_back(group_of(number, List{{index}}));
  }
  return {{{"loss_scaler", scaler()},
           {"dynamic_loss_scale", dynamic()},
           {"overflow", false},
           {"base_optimizer_state", Dict{{{"state", states}, {"param_groups", param_groups}}}},
           {"single_partition_of_fp32_groups", masters},
           {"zero_stage", stage()},
           {"group_paddings", paddings},
           {"param_alignment_paddings", alignments},
           {"partition_count", counts},
           {"ds_version", release()},
           {"param_slice_mappings", mappings}}};
}

Dict DeepSpeedWriter::by_parameter(std::int64_t rank) const {
  List masters, param_groups;
  Dict states;
  std::vector<List> ids(groups_.size());
  for (const auto& [number, group] : sub_groups()) {
    const auto flat = [&, &group = group](const std::string& kind) {
      std::vector<Tensor> parts;
      std::int64_t count = 0;
      for (const Parameter* const parameter : group) {
        const Whole& whole = of(*parameter, kind);
        const std::int64_t part = share(whole.count(), ranks_), begin = std::min(part * rank, whole.count()),
                           held = std::min(part, whole.count() - begin);
        parts.push_back(laid_out(whole.dtype, {part}, {{&whole, begin, held}}, part - held));
        count += part;
      }
      return behind_each_other(Dtype::f32, count, std::move(parts));
    };
    const auto index = static_cast<std::int64_t>(masters.values.size());
    masters.values.emplace_back(flat("master"));
    states.items.push_back({index, states_of(group, flat)});
    ids[number].values.emplace_back(index);
  }
  for (std::size_t number = 0; number < groups_.size(); ++number)
    param_groups.values.emplace_back(group_of(number, ids[number]));
  return {{{"zero_stage", stage()},
           {"loss_scaler", scaler()},
           {"dynamic_loss_scale", dynamic()},
           {"overflow", false},
           {"partition_count", ranks_},
           {"optimizer_state_dict", Dict{{{"state", states}, {"param_groups", param_groups}}}},
           {"fp32_flat_groups", masters}}};
}

}  // namespace zs::checkpoints
