// SPDX-License-Identifier: Apache-2.0
// Parts of the settings, each from a configuration. They throw zs::Error at what does not fit.
#pragma once
#include "config/reading.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// The model and the data set, with the model's own defaults.
void choose_inputs(const config::Reading& config, Settings& s);

/// How factors of products are rounded to 8 bits, and how weights travel to them. REQUIRES: a GPU; settings of model,
/// number format and ZeRO++.
void choose_float8(const config::Reading& config, Settings& s);

/// Whether frozen matrices are held in 4 bits. REQUIRES: settings of model, number format, FP8, offloading and ZeRO++.
void choose_nf4(const config::Reading& config, Settings& s);

/// How sequences are divided: in how many chunks they are computed, and how many ranks share them. REQUIRES: settings
/// of model, ranks and ZeRO++.
void choose_sequences(const config::Reading& config, Settings& s);

/// The number of ranks that divide the experts of a model. REQUIRES: settings of model, ranks, sequences and ZeRO++.
void choose_experts(const config::Reading& config, Settings& s);

/// The batch of a step, its division, and the number of steps. REQUIRES: settings of ranks, sequences and experts.
void choose_steps(const config::Reading& config, Settings& s);

/// Probe, trackers and profile.
void choose_observation(const config::Reading& config, Settings& s);

/// When a training writes checkpoints, gradients and models, and in which forms. REQUIRES: settings of sequences and
/// experts.
void choose_checkpoints(const config::Reading& config, Settings& s);

/// The settings of an evaluation, if there is one.
void choose_evaluation(const config::Reading& config, Settings& settings);

}  // namespace zs::setup
