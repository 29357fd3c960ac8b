// SPDX-License-Identifier: Apache-2.0
#include "train/probing.hpp"

#include <torch/version.h>

#include <algorithm>

#include "base/number.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::train {
namespace {

/// As zs_probe spells it; "" where gradients are computed in float32, in which they are recorded.
std::string computed_in(const zero::Settings& engine) {
  const at::ScalarType type = engine.autocast != at::kFloat ? engine.autocast : engine.dtype;
  return type == at::kBFloat16 ? "BF16" : type == at::kHalf ? "F16" : "";
}

}  // namespace

Probing::Probing(comm::Group& group, zero::Engine& engine, const Settings& settings, std::int64_t done)
    : engine_(engine), settings_(settings), folder_(settings.probe) {
  if (folder_.empty()) return;
  comm::together(group, "making of the probe in " + folder_, [&] {
    // Leaves out zs's revision: two revisions are expected to have the same bits.
    writer_ = std::make_unique<tracker::ProbeWriter>(folder_, group.rank(), group.size(),
                                                     std::string("LibTorch ") + TORCH_VERSION + " under zs", done,
                                                     computed_in(settings.engine));
  });
}

void Probing::batch(std::int64_t step, const unit::Batch& batch) {
  if (due(step)) targets_.push_back(batch.targets.ge(0).sum().item<std::int64_t>());
}

void Probing::gradients(std::int64_t step) {
  if (!due(step)) return;
  gradients_.clear();
  for (const zero::UnitState& state : engine_.states()) gradients_.push_back(state.gradient.on_host().clone());
}

void Probing::add(const char* kind, std::size_t unit, const at::Tensor& owned, comm::Slice slice, bool trained,
                  std::vector<tracker::ProbedPart>& parts) {
  const std::span<const float> values = device::floats(owned);
  for (const auto& parameters : unit::tensors(*engine_.units()[unit])) {
    if (parameters[0]->trained != trained) continue;
    tracker::ProbedPart part{kind + parameters[0]->name_in_files(), parameters[0]->shape_in_files()};
    std::vector<float> joined;  // of a tensor's rows
    for (const unit::Parameter* const parameter : parameters) {
      const auto [begin, end] = parameter->place().within(slice.begin, slice.end);
      if (begin == end) continue;
      if (part.values.empty()) part.begin = begin - parameter->offset + parameter->begin_in_files();
      part.values =
          values.subspan(static_cast<std::size_t>(begin - slice.begin), static_cast<std::size_t>(end - begin));
      if (parameters.size() > 1) joined.insert(joined.end(), part.values.begin(), part.values.end());
    }
    if (!joined.empty()) part.values = joined_.emplace_back(std::move(joined));
    parts.push_back(std::move(part));
  }
}

void Probing::after(std::int64_t step, const zero::StepResult& result) {
  if (!due(step)) return;
  // The same factor as the engine's before its update.
  const double factor = settings_.engine.max_grad_norm / (result.grad_norm + 1e-6);
  const bool clips = settings_.engine.max_grad_norm > 0 && !(factor >= 1);
  const auto scale = static_cast<float>(1.0 / (static_cast<double>(result.leaf_losses.size()) * result.loss_scale));
  std::vector<tracker::ProbedPart> parts;
  for (std::size_t unit = 0; unit < gradients_.size(); ++unit) {
    gradients_[unit].mul_(scale);
    if (clips) gradients_[unit].mul_(static_cast<float>(factor));
    add("grad/", unit, gradients_[unit], engine_.states()[unit].owned(), true, parts);
  }
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> frozen;
  for (zero::UnitState& state : engine_.states()) {
    parameters.push_back(state.masters());
    frozen.push_back(state.trained() < state.numel() ? state.parameters.frozen().to(at::kCPU) : at::Tensor());
  }
  for (std::size_t unit = 0; unit < parameters.size(); ++unit) {
    const zero::UnitState& state = engine_.states()[unit];
    add("param/", unit, parameters[unit], state.owned(), true, parts);
    if (!frozen[unit].defined()) continue;
    const bool divided = state.layout().divided.optimizer_state;
    const comm::Slice mine = divided ? state.layout().frozen : comm::Slice{state.trained(), state.numel()};
    add("param/", unit, frozen[unit].slice(0, mine.begin - state.trained(), mine.end - state.trained()), mine, false,
        parts);
  }
  // A rank's share of the mean over all ranks: the mean of its micro-batches if each rank has the same number.
  double loss = 0;
  for (int micro = 0; micro < settings_.micro_steps; ++micro) {
    if (engine_.leaf(micro) < 0) continue;
    for (int chunk = 0; chunk < engine_.plan().shape.chunks; ++chunk)
      loss += result.leaf_losses.at(static_cast<std::size_t>(engine_.leaf(micro) + chunk));
  }
  write(step, loss / (static_cast<double>(settings_.leaves()) / settings_.ranks), parts);
  gradients_.clear();
  targets_.clear();
  joined_.clear();
}

bool Probing::keeps_values(std::int64_t step) const {
  const std::string& asked = settings_.probe_values;
  return asked == "all" || ("," + asked + ",").find("," + to_text(step) + ",") != std::string::npos;
}

void Probing::write(std::int64_t step, double loss, const std::vector<tracker::ProbedPart>& parts) {
  std::string file;
  if (keeps_values(step)) {
    file = writer_->values_name(step);
    tensorfile::NamedTensors held;
    for (const tracker::ProbedPart& part : parts) {
      if (!part.values.empty())
        held.emplace_back(part.name,
                          tensorfile::borrow_f32({static_cast<std::int64_t>(part.values.size())}, part.values));
    }
    tensorfile::write_safetensors(folder_ + "/" + file, held);
  }
  writer_->step(step, loss, targets_, parts, file);
}

void Probing::finish(std::int64_t steps) {
  if (writer_) writer_->end(steps, settings_.probe_every);
}

}  // namespace zs::train
