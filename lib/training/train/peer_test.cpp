// SPDX-License-Identifier: Apache-2.0
// Against what transformers computed: folders that tests/peers/model.py wrote, each a model as save_pretrained leaves
// it and, in expected.safetensors, a batch, its logits, the gradients, and the losses of five steps of AdamW. Small
// ones are in tests/data/peers; $ZS_PEERS names a folder of more. Those with an adapter_config.json have peft's
// adapters. ZS_SHOW_PEERS=1 build/test-train -tc='peer:*' prints how far each is apart.
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "checkpoint/weights.hpp"
#include "device/tensor.hpp"
#include "model/model.hpp"
#include "model/peft.hpp"
#include "tensorfile/state_dict.hpp"
#include "zero/engine.hpp"

namespace zs::train {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders() {
  std::vector<std::string> found;
  const char* const more = std::getenv("ZS_PEERS");
  for (const fs::path& root : {fs::path("tests/data/peers"), fs::path(more ? more : "")}) {
    if (root.empty()) continue;
    for (const auto& entry : fs::directory_iterator(root)) {
      if (fs::exists(entry.path() / "expected.safetensors")) found.push_back(entry.path().string());
    }
  }
  return found;
}

at::Tensor tensor_of(const tensorfile::StateDict& from, const std::string& name) {
  const tensorfile::Tensor& tensor = from.at(name);
  const at::Tensor values = at::empty(tensor.shape);
  tensorfile::read_f32(tensor, device::floats(values));
  return values;
}

/// The micro-batch of a folder; of several documents in a row where it has their positions.
unit::Batch batch_of(const tensorfile::StateDict& expected, bool images) {
  const at::Tensor inputs = tensor_of(expected, "inputs");
  unit::Batch batch{images ? inputs : inputs.to(at::kLong), tensor_of(expected, "targets").to(at::kLong)};
  if (!expected.find("positions")) return batch;
  const at::Tensor positions = tensor_of(expected, "positions").to(at::kLong).view({-1});
  std::vector<std::int64_t> begins;
  for (std::int64_t i = 0; i < positions.numel(); ++i) {
    if (positions[i].item<std::int64_t>() == 0) begins.push_back(i);
  }
  batch.documents = unit::documents(std::move(begins), inputs.size(0), inputs.size(1));
  CHECK(at::equal(batch.documents.positions.view({-1}), positions));
  batch.weight = 1.0F;
  return batch;
}

/// The largest difference, relative to the largest number there; of zeros (an expert without tokens), as it is.
double apart(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const double most = (x - y).abs().max().item<double>(), size = y.abs().max().item<double>();
  return size == 0 ? most : most / size;
}

/// How far what zs computes is from what transformers did: the most of each, as apart() says.
struct Row {
  double logits = 0, loss = 0, gradients = 0, steps = 0;
};
void show(const std::string& folder, bool fused, const Row& row) {
  if (!std::getenv("ZS_SHOW_PEERS")) return;
  std::printf("%-24s %-7s logits %.1e  loss %.1e  gradients %.1e  losses of AdamW's steps %.1e\n",
              fs::path(folder).filename().c_str(), fused ? "fused" : "plain", row.logits, row.loss, row.gradients,
              row.steps);
}

struct Computed {
  at::Tensor logits, loss;
  std::vector<at::Tensor> gradients;  // in the order of units and parameters
};

/// What the files of a folder say that parameters begin with.
struct Begun {
  Begun(const model::Model& model, const std::string& folder, bool adapters)
      : weights(model.units, folder, "", adapters ? checkpoint::Heads::may_lack : checkpoint::Heads::required) {
    if (adapters) adapter.emplace(model.units, folder);
  }
  void read(std::size_t unit, std::int64_t begin, std::span<float> values) const {
    weights.read(unit, begin, values);
    if (adapter) adapter->read(unit, begin, values);
  }
  checkpoint::Weights weights;
  std::optional<checkpoint::AdapterWeights> adapter;
};

/// Forward and backward as one graph; gradients of what is trained.
Computed computed(const model::Model& model, const Begun& weights, const unit::Batch& batch) {
  std::vector<std::vector<at::Tensor>> parameters;
  std::vector<at::Tensor> wanted;
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    const at::Tensor flat = at::empty({model.units[u]->numel()});
    weights.read(u, 0, device::floats(flat));
    parameters.emplace_back();
    for (const unit::Parameter& parameter : model.units[u]->parameters()) {
      parameters.back().push_back(unit::view(parameter, flat).clone().requires_grad_(parameter.trained));
      if (parameter.trained) wanted.push_back(parameters.back().back());
    }
  }
  Computed result;
  at::Tensor x, beside;
  const unit::ForwardContext context{.batch = batch, .logits = &result.logits, .beside = &beside};
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    const int tied_to = model.units[u]->tied_to();
    x = model.units[u]->forward(
        x, parameters[u], tied_to < 0 ? std::span<const at::Tensor>() : parameters[static_cast<std::size_t>(tied_to)],
        context);
  }
  result.logits = result.logits.detach();
  result.loss = x.detach();
  result.gradients = torch::autograd::grad({x}, wanted);
  return result;
}

/// Losses of as many steps of AdamW as are expected.
std::vector<double> trained_losses(const model::Model& model, const Begun& weights, const unit::Batch& batch,
                                   std::int64_t steps, double learning_rate) {
  std::vector<double> losses;
  comm::run_in_process(1, [&](comm::Group& group) {
    zero::Engine engine(
        group, model.units, {},
        {.begin = [&](std::size_t u, std::int64_t begin, std::span<float> values) { weights.read(u, begin, values); }});
    for (std::int64_t step = 1; step <= steps; ++step)
      losses.push_back(engine.step(step, learning_rate, [&](std::int64_t) { return batch; }).loss);
  });
  return losses;
}

TEST_CASE("peer: logits, loss, gradients and five steps of AdamW as transformers has them") {
  const std::vector<std::string> models = folders();
  REQUIRE(models.size() >= 12);
  for (const std::string& folder : models) {
    CAPTURE(folder);
    const tensorfile::StateDict expected = tensorfile::open_state_dict(folder + "/expected.safetensors");
    const bool images = model::takes_images(folder);
    const unit::Batch batch = batch_of(expected, images);
    const at::Tensor& inputs = batch.inputs;
    const at::Tensor losses = tensor_of(expected, "losses");
    const bool adapters = fs::exists(fs::path(folder) / model::kAdapterConfig);
    for (const bool fused : {false, true}) {
      CAPTURE(fused);
      const model::Model model = model::make({.name = folder,
                                              .seq_length = images ? 0 : inputs.size(1),
                                              .image_size = images ? inputs.size(2) : 0,
                                              .fused = fused,
                                              .adaptation = adapters ? model::read_peft(folder) : model::Adaptation()});
      const Begun weights(model, folder, adapters);
      const Computed got = computed(model, weights, batch);
      Row row{.logits = apart(got.logits, tensor_of(expected, "logits")),
              .loss = apart(got.loss.view({1}), losses.narrow(0, 0, 1))};
      CHECK(row.logits < 2e-6);
      // In float64, from which those of transformers' float32 are up to 3e-6 (30 seeds of yarn and of Qwen3).
      if (expected.find("logits64")) CHECK(apart(got.logits, tensor_of(expected, "logits64")) < 3e-6);
      CHECK(row.loss < 1e-6);
      double largest = 0;
      for (const at::Tensor& gradient : got.gradients) largest = std::max(largest, gradient.abs().max().item<double>());
      std::size_t next = 0;
      for (const auto& unit : model.units) {
        for (const unit::Parameter& parameter : unit->parameters()) {
          CAPTURE(parameter.name);
          if (!parameter.trained) continue;
          const at::Tensor ours = got.gradients[next++],
                           whole = tensor_of(expected, "gradient." + parameter.name_in_files());
          const at::Tensor theirs = parameter.stack.empty() ? whole : whole[parameter.row];
          // Softmax does not see what is the same for all keys: this gradient is 0, and what is computed is rounding.
          const bool none = parameter.name.ends_with("attention.key.bias");
          if (none) {
            CHECK(std::max(ours.abs().max().item<double>(), theirs.abs().max().item<double>()) < 1e-6 * largest);
            continue;
          }
          const double far = apart(ours, theirs);
          CHECK(far < 1e-5);
          row.gradients = std::max(row.gradients, far);
        }
      }
      const std::vector<double> ours =
          trained_losses(model, weights, batch, losses.size(0), tensor_of(expected, "learning_rate").item<double>());
      for (std::size_t step = 0; step < ours.size(); ++step) {
        CAPTURE(step);
        const double theirs = losses[static_cast<std::int64_t>(step)].item<double>();
        CHECK(std::fabs(ours[step] - theirs) <= 1e-6 * std::fabs(theirs));
        row.steps = std::max(row.steps, std::fabs(ours[step] / theirs - 1));
      }
      show(folder, fused, row);
      CHECK(ours.back() < ours.front());
    }
  }
}

}  // namespace
}  // namespace zs::train
