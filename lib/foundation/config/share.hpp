// SPDX-License-Identifier: Apache-2.0
// Finds the files installed with zs: condition sets, configurations, templates.
#pragma once
#include <string>

namespace zs::config {

/// The path of share/NAME ("conditions/batch.yaml"): in $ZS_SHARE if set, else in ../share/zs (installed) or ../share
/// (source tree) relative to the running binary. Throws Error with the places where it looked.
std::string share_path(const std::string& name);

}  // namespace zs::config
