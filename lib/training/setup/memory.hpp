// SPDX-License-Identifier: Apache-2.0
// Checks whether a training can fit into memory before anything large is allocated.
#pragma once
#include <cstdint>

#include "comm/group.hpp"
#include "model/model.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// A lower bound of the bytes that a rank needs: training state, one micro-batch with the activations of the widest
/// unit, and the plan of a step.
double least_memory(const model::Model& model, const Settings& settings, int ranks);

/// Throws zs::Error, with the required and the available memory, if the ranks of this machine do not fit into `memory`
/// bytes.
void require_memory(const comm::Group& group, const model::Model& model, const Settings& settings, std::int64_t memory);

/// A message before a training is built that takes much of `memory`, since that takes long: its parameters, and the
/// minimum of a rank. "" for a small one.
std::string early_word(const comm::Group& group, const model::Model& model, const Settings& settings,
                       std::int64_t memory);

/// Call it in an exception handler: if memory was exhausted, throws zs::Error with what was requested, what is in use,
/// and which settings need how much less; else returns.
void explain_memory(const comm::Group& group, const model::Model& model, const Settings& settings);

}  // namespace zs::setup
