// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/foreign.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/number.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoints/optimizer.hpp"
#include "checkpoints/read.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"

namespace zs::checkpoint {
namespace {

namespace fs = std::filesystem;
using checkpoints::Parameter;
using checkpoints::Whole;

bool has_moments(const checkpoints::State& state) {
  return std::ranges::any_of(state.parameters, [](const Parameter& one) { return !one.moments.empty(); });
}

/// The parameters of a checkpoint by the names of a model.
class Named {
 public:
  explicit Named(const checkpoints::State& state) : state_(state) {
    for (const Parameter& parameter : state.parameters) {
      std::string name = parameter.name;
      for (const std::string_view word : {"_orig_mod.", "_fsdp_wrapped_module.", "_forward_module."}) {
        for (std::size_t at = 0; (at = name.find(word)) != std::string::npos;) name.erase(at, word.size());
      }
      const Parameter* const tied = state.find(parameter.tied);
      by_name_[name] = tied ? tied : &parameter;
    }
  }

  const Parameter& at(const unit::Parameter& parameter) const {
    for (const std::string& name : {parameter.name_in_files(), parameter.other_name}) {
      if (name.empty()) continue;
      for (const char* const prefix : {"", "module.", "model.", "transformer."}) {
        if (const auto found = by_name_.find(prefix + name); found != by_name_.end()) return *found->second;
      }
    }
    throw Error(state_.path, 0, "has no " + parameter.name_in_files() + ": it is a checkpoint of another model");
  }

 private:
  const checkpoints::State& state_;
  std::map<std::string, const Parameter*> by_name_;
};

const Whole& numbers(const Parameter& parameter, const std::string& path) {
  if (parameter.master) return *parameter.master;
  if (!parameter.weight) throw Error(path, 0, "has no weights of " + parameter.name);
  return *parameter.weight;
}

void require_shape(const Whole& whole, const unit::Parameter& parameter, const std::string& what,
                   const std::string& path) {
  if (const auto shape = parameter.shape_in_files(); whole.shape != shape)
    throw Error(path, 0,
                what + " of " + parameter.name_in_files() + " has the shape " + tensorfile::to_text(whole.shape) +
                    ", the model " + tensorfile::to_text(shape) + " by " + parameter.keys);
}

/// The elements from `begin` on of a unit's flat buffer, as far as a parameter has them. A tensor in parts is joined
/// once.
class Filler {
 public:
  void fill(const Whole& whole, const unit::Parameter& parameter, std::int64_t begin, std::span<float> values) {
    const std::int64_t end = begin + static_cast<std::int64_t>(values.size());
    const unit::Range part = parameter.place().within(begin, end);
    if (part.size() == 0) return;
    if (&whole != joined_) tensor_ = checkpoints::joined(whole, parameter.name), joined_ = &whole;
    read_f32(tensor_, part.begin - parameter.offset + parameter.begin_in_files(),
             values.subspan(static_cast<std::size_t>(part.begin - begin), static_cast<std::size_t>(part.size())));
    tensor_.storage->forget();
  }

 private:
  const Whole* joined_ = nullptr;
  tensorfile::Tensor tensor_{};
};

/// Restores the optimizer's state of a unit from the moments of a checkpoint.
void restore(zero::Engine& engine, std::size_t unit, std::int64_t updates, const Named& named,
             const std::string& path) {
  const comm::Slice owned = engine.states()[unit].owned();
  const zero::Slots& slots = engine.optimizer(unit).slots();
  const std::string_view title = optimizer::description(engine.settings().optimizer.kind).title;
  std::vector<at::Tensor> into;
  for (int slot = 0; slot < optimizer::kMostStates; ++slot) into.push_back(at::zeros({slots.count(slot)}));
  Filler filler;
  for (const auto& parameters : unit::tensors(*engine.units()[unit])) {
    const unit::Parameter& first = *parameters.front();
    if (!first.trained) continue;
    const Parameter& theirs = named.at(first);
    int slot = 0;
    for (const std::string_view name : optimizer::states(engine.rule(unit, first))) {
      const std::string kind(name);
      const auto found = theirs.moments.find(kind);
      if (found == theirs.moments.end())
        throw Error(path, 0,
                    "has no " + kind + " of " + theirs.name + ", which " + std::string(title) + " goes on from");
      require_shape(found->second, first, kind, path);
      const std::span<float> here = device::floats(into[static_cast<std::size_t>(slot)]);
      for (const unit::Parameter* const parameter : parameters) {
        const unit::Range part = parameter->place().within(owned.begin, owned.end);
        if (part.size() > 0)
          filler.fill(found->second, *parameter, part.begin,
                      here.subspan(static_cast<std::size_t>(slots.place(slot, part.begin - owned.begin)),
                                   static_cast<std::size_t>(part.size())));
      }
      ++slot;
    }
  }
  engine.optimizer(unit).restore(into, updates);
}

std::string said(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const char* const key : {"lr", "betas", "eps", "weight_decay"}) {
    const auto found = settings.find(key);
    if (found != settings.end()) text += (text.empty() ? "" : ", ") + std::string(key) + " " + found->second;
  }
  return text;
}

}  // namespace

bool is_foreign(const std::string& path) {
  if (!fs::exists(path)) throw Error(path, 0, "there is no such checkpoint");
  if (has_state(path)) return false;
  return has_moments(checkpoints::read(path));
}

Adopted adopt(comm::Group& group, zero::Engine& engine, const std::string& path) {
  checkpoints::State held;
  std::string content;
  comm::together(group, "reading of " + path, [&] {
    held = checkpoints::read(path);
    if (!held.faults.empty())
      throw Error(held.faults.front() + "; zs goes on from a checkpoint that is whole, zs-checkpoint verify says more");
    for (const checkpoints::File& file : held.files) content += file.name + " " + std::to_string(file.bytes) + "\n";
  });
  comm::require_same(group, {{"its files", sha256(content)}}, path);
  Adopted adopted;
  comm::together(group, "loading of " + path, [&] {
    const Named named(held);
    std::optional<double> updates;
    Filler filler;
    for (std::size_t unit = 0; unit < engine.states().size(); ++unit) {
      const auto tensors = unit::tensors(*engine.units()[unit]);
      for (const auto& parameters : tensors) {
        const unit::Parameter& parameter = *parameters.front();
        const Parameter& theirs = named.at(parameter);
        require_shape(numbers(theirs, path), parameter, "the weight", path);
        if (!parameter.trained) continue;
        if (!theirs.step)
          throw Error(path, 0,
                      "does not tell which moments and how many updates are those of " + theirs.name +
                          ": --model_name " + path + " takes its weights alone");
        if (updates && *updates != *theirs.step)
          throw Error(path, 0,
                      theirs.name + " has had " + to_text(*theirs.step) + " updates, others " + to_text(*updates));
        updates = theirs.step;
        if (const std::string text = said(theirs.hyper);
            !text.empty() && std::ranges::find(adopted.notes, text) == adopted.notes.end())
          adopted.notes.push_back(text);
      }
      engine.states()[unit].set_parameters([&](std::int64_t begin, std::span<float> values) {
        for (const auto& parameters : tensors) {
          const Whole& theirs = numbers(named.at(*parameters.front()), path);
          for (const unit::Parameter* const parameter : parameters) filler.fill(theirs, *parameter, begin, values);
        }
      });
      restore(engine, unit, static_cast<std::int64_t>(*updates), named, path);
    }
    zero::LossScaler::State scaler;
    if (const auto scale = held.facts.find("scaler.cur_scale"); scale != held.facts.end())
      scaler.scale = parse_real(scale->second).value_or(1);
    engine.restore(static_cast<std::int64_t>(updates.value_or(0)), scaler);
    adopted.step = held.step.value_or(static_cast<std::int64_t>(updates.value_or(0)));
  });
  for (std::string& note : adopted.notes)
    note = "the checkpoint was trained with " + note + "; this run has its own settings and schedule";
  return adopted;
}

std::optional<checkpoints::Form> form_of(const std::string& name, const comm::Group& group, zero::Engine& engine) {
  if (name.empty()) return {};
  const std::string option = "--checkpoint_format " + name;
  const zero::Settings& settings = engine.settings();
  const optimizer::Kind kind = settings.optimizer.kind;
  const bool goes_on = name != "hf" && name != "safetensors";  // another program, from the optimizer's state
  if (goes_on && kind != optimizer::Kind::adamw && kind != optimizer::Kind::adam)
    throw Error(option + " has AdamW's state, and this training has that of " +
                std::string(optimizer::description(kind).title) + ": use hf or safetensors");
  std::vector<std::string> names;
  bool whole = true;
  for (const auto& unit : engine.units()) {
    for (const auto& parameters : unit::tensors(*unit)) {
      names.push_back(parameters[0]->name_in_files());
      whole = whole && parameters[0]->trained;
    }
  }
  if (!whole)
    throw Error(option +
                " is for trainings of all parameters, and some are frozen (--lora_rank, --freeze): leave it out, and "
                "convert a checkpoint with zs-checkpoint");
  if (name == "deepspeed" && !checkpoints::sort_as_modules(names))
    throw Error(option + " needs the order of the model's modules, which zs does not know of this one: use universal");
  checkpoints::Form form{name, group.size(), std::max(engine.plan().shape.stage, 1)};
  if (goes_on) form.dtype = settings.dtype == at::kBFloat16 ? "bf16" : settings.dtype == at::kHalf ? "f16" : "f32";
  return form;
}

}  // namespace zs::checkpoint
