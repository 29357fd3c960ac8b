// SPDX-License-Identifier: Apache-2.0
// The resume test: anyone's training undisturbed, and the same one stopped and resumed, both recorded by zs_probe or
// zs-train --probe, and compared.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "compare/measure.hpp"
#include "comparison/answer.hpp"

namespace zs::comparison {

struct ResumeTest {
  /// A shell command, in which {steps} is the step after which it ends, {total} the last step of the undisturbed
  /// training, {run} the folder that it may write to, {probe} the folder of its probe (also in $ZS_PROBE), and {resume}
  /// what it is given to go on: `with` then, else nothing. Without {resume} that stands at the end.
  std::string command;
  std::string with;     ///< {checkpoint} in it is the newest whole checkpoint in {run}
  std::string resumed;  ///< the command that goes on, where it is another one (other ranks); "": `command`
  std::int64_t at = 0;  ///< the stopped training ends after so many steps
  std::int64_t total = 0;
  std::string folder;  ///< of what the trainings write and their logs
};

/// Trains `total` steps; trains `at` steps and resumes to `total`; compares the probes, and the newest checkpoints of
/// both where there are some. "lost" says in one sentence what was lost or changed first. `tell` gets a line for each
/// training. Throws Error where a training fails (its first error), or leaves no checkpoint or no probe.
Answer test_resume(const ResumeTest& test, const compare::Tolerance& tolerance,
                   const std::function<void(const std::string&)>& tell);

}  // namespace zs::comparison
