// SPDX-License-Identifier: Apache-2.0
// Exports a training of zs as DeepSpeed's configuration file.
#pragma once
#include <string>
#include <vector>

#include "setup/settings.hpp"

namespace zs::train {

using setup::Settings;

struct DeepSpeedConfig {
  std::string json;                    ///< config::add_deepspeed reads it back as the same training
  std::vector<std::string> remaining;  ///< what DeepSpeed's file cannot express, for the program that uses it
};

DeepSpeedConfig deepspeed_config(const Settings& settings);

}  // namespace zs::train
