// SPDX-License-Identifier: Apache-2.0
// Products of 8 bits.
#pragma once
#include "config/reading.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// Sets how their factors are rounded, and how weights travel to them. Throws zs::Error at what has no such products.
/// REQUIRES: a GPU; settings of model, number format and ZeRO++.
void choose_float8(const config::Reading& config, Settings& s);

}  // namespace zs::setup
