// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "compare/elements.hpp"
#include "plan/stage.hpp"
#include "state/fact.hpp"
#include "state/outgoing.hpp"
#include "tensorfile/torch.hpp"

namespace zs::state {
namespace {

namespace fs = std::filesystem;
using tensorfile::Dict;
using tensorfile::Dtype;
using tensorfile::List;
using tensorfile::Object;
using tensorfile::Shape;
using tensorfile::StoragePtr;
using tensorfile::Tensor;
using tensorfile::Value;

constexpr const char* kRelease = "0.19.8";         // whose files these are like
constexpr std::int64_t kSubGroup = 1'000'000'000;  // elements of a rank: DeepSpeed's default of sub_group_size
constexpr std::int64_t kAlignment = 2;             // elements: nccl_start_alignment_factor
using Group = std::vector<const Parameter*>;

std::int64_t share(std::int64_t count, std::int64_t ranks) { return (count + ranks - 1) / ranks; }

Value size_of(const Shape& shape) {
  tensorfile::Tuple sizes;
  for (const std::int64_t size : shape) sizes.values.emplace_back(size);
  return Object{"torch.Size", {sizes}};
}

/// All of a tensor, as one that is read while it is written.
Tensor all_of(const Whole& whole, const std::string& name) {
  if (const std::string what = defect(whole); !what.empty()) throw Error(name, 0, what);
  return laid_out(whole.dtype, whole.shape, {{&whole, 0, whole.count()}});
}

class DeepSpeedWriter {
 public:
  DeepSpeedWriter(const State& state, const std::string& folder, const Form& form)
      : state_(state),
        folder_(folder),
        ranks_(form.ranks.value_or(state.ranks.value_or(1))),
        divided_(plan::divided_by(static_cast<int>(form.stage.value_or(state.stage.value_or(1))))),
        groups_(groups(state)) {
    if (groups_.empty()) throw Error(state.path, 0, "holds no optimizer's state: DeepSpeed could not go on from it");
    for (const Group& group : groups_) {
      for (const Parameter* const parameter : group) {
        if (parameter->name.starts_with('#'))
          throw Error(state.path, 0, "numbers the optimizer's states, and shapes do not tell whose each is");
        const Whole* const own = numbers(*parameter);
        if (!own) throw Error(parameter->name, 0, "has no weights");
        if (const std::string what = defect(*own); !what.empty()) throw Error(parameter->name, 0, what);
        if (own->dtype != Dtype::f32)
          throw Error(
              parameter->name, 0,
              "has no float32 numbers, which DeepSpeed's optimizers work on, but " + std::string(name_of(own->dtype)));
      }
    }
    others();
    std::string type = form.dtype;
    for (const Parameter& parameter : state.parameters) {
      if (type.empty() && parameter.weight && !parameter.buffer) type = name_of(parameter.weight->dtype);
    }
    // ZeRO-3 saves no 16-bit weights; the names of its files tell.
    const bool named =
        std::ranges::any_of(state.files, [](const File& file) { return file.name.starts_with("bf16_"); });
    if (named && form.dtype.empty()) type = "bf16";
    if (type == "bf16") prefix_ = "bf16_";
  }

  void partitioned() {
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      const std::string name = "zero_pp_rank_" + to_text(rank) + "_mp_rank_00_";
      if (divided_.parameters)
        write(name + "model_states.pt", model(rank));
      else if (rank == 0)
        write("mp_rank_00_model_states.pt", model(rank));
      const Dict inner = divided_.parameters ? by_parameter(rank) : by_group(rank);
      write(prefix_ + name + "optim_states.pt",
            Dict{{{"optimizer_state_dict", inner}, {"ds_config", Dict{}}, {"ds_version", release()}}});
    }
  }

  void universal() {
    divided_ = {};
    Dict root = model(0);
    if (!root_has(root, "universal_checkpoint_info"))
      root.items.push_back({"universal_checkpoint_info", Dict{{{"universal_checkpoint_version", 0.2}}}});
    write("mp_rank_00_model_states.pt", root);
    fs::create_directory(folder_ + "/zero");
    List param_groups;
    for (std::size_t number = 0; number < groups_.size(); ++number)
      param_groups.values.push_back(group_of(number, List{{static_cast<std::int64_t>(number)}}));
    write("zero/optimizer_state.pt", Dict{{{"loss_scaler", scaler()},
                                           {"dynamic_loss_scale", dynamic()},
                                           {"overflow", false},
                                           {"ds_version", release()},
                                           {"param_groups", param_groups}}});
    const auto one = [&](const Parameter& parameter, const std::string& kind, const Whole& whole) {
      write("zero/" + parameter.name + "/" + kind + ".pt",
            Dict{{{"cat_dim", 0}, {"param", widened(whole, parameter.name)}}});
    };
    for (const Parameter& parameter : state_.parameters) {
      const Whole* const own = numbers(state_, parameter);
      if (!own) continue;
      if (parameter.name.find('/') != std::string::npos || parameter.name == "." || parameter.name == "..")
        throw Error(parameter.name, 0, "is no name of a folder, which the universal form needs");
      fs::create_directory(folder_ + "/zero/" + parameter.name);
      one(parameter, "fp32", *own);
      for (const auto& [kind, whole] : parameter.moments) one(parameter, kind, whole);
      if (parameter.step && !parameter.moments.empty())
        write("zero/" + parameter.name + "/step.pt", scalar(static_cast<float>(*parameter.step)));
    }
  }

  /// Facts that the files could not take.
  const std::vector<std::string>& lost() const { return lost_; }

 private:
  const State& state_;
  std::string folder_, prefix_;
  std::int64_t ranks_;
  plan::Division divided_;
  std::vector<Group> groups_;
  std::vector<std::string> lost_, unknown_;
  std::map<std::string, std::string> tied_;  // other names of parameters

  /// What no group has: another name of a tensor, a buffer, a parameter that is not trained. Checkpoints of PyTorch do
  /// not say which: another name has the same bits.
  void others() {
    std::set<const Parameter*> trained;
    for (const Group& group : groups_) trained.insert(group.begin(), group.end());
    for (const Parameter& parameter : state_.parameters) {
      if (!is_own(state_, parameter)) tied_[parameter.name] = parameter.tied;
      if (!is_own(state_, parameter) || parameter.buffer || parameter.frozen || trained.contains(&parameter)) continue;
      const Whole* const held = numbers(parameter);
      if (!held) continue;
      for (const Parameter* const other : trained) {
        if (numbers(*other)->shape != held->shape || numbers(*other)->dtype != held->dtype) continue;
        const Tensor x = joined(*held, parameter.name), y = joined(*numbers(*other), other->name);
        if (compare::elements(x, y, {}).differing == 0) tied_[parameter.name] = other->name;
        x.storage->forget(), y.storage->forget();
      }
      if (!tied_.contains(parameter.name)) unknown_.push_back(parameter.name);
    }
    if (unknown_.empty() || !divided_.parameters) return;
    std::string names;
    for (const std::string& name : unknown_) names += (names.empty() ? "" : ", ") + name;
    throw Error(state_.path, 0,
                "does not say of " + names +
                    " whether it is a buffer or a parameter that is not trained, which ZeRO-3 needs: convert to "
                    "--stage 1 or 2, or universal");
  }

  const Parameter& own_of(const Parameter& parameter) const {
    const auto found = tied_.find(parameter.name);
    return found == tied_.end() ? parameter : *state_.find(found->second);
  }

  void write(const std::string& name, const Value& root) {
    tensorfile::write_torch(folder_ + "/" + name, root, tensorfile::Reals::plain);
  }

  std::string release() const { return state_.framework == "DeepSpeed" ? state_.version : kRelease; }

  std::optional<double> number(const std::string& fact) const {
    const auto value = value_of(state_, fact);
    return value ? number_of(&*value) : std::nullopt;
  }

  bool dynamic() const { return number("scaler.cur_iter").has_value(); }

  Value scaler() const {
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

  static Dict shapes_of(const Group& group) {
    Dict shapes;
    for (const Parameter* const parameter : group)
      shapes.items.push_back({parameter->name, size_of(numbers(*parameter)->shape)});
    return shapes;
  }

  /// The parameters of each group as ZeRO-3 cuts them: by what a rank has of them.
  std::vector<std::pair<std::size_t, Group>> sub_groups() const {
    std::vector<std::pair<std::size_t, Group>> all;
    for (std::size_t number = 0; number < groups_.size(); ++number) {
      std::int64_t held = kSubGroup;
      for (const Parameter* const parameter : groups_[number]) {
        if (held >= kSubGroup) all.emplace_back(number, Group{}), held = 0;
        all.back().second.push_back(parameter);
        held += share(numbers(*parameter)->count(), ranks_);
      }
    }
    return all;
  }

  Dict model(std::int64_t rank) {
    Dict module, shared, frozen_shapes, fragments;
    List buffers, param_shapes;
    std::map<std::string, StoragePtr> tied;
    for (const Parameter& parameter : state_.parameters) {
      const Parameter& own = own_of(parameter);
      const Whole* const held = own.weight ? &*own.weight : numbers(own);
      if (!held) continue;
      if (&own != &parameter) shared.items.push_back({parameter.name, own.name});
      if (parameter.buffer) buffers.values.emplace_back(parameter.name);
      const bool cut = divided_.parameters && !parameter.buffer;
      Tensor tensor = cut ? laid_out(held->dtype, {0}, {}) : all_of(*held, parameter.name);
      // One storage for all names of a tensor, as the model has it.
      if (!cut) tensor.storage = tied.try_emplace(own.name, tensor.storage).first->second;
      module.items.push_back({parameter.name, tensor});
      if (!parameter.frozen && std::ranges::find(unknown_, parameter.name) == unknown_.end()) continue;
      frozen_shapes.items.push_back({parameter.name, size_of(held->shape)});
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

  static bool root_has(const Dict& root, const std::string& key) { return Value(root).find(key) != nullptr; }

  /// The schedule, and what a training saved of its own.
  void facts(Dict& root) {
    lost_.clear();
    Dict schedule;
    for (const auto& [fact, text] : state_.facts) {
      const std::string kind(kind_of(fact)), rest = fact.substr(std::min(kind.size() + 1, fact.size()));
      if (kind == "scaler" || (kind != "schedule" && kind != "training")) continue;
      auto value = value_of(state_, fact);
      if (!value)
        lost_.push_back(fact);
      else if (kind == "schedule")
        nest(schedule, rest, std::move(*value));
      else if (!root_has(root, rest))
        nest(root, rest, std::move(*value));
    }
    if (schedule.items.empty()) return;
    for (tensorfile::Item& item : root.items) {
      if (*item.key.get<std::string>() == "lr_scheduler") item.value = schedule;
    }
  }

  /// Puts a value under words joined by points.
  static void nest(Dict& into, const std::string& words, Value value) {
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

  /// A group of the optimizer: its settings, and the numbers of its tensors.
  Dict group_of(std::size_t number, List ids) const {
    Dict group{settings(*groups_[number].front())};
    group.items.push_back({"params", std::move(ids)});
    return group;
  }

  Value stage() const {
    return Object{"deepspeed.runtime.zero.config.ZeroStageEnum",
                  {static_cast<std::int64_t>(divided_.parameters  ? 3
                                             : divided_.gradients ? 2
                                                                  : 1)}};
  }

  /// The kinds of moments that the parameters of a group have, and their step.
  static Dict states_of(const Group& group, const std::function<Tensor(const std::string& kind)>& moment) {
    Dict states;
    const Parameter& first = *group.front();
    if (first.step) states.items.push_back({"step", scalar(static_cast<float>(*first.step))});
    for (const auto& [kind, whole] : first.moments) {
      for (const Parameter* const parameter : group) {
        const auto found = parameter->moments.find(kind);
        if (found == parameter->moments.end())
          throw Error(parameter->name, 0, "has no " + kind + ", as " + first.name + " has");
        if (found->second.count() != numbers(*parameter)->count())
          throw Error(parameter->name, 0,
                      "its " + kind + " has another shape than its weights: which optimizer is it of?");
        if (parameter->step != first.step)
          throw Error(
              parameter->name, 0,
              "has taken another number of steps than " + first.name + " of its group, and ZeRO counts them by group");
      }
      states.items.push_back({kind, moment(kind)});
    }
    return states;
  }

  static const Whole& of(const Parameter& parameter, const std::string& kind) {
    return kind == "master" ? *numbers(parameter) : parameter.moments.at(kind);
  }

  /// ZeRO-1 and 2: the parameters of a group behind each other, of which each rank has an equal part.
  Dict by_group(std::int64_t rank) const {
    List masters, paddings, alignments, counts, mappings, param_groups;
    Dict states;
    for (std::size_t number = 0; number < groups_.size(); ++number) {
      const Group& group = groups_[number];
      std::int64_t all = 0;
      for (const Parameter* const parameter : group) all += numbers(*parameter)->count();
      const std::int64_t unit = kAlignment * ranks_, part = (all + unit - 1) / unit * unit / ranks_,
                         first = part * rank, own = std::clamp<std::int64_t>(all - first, 0, part);
      const auto runs = [&](const std::string& kind, Dict* mapping) {
        std::vector<Run> found;
        std::int64_t at = 0;
        for (const Parameter* const parameter : group) {
          const Whole& whole = of(*parameter, kind);
          const std::int64_t begin = std::max(at, first), end = std::min(at + whole.count(), first + own);
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
      masters.values.emplace_back(laid_out(Dtype::f32, {own}, runs("master", &mapping)));
      mappings.values.emplace_back(mapping);
      paddings.values.emplace_back(part - own);
      counts.values.emplace_back(ranks_);
      alignments.values.emplace_back(List{std::vector<Value>(group.size(), 0)});
      const auto index = static_cast<std::int64_t>(number);
      states.items.push_back({index, states_of(group, [&](const std::string& kind) {
                                return laid_out(of(*group.front(), kind).dtype, {part}, runs(kind, nullptr),
                                                part - own);
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

  /// ZeRO-3: each parameter by itself is cut into equal parts.
  Dict by_parameter(std::int64_t rank) const {
    List masters, param_groups;
    Dict states;
    std::vector<List> ids(groups_.size());
    for (const auto& [number, group] : sub_groups()) {
      const auto flat = [&](const std::string& kind) {
        std::vector<Tensor> parts;
        std::int64_t count = 0;
        for (const Parameter* const parameter : group) {
          const Whole& whole = of(*parameter, kind);
          const std::int64_t part = share(whole.count(), ranks_), begin = std::min(part * rank, whole.count()),
                             own = std::min(part, whole.count() - begin);
          parts.push_back(laid_out(whole.dtype, {part}, {{&whole, begin, own}}, part - own));
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

  static Tensor behind_each_other(Dtype dtype, std::int64_t count, std::vector<Tensor> parts) {
    const auto produce = [parts = std::move(parts)](const tensorfile::Sink& sink) {
      for (const Tensor& part : parts) part.storage->stream(sink);
    };
    return make_tensor(
        dtype, {count},
        tensorfile::Storage::produce(static_cast<std::uint64_t>(count) * tensorfile::size_of(dtype), produce));
  }
};

Converted written(const State& state, const std::string& to, const Form& form, bool universal) {
  NewFolder folder(to);
  Converted made;
  const std::string tag = "global_step" + to_text(state.step.value_or(0)) + (universal ? "_universal" : "");
  const std::string inner = folder.path() + "/" + tag;
  fs::create_directory(inner);
  DeepSpeedWriter writer(state, inner, form);
  universal ? writer.universal() : writer.partitioned();
  write_file(folder.path() + (universal ? "/latest_universal" : "/latest"), tag);
  require_same(state, folder.path(), to, made);
  for (const std::string& fact : writer.lost()) {
    if (kind_of(fact) == "training") made.left_out.push_back(fact);
  }
  folder.publish();
  return made;
}

}  // namespace

Converted convert_deepspeed(const State& state, const std::string& to, const Form& form) {
  return written(state, to, form, false);
}

Converted convert_universal(const State& state, const std::string& to, const Form& form) {
  return written(state, to, form, true);
}

}  // namespace zs::state
