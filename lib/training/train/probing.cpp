// SPDX-License-Identifier: Apache-2.0
#include "train/probing.hpp"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"
#include "setup/signals.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::train {
namespace {

using probefile::Held;
using tensorfile::Dtype;

/// As zs_probe spells it; "" where gradients are computed in float32, in which they are recorded.
std::string computed_in(const zero::Settings& engine) {
  const at::ScalarType type = engine.autocast != at::kFloat ? engine.autocast : engine.dtype;
  return type == at::kBFloat16 ? "BF16" : type == at::kHalf ? "F16" : "";
}

/// A tensor's bytes, of which element 0 is a unit's element `begin`.
auto bytes_of(const at::Tensor& tensor, std::int64_t begin) {
  return [=](const unit::Parameter&, std::int64_t element) {
    const auto size = static_cast<std::size_t>(tensor.element_size());
    const auto* const bytes = static_cast<const char*>(tensor.const_data_ptr());
    return std::string_view(bytes, tensor.nbytes()).substr(static_cast<std::size_t>(element - begin) * size);
  };
}

auto trained_at(const char* place) {
  return [=](const unit::Parameter& parameter) {
    return parameter.trained ? std::optional<std::string>(place) : std::nullopt;
  };
}

auto frozen_at(const char* place, bool packed) {
  return [=](const unit::Parameter& parameter) {
    const bool is_packed = parameter.packing != unit::Parameter::Packing::none;
    return parameter.trained || is_packed != packed ? std::nullopt : std::optional<std::string>(place);
  };
}

using Json = nlohmann::ordered_json;
using optimizer::Rule;

bool counts(Rule rule) { return rule == Rule::adamw || rule == Rule::adam || rule == Rule::adamw_8bit; }

const char* class_of(Rule rule) {
  static constexpr std::array kClasses = {"AdamW", "Adam", "SGD", "SGD", "Lion", "Muon", "AdamW8bit"};
  static_assert(kClasses.size() == static_cast<std::size_t>(Rule::adamw_8bit) + 1);
  return kClasses[static_cast<std::size_t>(rule)];
}

Json options(const optimizer::Settings& settings, Rule rule, bool decay, double learning_rate) {
  const bool beside_matrices = settings.kind == optimizer::Kind::muon && rule != Rule::muon;
  Json row = {{"lr", learning_rate * (beside_matrices ? settings.adamw_rate_ratio : 1)}};
  if (counts(rule) || rule == Rule::lion) row["betas"] = {settings.beta1, settings.beta2};
  if (counts(rule)) row["eps"] = settings.epsilon;
  row["weight_decay"] = decay ? settings.weight_decay : 0;
  if (rule == Rule::adamw || rule == Rule::adam) row["amsgrad"] = false, row["maximize"] = false;
  if (counts(rule) && !settings.correct_bias) row["correct_bias"] = false;
  if (rule == Rule::sgd || rule == Rule::sgd_momentum || rule == Rule::muon) {
    row["momentum"] = settings.momentum;
    row["nesterov"] = settings.nesterov;
    if (rule != Rule::muon) row["dampening"] = 0, row["maximize"] = false;
  }
  if (rule == Rule::muon) {
    row["ns_steps"] = settings.ns_steps;
    row["adjust_lr_fn"] = settings.match_rms ? "match_rms_adamw" : "original";
  }
  return row;
}

/// Calls `see` with each trained tensor's first parameter and rule.
void each(const zero::Engine& engine, const std::function<void(const unit::Parameter&, Rule)>& see) {
  for (std::size_t unit = 0; unit < engine.units().size(); ++unit) {
    for (const auto& parameters : unit::tensors(*engine.units()[unit])) {
      if (parameters[0]->trained) see(*parameters[0], engine.rule(unit, *parameters[0]));
    }
  }
}

/// The optimizer's parameter groups, with PyTorch's names: [{"lr", ..., "params", "optimizer"}].
Json groups(const zero::Engine& engine, double learning_rate) {
  const zero::Settings& settings = engine.settings();
  std::vector<std::pair<std::pair<Rule, bool>, Json>> found;  // by rule and decay, in the order of their first tensors
  each(engine, [&](const unit::Parameter& parameter, Rule rule) {
    const std::pair key(rule, settings.decay_all || parameter.decay);
    auto group = std::ranges::find(found, key, [](const auto& one) { return one.first; });
    if (group == found.end()) {
      found.emplace_back(key, options(settings.optimizer, rule, key.second, learning_rate));
      group = std::prev(found.end());
    }
    group->second["params"].push_back(parameter.name_in_files());
  });
  Json rows = Json::array();
  for (auto& [key, row] : found) {
    row["optimizer"] = class_of(key.first);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Parameters by the optimizer's own count of updates: {"5": [names]}; of rules that count.
Json counters(const zero::Engine& engine) {
  Json named = Json::object();
  each(engine, [&](const unit::Parameter& parameter, Rule rule) {
    if (counts(rule)) named[to_text(engine.updates())].push_back(parameter.name_in_files());
  });
  return named;
}

}  // namespace

Probing::Probing(comm::Group& group, zero::Engine& engine, const Settings& settings)
    : group_(group), engine_(engine), settings_(settings), folder_(settings.probe) {
  if (folder_.empty()) return;
  comm::together(group, "making of the probe in " + folder_, [&] {
    probefile::Training training{.rank = group.rank(),
                                 .ranks = group.size(),
                                 .layout = "zs ZeRO-" + std::to_string(engine.plan().shape.stage),
                                 .framework = "zs-train",
                                 // Leaves out zs's revision: two revisions are expected to have the same bits.
                                 .library = std::string("LibTorch ") + TORCH_VERSION};
    for (const auto& unit : engine.units()) {
      for (const auto& parameters : unit::tensors(*unit)) {
        if (!parameters[0]->trained) training.frozen.push_back(parameters[0]->name_in_files());
      }
    }
    std::ranges::sort(training.frozen);
    writer_ = std::make_unique<probefile::Writer>(folder_, training, engine.updates());
  });
  if (settings.probe_perturb) perturb(*settings.probe_perturb);
  std::string before, begun;
  for (std::size_t unit = 0; unit < engine_.units().size(); ++unit) {
    std::vector<Held> computing;
    if (engine_.updates() > 0) add(before, states(unit), false);
    add(begun, parameters(unit, computing), false);
  }
  writer_->start(engine_.updates(), engine_.updates(), before + (before.empty() || begun.empty() ? "" : ", ") + begun);
  written_ = engine_.updates();
  clear();
}

void Probing::perturb(std::uint64_t seed) {
  for (zero::UnitState& state : engine_.states()) {
    const at::Tensor whole = state.gather_parameters();
    const std::span<float> values = device::floats(whole);
    for (const auto& parameters : unit::tensors(state.unit())) {
      if (!parameters[0]->trained) continue;
      for (const unit::Parameter* const parameter : parameters) {
        probefile::perturb(
            values.subspan(static_cast<std::size_t>(parameter->offset), static_cast<std::size_t>(parameter->numel())),
            parameter->begin_in_files(), seed, parameter->name_in_files());
      }
    }
    state.set_parameters([&](std::int64_t begin, std::span<float> part) {
      std::ranges::copy(values.subspan(static_cast<std::size_t>(begin), part.size()), part.begin());
    });
  }
}

void Probing::batch(std::int64_t leaf, const unit::Batch& whole) {
  if (!due() || leaf % engine_.plan().shape.chunks_of_rank() != 0) return;
  std::vector<probefile::Samples> tensors;
  const at::Tensor inputs = whole.inputs.contiguous(), targets = whole.targets.contiguous();
  for (const at::Tensor& tensor : {inputs, targets})
    tensors.push_back({tensor.const_data_ptr(), tensor.scalar_type() == at::kFloat ? Dtype::f32 : Dtype::i64,
                       tensor.numel() / tensor.size(0)});
  batch_.push_back(probefile::sample_digests(whole.samples(), tensors));
  targets_.push_back(targets.ge(0).sum().item<std::int64_t>());
}

void Probing::leaf(int unit, int micro) {
  const auto u = static_cast<std::size_t>(unit);
  const zero::UnitState& state = engine_.states()[u];
  // Ranks that divide a unit's experts have several leaves there, of which only the sum is known.
  if (state.is_part()) return;
  const at::Tensor gradient = state.gradient.on_host();
  std::vector<Held> found = parts(u, {0, state.trained()}, trained_at(""), bytes_of(gradient, 0));
  for (Held& part : found) part.micro = micro, part.by = group_.rank();
  add(locals_, std::move(found), false);
}

void Probing::gradients() {
  if (!due()) return;
  gradients_.clear();
  for (const zero::UnitState& state : engine_.states()) gradients_.push_back(state.gradient.on_host().clone());
}

std::vector<Held> Probing::parts(std::size_t unit, comm::Slice slice, const PlaceOf& place, const Values& values,
                                 Dtype dtype) {
  const auto size = static_cast<std::int64_t>(tensorfile::size_of(dtype));
  std::vector<Held> found;
  for (const auto& parameters : unit::tensors(*engine_.units()[unit])) {
    const std::optional<std::string> at = place(*parameters[0]);
    if (!at) continue;
    Held part{.name = *at + parameters[0]->name_in_files(), .shape = parameters[0]->shape_in_files(), .dtype = dtype};
    std::string* const joined = parameters.size() > 1 ? &joined_.emplace_back() : nullptr;  // of a tensor's rows
    for (const unit::Parameter* const parameter : parameters) {
      const auto [begin, end] = parameter->place().within(slice.begin, slice.end);
      if (begin == end) continue;
      if (part.values.empty()) part.begin = begin - parameter->offset + parameter->begin_in_files();
      part.values = values(*parameter, begin).substr(0, static_cast<std::size_t>((end - begin) * size));
      if (joined) part.values = joined->append(part.values);
    }
    found.push_back(std::move(part));
  }
  return found;
}

std::vector<Held> Probing::parameters(std::size_t unit, std::vector<Held>& computing) {
  zero::UnitState& state = engine_.states()[unit];
  held_.push_back(state.masters());
  std::vector<Held> found =
      parts(unit, state.owned(), trained_at("param/"), bytes_of(held_.back(), state.owned().begin));
  if (engine_.optimizer(unit).has_master()) {
    std::optional<zero::ScopedLoad> loaded;
    if (state.parameters.shard()) loaded.emplace(*state.parameters.shard());
    held_.push_back(device::tensor(state.parameters.owned()).to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
    computing = parts(unit, state.owned(), trained_at("model/"), bytes_of(held_.back(), state.owned().begin),
                      held_.back().scalar_type() == at::kHalf ? Dtype::f16 : Dtype::bf16);
  }
  if (state.trained() == state.numel()) return found;
  const bool divided = state.layout().divided.optimizer_state;
  const std::int64_t dense = state.layout().dense(), end = state.numel();
  held_.push_back(state.parameters.frozen().to(at::kCPU));
  const auto add_frozen = [&](bool packed, comm::Slice whole, comm::Slice local) {
    std::ranges::move(
        parts(unit, divided ? local : whole, frozen_at("param/", packed), bytes_of(held_.back(), state.trained())),
        std::back_inserter(found));
  };
  add_frozen(false, {state.trained(), dense}, state.layout().frozen);
  // Ranks divide the bytes of matrices in 4 bits. Each rank records a share of the numbers.
  const comm::Slice share = comm::slice(end - dense, group_.rank(), group_.size());
  if (dense < end) add_frozen(true, {dense, end}, {dense + share.begin, dense + share.end});
  return found;
}

std::vector<Held> Probing::states(std::size_t unit) {
  const zero::UnitState& state = engine_.states()[unit];
  zero::Optimizer& optimizer = engine_.optimizer(unit);
  std::vector<Held> found;
  int slot = 0;
  for (const at::Tensor& values : optimizer.states()) {
    held_.push_back(values.to(at::kCPU).contiguous());
    const auto bytes = bytes_of(held_.back(), 0);
    const auto place = [&](const unit::Parameter& parameter) -> std::optional<std::string> {
      const auto names = optimizer::states(engine_.rule(unit, parameter));
      if (!parameter.trained || slot >= std::ssize(names)) return std::nullopt;
      return "state." + std::string(names[static_cast<std::size_t>(slot)]) + "/";
    };
    std::ranges::move(parts(unit, state.owned(), place,
                            [&](const unit::Parameter& parameter, std::int64_t element) {
                              return bytes(parameter, optimizer.slots().place(slot, element - state.owned().begin));
                            }),
                      std::back_inserter(found));
    ++slot;
  }
  return found;
}

void Probing::add(std::string& rows, std::vector<Held> parts, bool keeps) {
  if (parts.empty()) return;
  rows += (rows.empty() ? "" : ", ") + probefile::rows(parts, at::get_num_threads());
  if (keeps) std::ranges::move(parts, std::back_inserter(kept_));
}

void Probing::after(const zero::StepResult& result, double learning_rate) {
  const std::int64_t step = engine_.updates();
  if (result.skipped || gradients_.empty()) return clear();
  const bool keeps = keeps_values(step);
  const auto scale = static_cast<float>(1.0 / (static_cast<double>(result.leaf_losses.size()) * result.loss_scale));
  std::string rows, kept, moved, computing;
  for (std::size_t unit = 0; unit < gradients_.size(); ++unit) {
    at::Tensor gradient = gradients_[unit].mul_(scale);
    if (result.clip != 1) gradient.mul_(result.clip);
    const comm::Slice owned = engine_.states()[unit].owned();
    add(rows, parts(unit, owned, trained_at("grad/"), bytes_of(gradient, owned.begin)), keeps);
    add(kept, states(unit), keeps);
    std::vector<Held> copies;
    add(moved, parameters(unit, copies), keeps);
    add(computing, std::move(copies), keeps);
    if (!keeps) held_.clear(), joined_.clear();
  }
  for (const std::string* const more : {&kept, &moved, &computing})
    rows += (rows.empty() || more->empty() ? "" : ", ") + *more;
  probefile::StepOf record{.step = step, .computed = computed_in(settings_.engine)};
  double loss = 0;
  for (int micro = 0; micro < settings_.micro_steps; ++micro) {
    if (engine_.leaf(micro) < 0) continue;
    double of_chunks = 0;  // of all ranks that share the micro-batch
    const std::int64_t first = engine_.leaf(micro) / settings_.chunks * settings_.chunks;
    for (std::int64_t leaf = first; leaf < first + settings_.chunks; ++leaf)
      of_chunks += result.leaf_losses.at(static_cast<std::size_t>(leaf));
    record.losses.push_back(of_chunks / settings_.chunks);
    loss += record.losses.back();
  }
  // A rank's share of the mean over all ranks: the mean of its micro-batches if each rank has the same number.
  record.loss = loss / (static_cast<double>(settings_.micro_batches()) / settings_.groups());
  record.scalars = {{"norm", result.grad_norm}};
  if (settings_.engine.max_grad_norm > 0) record.scalars.emplace_back("clip", settings_.engine.max_grad_norm);
  if (settings_.engine.scales()) record.scalars.emplace_back("loss_scale", result.loss_scale);
  record.groups = groups(engine_, learning_rate);
  record.counters = counters(engine_);
  record.batch = std::move(batch_);
  record.targets = std::move(targets_);
  if (keeps) record.values = write_values(step);
  writer_->step(record, rows, locals_);
  written_ = step;
  clear();
}

void Probing::clear() {
  gradients_.clear(), locals_.clear(), batch_.clear(), targets_.clear();
  kept_.clear(), held_.clear(), joined_.clear();
}

bool Probing::keeps_values(std::int64_t step) const {
  const std::string& asked = settings_.probe_values;
  return asked == "all" || ("," + asked + ",").find("," + to_text(step) + ",") != std::string::npos;
}

std::string Probing::write_values(std::int64_t step) {
  const std::string file = writer_->values_name(step);
  tensorfile::NamedTensors named;
  for (const Held& part : kept_) {
    if (!part.values.empty())
      named.emplace_back(part.name,
                         tensorfile::make_tensor(part.dtype, {part.count()}, tensorfile::Storage::borrow(part.values)));
  }
  tensorfile::write_safetensors(folder_ + "/" + file, named);
  return file;
}

void Probing::finish(bool stopped, const std::string& diverged) {
  if (!writer_) return;
  int signal = 0;
  for (const int number : comm::exchange_values(group_, setup::stop_signal(), "exchange of signals"))
    signal = std::max(signal, number);
  if (written_ < engine_.updates()) {  // so that the end is compared, whatever the stride
    std::string rows, computing;
    for (std::size_t unit = 0; unit < engine_.units().size(); ++unit) {
      std::vector<Held> copies;
      add(rows, parameters(unit, copies), false);
      add(computing, std::move(copies), false);
      clear();
    }
    writer_->only(engine_.updates(), {"param", "model"}, rows + (computing.empty() ? "" : ", ") + computing);
  }
  ended_ = true;
  writer_->end(engine_.updates(), settings_.probe_every,
               !diverged.empty() ? "exception " + diverged
               : stopped         ? "signal " + std::to_string(signal)
                                 : "whole");
}

void Probing::failed(const std::string& error) noexcept {
  try {
    if (writer_ && !ended_) writer_->end(engine_.updates(), settings_.probe_every, "exception " + error);
  } catch (...) {  // the error itself is reported
  }
  ended_ = true;
}

}  // namespace zs::train
