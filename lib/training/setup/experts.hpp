// SPDX-License-Identifier: Apache-2.0
// The number of ranks that divide the experts of a model among them.
#pragma once
#include "config/reading.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// Sets it. Throws zs::Error where ranks or experts are not divisible, and at settings that are of whole experts.
/// REQUIRES: settings of model, ranks, sequences and ZeRO++.
void choose_experts(const config::Reading& config, Settings& s);

}  // namespace zs::setup
