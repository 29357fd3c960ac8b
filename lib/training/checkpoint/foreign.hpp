// SPDX-License-Identifier: Apache-2.0
// Checkpoints of other programs: a training resumes from one, read by state/read.hpp, and writes its own in their form.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "state/convert.hpp"
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

/// The form `name`, one of checkpoints::kForms, for the checkpoints of this training, for the same ranks and stage.
/// Nothing for "". Throws zs::Error, with the remedy, if the form cannot hold this optimizer or adapted or frozen
/// parameters, or if zs does not know the order of the model's modules.
std::optional<checkpoints::Form> form_of(const std::string& name, const comm::Group& group, zero::Engine& engine);

}  // namespace zs::checkpoint
