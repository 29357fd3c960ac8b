// SPDX-License-Identifier: Apache-2.0
// Resumes a training of another program from its checkpoint, read by state/read.hpp.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "zero/engine.hpp"

namespace zs::checkpoint {

/// Whether a folder or file is a checkpoint of another program with optimizer state; weights alone are not. Throws
/// zs::Error if it does not exist.
bool is_foreign(const std::string& path);

/// The part of it that adopt() took.
struct Adopted {
  std::int64_t step = 0;             ///< steps done
  std::vector<std::string> notes{};  ///< for the user: settings that were not taken
};

/// Sets the engine's parameters to the optimizer's float32 numbers (the masters, else the weights), the moments, and
/// the number of updates. Finds parameters by their names in files of other programs, without wrappers and a first word
/// such as "module.". Throws zs::Error, located, if the checkpoint has faults, and at a parameter that is missing, has
/// another shape or no moments. COLLECTIVE.
Adopted adopt(comm::Group& group, zero::Engine& engine, const std::string& path);

}  // namespace zs::checkpoint
