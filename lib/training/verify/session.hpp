// SPDX-License-Identifier: Apache-2.0
// The body of zs-verify for trainings of zs: two trainings side by side, or repetitions of one.
#pragma once
#include "cli/run.hpp"
#include "setup/ranks.hpp"

namespace zs::verify {

class Session {
 public:
  explicit Session(setup::Ranks& ranks) : ranks_(&ranks) {}
  /// COLLECTIVE. Any number of them may follow one another on the same ranks.
  Status verify(const cli::Args& args);

 private:
  setup::Ranks* ranks_;
};

}  // namespace zs::verify
