// SPDX-License-Identifier: Apache-2.0
// A training of another program that zs goes on with: its checkpoint, as state/read.hpp reads it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "zero/engine.hpp"

namespace zs::checkpoint {

/// Whether a folder or file is a checkpoint that is not of zs and has an optimizer's state; weights alone are not.
/// Throws zs::Error where there is nothing.
bool is_foreign(const std::string& path);

/// What was taken from it.
struct Adopted {
  std::int64_t step = 0;             ///< steps done
  std::vector<std::string> notes{};  ///< what a user should know: settings that were not taken
};

/// Sets the engine's parameters to the float32 numbers that the optimizer worked on (the masters, else the weights),
/// the moments, and the number of updates. Parameters are found by the names that files of other programs have for
/// them, wrappers and a first word such as "module." left out. Throws zs::Error, located, where the checkpoint has
/// faults, and at a parameter that it lacks, has in another shape or without its moments. COLLECTIVE.
Adopted adopt(comm::Group& group, zero::Engine& engine, const std::string& path);

}  // namespace zs::checkpoint
