// SPDX-License-Identifier: Apache-2.0
// The body of zs-verify for recorded trainings, of zs or of any program: needs neither LibTorch nor MPI.
#pragma once
#include <vector>

#include "cli/command.hpp"
#include "input/kind.hpp"

namespace zs::comparison {

/// What the arguments ask for.
class Request {
 public:
  /// Finds out what a lone operand is, once.
  explicit Request(const cli::Args& args);

  /// Whether a training of zs with a reference or repetitions is asked for, which verify::Session runs.
  bool trains() const { return trains_; }

  /// Compares recorded runs, checkpoints or probes; or runs the trainings of --resume. REQUIRES: !trains().
  Status compare() const;

 private:
  bool is(input::Kind kind) const;

  const cli::Args& args_;
  std::vector<input::Kind> kinds_{};  ///< of the lone operand, the main one first
  bool trains_ = false;
};

}  // namespace zs::comparison
