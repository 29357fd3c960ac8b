// SPDX-License-Identifier: Apache-2.0
// The resume test: compares an undisturbed training of any program with the same training stopped and resumed, both
// recorded by zs_probe or zs-train --probe.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "compare/measure.hpp"
#include "comparison/answer.hpp"

namespace zs::comparison {

struct ResumeTest {
  /// A shell command with placeholders: {steps} is the step after which it ends, {total} the last step of the
  /// undisturbed training, {run} the folder for its files, {probe} the folder of its probe (also in $ZS_PROBE), and
  /// {resume} is `with` in the resumed training, else empty. Without {resume}, `with` is appended.
  std::string command;
  std::string with;     ///< {checkpoint} in it is the newest valid checkpoint in {run}
  std::string resumed;  ///< the command of the resumed training, if different (other ranks); "": `command`
  std::int64_t at = 0;  ///< the stopped training ends after this step
  std::int64_t total = 0;
  std::string folder;  ///< folder for the trainings' files and logs
};

/// Trains `total` steps; trains `at` steps and resumes to `total`; compares the probes, and the newest checkpoints of
/// both if there are any. "lost" says in one sentence what was lost or changed first. `tell` gets a line per training.
/// Throws Error if a training fails (its first error), or leaves no checkpoint or no probe.
Answer test_resume(const ResumeTest& test, const compare::Tolerance& tolerance,
                   const std::function<void(const std::string&)>& tell);

}  // namespace zs::comparison
