// SPDX-License-Identifier: Apache-2.0
#include "train/beginning.hpp"

#include <memory>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::train {

unit::Beginning beginning_of(comm::Group& group, const Settings& settings, const model::Model& model) {
  if (model.folder.empty()) return {};
  std::shared_ptr<const checkpoint::Weights> weights;
  comm::together(group, "reading of " + model.folder, [&] {
    if (settings.begins_anew && !tensorfile::has_state_dict(model.folder)) return;
    weights = std::make_shared<checkpoint::Weights>(model.units, model.folder, ", unlike its config.json");
  });
  comm::require_same(
      group, {{"config.json", sha256(model.config_json)}, {"weights", weights ? "there are" : "there are none"}},
      model.folder);
  if (!weights) return {};
  weights->check(group);
  return
      [weights](std::size_t unit, std::int64_t begin, std::span<float> values) { weights->read(unit, begin, values); };
}

}  // namespace zs::train
