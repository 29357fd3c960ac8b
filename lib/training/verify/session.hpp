// SPDX-License-Identifier: Apache-2.0
// The body of zs-verify where zs trains: two trainings side by side, or one beside itself.
#pragma once
#include "cli/run.hpp"
#include "setup/ranks.hpp"

namespace zs::verify {

class Session {
 public:
  Status verify(const cli::Args& args);
  cli::Hooks hooks() { return ranks_.hooks(); }

 private:
  setup::Ranks ranks_;
};

}  // namespace zs::verify
