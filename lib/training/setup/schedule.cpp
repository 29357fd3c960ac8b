// SPDX-License-Identifier: Apache-2.0
#include "setup/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zs::setup {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

/// Hugging Face's factor: constant, linear or cosine after a warm-up from 0.
double factor(const std::string& name, std::int64_t done, std::int64_t warmup, std::int64_t total) {
  if (done < warmup) return real(done) / real(std::max<std::int64_t>(1, warmup));
  const double span = real(std::max<std::int64_t>(1, total - warmup));
  if (name == "linear") return std::max(0.0, real(total - done) / span);
  if (name == "cosine") return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * real(done - warmup) / span)));
  return 1;
}

/// DeepSpeed's schedules begin at their lowest, and follow their formula from the second update on, one step behind.
double deepspeed(const Schedule& s, std::int64_t done, std::int64_t total) {
  const std::int64_t warmup = std::max<std::int64_t>(2, s.warmup), i = done - 1;
  const double rise = s.log_warmup ? std::log(real(done)) / std::log(real(warmup)) : real(i) / real(warmup);
  if (s.name == "WarmupCosineLR") {
    if (i < 0) return 0;
    if (i < warmup) return s.learning_rate * (s.warmup_min_ratio + (1 - s.warmup_min_ratio) * rise);
    const double progress = std::min(1.0, real(i - warmup + 1) / real(std::max<std::int64_t>(1, total - warmup)));
    const double ratio = (1 + std::cos(std::numbers::pi * progress)) / 2;
    return s.learning_rate * std::max(0.0, s.cos_min_ratio + (1 - s.cos_min_ratio) * ratio);
  }
  if (i < 0) return s.min_lr;
  double gamma = 1;
  if (i < warmup)
    gamma = rise;
  else if (s.name == "WarmupDecayLR")
    gamma = std::max(0.0, real(total - i) / std::max(1.0, real(total - warmup)));
  return s.min_lr + (s.learning_rate - s.min_lr) * gamma;
}

}  // namespace

double learning_rate(const Schedule& s, std::int64_t done, std::int64_t steps) {
  const std::int64_t total = s.total > 0 ? s.total : steps;
  return s.name.starts_with("Warmup") ? deepspeed(s, done, total)
                                      : s.learning_rate * factor(s.name, done, s.warmup, total);
}

}  // namespace zs::setup
