// SPDX-License-Identifier: Apache-2.0
// What the parameters of a training begin with.
#pragma once
#include "comm/group.hpp"
#include "model/model.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// The weights in the folder of a model, the same on every rank; null where the model is a known name, or its folder
/// has no weights and init_type was asked for: every unit's own initial values. Throws zs::Error, located, where the
/// weights are missing, damaged, or not those of config.json. A head that the folder lacks, or that has another number
/// of labels than was asked for, begins anew, which the settings' notes say. Over them go the adapters of the settings'
/// folder, where there is one. The units outlive the result. COLLECTIVE.
unit::Beginning beginning_of(comm::Group& group, Settings& settings, const model::Model& model);

}  // namespace zs::setup
