// SPDX-License-Identifier: Apache-2.0
// When a training writes checkpoints, gradients and models, and in which forms.
#pragma once
#include "config/reading.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// Sets it. Throws zs::Error if norms of micro-batches' gradients are asked for where there are none. REQUIRES:
/// settings of sequences and experts.
void choose_checkpoints(const config::Reading& config, Settings& s);

}  // namespace zs::setup
