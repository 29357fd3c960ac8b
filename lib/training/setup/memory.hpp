// SPDX-License-Identifier: Apache-2.0
// Whether a training can fit at all, before anything of its size is made.
#pragma once
#include <cstdint>

#include "comm/group.hpp"
#include "model/model.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// Bytes that a rank needs whatever else it does: training state, one micro-batch with what the widest unit passes on,
/// and the plan of a step. More is used in truth.
double least_memory(const model::Model& model, const Settings& settings, int ranks);

/// Throws zs::Error, saying what is needed and what there is, where the ranks of this machine do not fit into `memory`
/// bytes.
void require_memory(const comm::Group& group, const model::Model& model, const Settings& settings, std::int64_t memory);

/// What is said before a training is made that takes a good part of `memory`, for that takes long: its parameters, and
/// what a rank needs at least. "" for a small one.
std::string early_word(const comm::Group& group, const model::Model& model, const Settings& settings,
                       std::int64_t memory);

/// In a handler: if memory gave out, throws zs::Error that says what was asked, what is held, and what needs how much
/// less; else returns.
void explain_memory(const comm::Group& group, const model::Model& model, const Settings& settings);

}  // namespace zs::setup
