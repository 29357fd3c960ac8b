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

/// Bytes of parameters that passes may keep gathered on a device with `memory` bytes if no budget is given. Activations
/// take an unknown part of the memory that the state leaves, so it is a quarter of that part.
double room_for_gathers(const model::Model& model, const Settings& settings, int ranks, double memory);

/// Sets what depends on the ranks' device: where forward runs, and what passes may keep gathered there.
void place_on(Settings& settings, const comm::Group& group);

/// Throws zs::Error, with the required and the available memory, if the ranks of this machine do not fit into `memory`
/// bytes.
void require_memory(const comm::Group& group, const model::Model& model, const Settings& settings, std::int64_t memory);

/// A message before a training is built that takes much of `memory`, since that takes long: its parameters, and the
/// minimum of a rank. "" for a small one.
std::string early_word(const comm::Group& group, const model::Model& model, const Settings& settings,
                       std::int64_t memory);

/// Call it in an exception handler: if memory was exhausted, throws zs::Error with the requested and the used memory,
/// and with the settings that need less; otherwise returns.
void explain_memory(const comm::Group& group, const model::Model& model, const Settings& settings);

/// Bytes of `capacity` that a rank may fill by default: other data needs some of it.
double usual_memory(std::int64_t capacity);

}  // namespace zs::setup
