// SPDX-License-Identifier: Apache-2.0
// What ranks must have in common before a training begins, since it decides bits: ranks that differ in it would train
// something that nobody asked for, and end with one digest.
#pragma once
#include "comm/agree.hpp"
#include "config/config.hpp"
#include "setup/batches.hpp"

namespace zs::setup {

/// Throws comm::SharedError unless all ranks have one configuration, binary, set of libraries, instruction set and
/// number of threads, and the same of `more`. Names and places (run, registry, data set, checkpoint) are left out: what
/// lies there is compared when it is read. COLLECTIVE.
void require_same_start(comm::Group& group, const config::Config& config, const comm::Facts& more = {});

/// Has LibTorch and the kernels compute as the settings say, for the whole process. Throws comm::SharedError unless the
/// devices of all ranks compute alike: one model of GPU, one driver, one version of each library, one table of matrix
/// products. COLLECTIVE.
void set_arithmetic(comm::Group& group, const Settings& settings);

/// The batches of a training on all ranks of the group; throws comm::SharedError where a rank cannot read the data set
/// or has another one, as the file of its own node may be. COLLECTIVE.
Batches read_batches(comm::Group& group, const Settings& settings, const model::Model& model);

}  // namespace zs::setup
