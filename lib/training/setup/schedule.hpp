// SPDX-License-Identifier: Apache-2.0
// Learning rate schedules, as defined by Hugging Face's get_*_schedule_with_warmup (transformers, optimization.py) and
// by DeepSpeed's classes (runtime/lr_schedules.py).
#pragma once
#include <cstdint>
#include <string>

namespace zs::setup {

struct Schedule {
  std::string name = "constant";
  double learning_rate = 0;
  std::int64_t warmup = 0;                            ///< updates over which the rate rises
  std::int64_t total = 0;                             ///< total updates; 0: all steps of the training
  bool log_warmup = false;                            ///< DeepSpeed's: logarithmic rise
  double min_lr = 0;                                  ///< WarmupLR, WarmupDecayLR: the initial rate
  double warmup_min_ratio = 0, cos_min_ratio = 1e-4;  ///< WarmupCosineLR: first and last rate as shares
};

/// The learning rate of update `done` (0 for the first) of a training of `steps`.
double learning_rate(const Schedule& schedule, std::int64_t done, std::int64_t steps);

}  // namespace zs::setup
