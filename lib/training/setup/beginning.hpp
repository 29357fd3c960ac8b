// SPDX-License-Identifier: Apache-2.0
// The initial parameters of a training.
#pragma once
#include "comm/group.hpp"
#include "model/model.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// The weights in a model's folder, the same on every rank; null (the units' own initial values) if the model is a
/// known name, or if its folder has no weights and init_type was given. Adds the adapters of the settings' folder, if
/// there is one. Throws zs::Error, located, if the weights are missing, damaged, or do not match config.json. A head
/// that the folder lacks, or that has another number of labels, is initialized, and the settings' notes say so. The
/// units must outlive the result. COLLECTIVE.
unit::Beginning beginning_of(comm::Group& group, Settings& settings, const model::Model& model);

}  // namespace zs::setup
