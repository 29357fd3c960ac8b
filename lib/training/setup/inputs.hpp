// SPDX-License-Identifier: Apache-2.0
// The model and the data set of a training, from a configuration.
#pragma once
#include "config/reading.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// Determines model and data set, with the model's own
/// defaults. Throws zs::Error if they do not match.
void choose_inputs(const config::Reading& config, Settings& settings);

}  // namespace zs::setup
