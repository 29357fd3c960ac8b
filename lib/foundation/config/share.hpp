// SPDX-License-Identifier: Apache-2.0
// Where the files that come with zs lie: condition sets, configurations, templates.
#pragma once
#include <string>

namespace zs::config {

/// The path of share/NAME ("conditions/batch.yaml"): below $ZS_SHARE where that is set, else below ../share/zs
/// (installed) or ../share (in the source tree) beside the running binary. Throws Error saying where it looked.
std::string share_path(const std::string& name);

}  // namespace zs::config
