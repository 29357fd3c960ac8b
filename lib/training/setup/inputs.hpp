// SPDX-License-Identifier: Apache-2.0
// The model of a training and the data set that it reads, from a configuration.
#pragma once
#include "config/reading.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// Settles model and data set, with what the model decides itself where nothing is asked for. Throws zs::Error where
/// they do not suit each other.
void choose_inputs(const config::Reading& config, Settings& settings);

}  // namespace zs::setup
