// SPDX-License-Identifier: Apache-2.0
// Learning rate schedules, as Hugging Face's get_*_schedule_with_warmup define them (transformers, optimization.py).
#pragma once
#include <cstdint>
#include <string>

namespace zs::train {

/// The factor on the learning rate for update `done` (0 for the first): constant, linear or cosine after `warmup`
/// updates that rise from 0; `total` updates in all.
double schedule(const std::string& name, std::int64_t done, std::int64_t warmup, std::int64_t total);

}  // namespace zs::train
