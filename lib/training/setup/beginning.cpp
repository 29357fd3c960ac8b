// SPDX-License-Identifier: Apache-2.0
#include "setup/beginning.hpp"

#include <algorithm>
#include <memory>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::setup {

namespace {

/// The weights in the folder of the model, or null.
unit::Beginning of_model(comm::Group& group, Settings& settings, const model::Model& model) {
  if (model.folder.empty()) return {};
  std::shared_ptr<const checkpoint::Weights> weights;
  comm::together(group, "reading of " + model.folder, [&] {
    if (settings.initializes && !tensorfile::has_state_dict(model.folder)) return;
    const auto heads = settings.model.num_labels > 0 ? checkpoint::Heads::may_differ : checkpoint::Heads::may_lack;
    weights = std::make_shared<checkpoint::Weights>(model.units, model.folder, ", unlike its config.json", heads);
  });
  comm::require_same(
      group, {{"config.json", sha256(model.config_json)}, {"weights", weights ? "there are" : "there are none"}},
      model.folder);
  if (!weights) return {};
  weights->check(group);
  for (const std::string& name : weights->lacking())
    settings.notes.push_back(name + " starts from initial values: " + weights->path() + " has none of " +
                             to_text(model.num_labels) + " labels");
  settings.engine.packed = [weights, &units = model.units](std::size_t unit, std::size_t parameter,
                                                           std::span<std::byte> bytes) {
    return weights->packed(unit, units[unit]->parameters()[parameter], bytes);
  };
  return [weights, &units = model.units, seed = settings.engine.seed](std::size_t unit, std::int64_t begin,
                                                                      std::span<float> values) {
    const auto may_lack = [](const unit::Parameter& parameter) { return parameter.head || parameter.added; };
    if (std::ranges::any_of(units[unit]->parameters(), may_lack)) unit::initialise(*units[unit], seed, begin, values);
    weights->read(unit, begin, values);
  };
}

}  // namespace

unit::Beginning beginning_of(comm::Group& group, Settings& settings, const model::Model& model) {
  unit::Beginning base = of_model(group, settings, model);
  if (settings.adapter.empty()) return base;
  std::shared_ptr<const checkpoint::AdapterWeights> adapters;
  comm::together(group, "reading of " + settings.adapter,
                 [&] { adapters = std::make_shared<checkpoint::AdapterWeights>(model.units, settings.adapter); });
  comm::require_same(group, {{"adapters", adapters->hash()}}, settings.adapter);
  return [base, adapters, &units = model.units, seed = settings.engine.seed](std::size_t unit, std::int64_t begin,
                                                                             std::span<float> values) {
    if (base)
      base(unit, begin, values);
    else
      unit::initialise(*units[unit], seed, begin, values);
    adapters->read(unit, begin, values);
  };
}

}  // namespace zs::setup
