// SPDX-License-Identifier: Apache-2.0
// The actions of zs-runs with which scripts run trainings.
#pragma once
#include <map>
#include <string>

#include "cli/command.hpp"

namespace zs::experiment {

/// plan, start, finish, state, watch: the function of each action.
const std::map<std::string, Status (*)(const cli::Args&)>& actions();

}  // namespace zs::experiment
