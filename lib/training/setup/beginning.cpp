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
#include "device/tensor.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::setup {

unit::Beginning beginning_of(comm::Group& group, Settings& settings, const model::Model& model) {
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
    settings.notes.push_back(name + " begins anew: " + weights->path() + " has none of " + to_text(model.num_labels) +
                             " labels");
  return [weights, &units = model.units, seed = settings.engine.seed](std::size_t unit, std::int64_t begin,
                                                                      std::span<float> values) {
    if (std::ranges::any_of(units[unit]->parameters(), &unit::Parameter::head)) {
      // What the file lacks keeps the units' own.
      const at::Tensor own = at::empty({units[unit]->numel()});
      unit::initialise(*units[unit], seed, own);
      std::ranges::copy(device::floats(own).subspan(static_cast<std::size_t>(begin), values.size()), values.begin());
    }
    weights->read(unit, begin, values);
  };
}

}  // namespace zs::setup
