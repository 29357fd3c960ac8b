// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoints/deepspeed_writer.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {

namespace fs = std::filesystem;
using tensorfile::Dict;
using tensorfile::Dtype;
using tensorfile::List;
using tensorfile::Tensor;
using tensorfile::Value;

constexpr const char* kRelease = "0.19.8";  // whose files these are like

DeepSpeedWriter::DeepSpeedWriter(const State& state, const std::string& folder, const Form& form)
    : state_(state),
      folder_(folder),
      ranks_(form.ranks.value_or(state.ranks.value_or(1))),
      divided_(stage::divided_by(static_cast<int>(form.stage.value_or(state.stage.value_or(1))))),
      groups_(groups(state)) {
  if (groups_.empty()) throw Error(state.path, 0, "holds no optimizer's state: DeepSpeed could not go on from it");
  for (const Group& group : groups_) {
    for (const Parameter* const parameter : group) {
      const Whole* const whole = numbers(*parameter);
      if (!whole) throw Error(parameter->name, 0, "has no weights");
      if (const std::string what = defect(*whole); !what.empty()) throw Error(parameter->name, 0, what);
      if (whole->dtype != Dtype::f32)
        throw Error(
            parameter->name, 0,
            "has no float32 numbers, which DeepSpeed's optimizers work on, but " + std::string(name_of(whole->dtype)));
      for (const auto& [kind, moment] : parameter->moments) {
        if (kind.find('/') != std::string::npos)
          throw Error(parameter->name, 0,
                      "its state is in a dict or a list (" + kind + "), and ZeRO cuts tensors alone: convert --to dcp");
        if (moment.shape.empty() && !whole->shape.empty()) single_.insert(kind);
      }
    }
  }
  others();
  std::string type = form.dtype;
  for (const Parameter& parameter : state.parameters) {
    if (type.empty() && parameter.weight && !parameter.buffer) type = name_of(parameter.weight->dtype);
  }
  // ZeRO-3 saves no 16-bit weights, and its files have other names.
  const bool named = std::ranges::any_of(state.files, [](const File& file) { return file.name.starts_with("bf16_"); });
  if (named && form.dtype.empty()) type = "bf16";
  if (type == "bf16") prefix_ = "bf16_";
}

void DeepSpeedWriter::partitioned() {
  if (!state_.ordered)
    throw Error(
        state_.path, 0,
        "does not say the order of the model's modules, by which DeepSpeed takes its flat tensors apart, and zs "
        "does not know this model: convert --to universal, which has names");
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

void DeepSpeedWriter::universal() {
  divided_ = {};
  Dict root = model(0);
  if (!has_key(root, "universal_checkpoint_info"))
    root.items.push_back({"universal_checkpoint_info", Dict{{{"universal_checkpoint_version", 0.2}}}});
  write("mp_rank_00_model_states.pt", root);
  // Under ZeRO-3 each rank of any number reads this one.
  const std::string of_stage_3 = folder_ + "/zero_pp_rank_0_mp_rank_00_model_states.pt";
  std::error_code failure;
  fs::create_hard_link(folder_ + "/mp_rank_00_model_states.pt", of_stage_3, failure);
  if (failure) fs::copy_file(folder_ + "/mp_rank_00_model_states.pt", of_stage_3);
  fs::create_directory(folder_ + "/zero");
  List param_groups;
  for (std::size_t number = 0; number < groups_.size(); ++number)
    param_groups.values.push_back(group_of(number, List{{static_cast<std::int64_t>(number)}}));
  Dict step;
  if (const Parameter& first = *groups_.front().front(); first.step)
    step.items.push_back({"step", scalar(static_cast<float>(*first.step))});
  write("zero/optimizer_state.pt", Dict{{{"loss_scaler", scaler()},
                                         {"dynamic_loss_scale", dynamic()},
                                         {"overflow", false},
                                         {"ds_version", release()},
                                         {"optimizer_state_dict",  // of ZeRO-3
                                          Dict{{{"state", Dict{{{0, step}}}}, {"param_groups", param_groups}}}},
                                         {"param_groups", param_groups}}});
  const auto one = [&](const Parameter& parameter, const std::string& kind, const Whole& whole) {
    write("zero/" + parameter.name + "/" + kind + ".pt",
          Dict{{{"cat_dim", 0}, {"param", widened(whole, parameter.name)}}});
  };
  for (const Parameter& parameter : state_.parameters) {
    const Whole* const whole = numbers(state_, parameter);
    if (!whole) continue;
    if (parameter.name.find('/') != std::string::npos || parameter.name == "." || parameter.name == "..")
      throw Error(parameter.name, 0, "is no name of a folder, which the universal form needs");
    fs::create_directory(folder_ + "/zero/" + parameter.name);
    one(parameter, "fp32", *whole);
    // DeepSpeed cuts each file of a parameter's folder as it cuts the parameter.
    for (const auto& [kind, moment] : parameter.moments) {
      if (!single_.contains(kind)) one(parameter, kind, moment);
    }
    if (parameter.step && !parameter.moments.empty())
      write("zero/" + parameter.name + "/step.pt", scalar(static_cast<float>(*parameter.step)));
  }
}

void DeepSpeedWriter::others() {
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
      if (same_bits(x, y)) tied_[parameter.name] = other->name;
      x.storage->forget(), y.storage->forget();
    }
    if (!tied_.contains(parameter.name)) unknown_.push_back(parameter.name);
  }
  if (unknown_.empty() || !divided_.parameters) return;
  throw Error(state_.path, 0,
              "does not say of " + zs::joined(unknown_) +
                  " whether it is a buffer or a parameter that is not trained, which ZeRO-3 needs: convert to "
                  "--stage 1 or 2, or universal");
}

const Parameter& DeepSpeedWriter::own_of(const Parameter& parameter) const {
  const auto found = tied_.find(parameter.name);
  return found == tied_.end() ? parameter : *state_.find(found->second);
}

void DeepSpeedWriter::write(const std::string& name, const Value& root) {
  tensorfile::write_torch(folder_ + "/" + name, root, tensorfile::Reals::plain);
}

std::string DeepSpeedWriter::release() const { return state_.framework == "DeepSpeed" ? state_.version : kRelease; }

void write_deepspeed(const State& state, const std::string& folder, const Form& form, bool universal) {
  const std::string tag = "global_step" + to_text(state.step.value_or(0)) + (universal ? "_universal" : "");
  fs::create_directory(folder + "/" + tag);
  DeepSpeedWriter writer(state, folder + "/" + tag, form);
  universal ? writer.universal() : writer.partitioned();
  write_file(folder + (universal ? "/latest_universal" : "/latest"), tag);
}

}  // namespace zs::checkpoints
