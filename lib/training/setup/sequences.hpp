// SPDX-License-Identifier: Apache-2.0
// How sequences are divided: in how many chunks they are computed, and how many ranks share them.
#pragma once
#include "config/reading.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// Sets both. Throws zs::Error, with the numbers that are allowed, where ranks, tokens or heads are not divisible, and
/// at settings that are of whole sequences. REQUIRES: settings of model, ranks and ZeRO++.
void choose_sequences(const config::Reading& config, Settings& s);

}  // namespace zs::setup
