// SPDX-License-Identifier: Apache-2.0
// The body of zs-verify: two trainings side by side, one beside itself, or recorded runs.
#pragma once
#include <vector>

#include "cli/run.hpp"
#include "setup/ranks.hpp"

namespace zs::verify {

/// zs-train's options that matter here, with zs-verify's own defaults.
std::vector<cli::Option> options();

class Session {
 public:
  Status verify(const cli::Args& args);
  cli::Hooks hooks() { return ranks_.hooks(); }

 private:
  setup::Ranks ranks_;

  Status trained(const cli::Args& args);
  static Status recorded(const cli::Args& args);
};

}  // namespace zs::verify
