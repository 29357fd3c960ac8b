// SPDX-License-Identifier: Apache-2.0
// A training of zs as DeepSpeed's configuration file.
#pragma once
#include <string>
#include <vector>

#include "setup/settings.hpp"

namespace zs::train {

using setup::Settings;

struct DeepSpeedConfig {
  std::string json;                    ///< what config::add_deepspeed reads back as the same training
  std::vector<std::string> remaining;  ///< what a file of DeepSpeed cannot say, and the program around it must do
};

/// REQUIRES: settings of so many ranks.
DeepSpeedConfig deepspeed_config(const Settings& settings, int ranks);

}  // namespace zs::train
