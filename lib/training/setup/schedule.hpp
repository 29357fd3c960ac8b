// SPDX-License-Identifier: Apache-2.0
// Learning rate schedules, as Hugging Face's get_*_schedule_with_warmup define them (transformers, optimization.py),
// and as DeepSpeed's classes do (runtime/lr_schedules.py).
#pragma once
#include <cstdint>
#include <string>

namespace zs::setup {

struct Schedule {
  std::string name = "constant";
  double learning_rate = 0;
  std::int64_t warmup = 0;                            ///< updates over which it rises
  std::int64_t total = 0;                             ///< updates in all; 0: those of the training
  bool log_warmup = false;                            ///< DeepSpeed's: it rises as the logarithm
  double min_lr = 0;                                  ///< WarmupLR, WarmupDecayLR: it rises from here
  double warmup_min_ratio = 0, cos_min_ratio = 1e-4;  ///< WarmupCosineLR: shares of it, first and last
};

/// The learning rate of update `done` (0 for the first) of a training of `steps`.
double learning_rate(const Schedule& schedule, std::int64_t done, std::int64_t steps);

}  // namespace zs::setup
