// SPDX-License-Identifier: Apache-2.0
// Checks before a training that all ranks agree on everything that decides bits: otherwise they would train something
// unintended, and still end with one digest.
#pragma once
#include "comm/agree.hpp"
#include "config/config.hpp"
#include "setup/batches.hpp"

namespace zs::setup {

/// Throws comm::SharedError unless all ranks have the same configuration, binary, libraries, instruction set, number of
/// threads, and `more`. Names and paths (run, registry, data set, checkpoint) are left out: their content is compared
/// when it is read. COLLECTIVE.
void require_same_start(comm::Group& group, const config::Config& config, const comm::Facts& more = {});

/// Sets the arithmetic of LibTorch and the kernels to the settings, for the whole process. Throws comm::SharedError
/// unless the devices of all ranks compute alike: the same model of GPU, driver, library versions and table of matrix
/// products. COLLECTIVE.
void set_arithmetic(comm::Group& group, const Settings& settings);

/// The batches of a training on all ranks of the group; throws comm::SharedError if a rank cannot read the data set or
/// has a different one, for example on its node. COLLECTIVE.
Batches read_batches(comm::Group& group, const Settings& settings, const model::Model& model);

}  // namespace zs::setup
