// SPDX-License-Identifier: Apache-2.0
// The body of zs-verify for recorded trainings, of zs or of any program: needs neither LibTorch nor MPI.
#pragma once
#include <vector>

#include "cli/command.hpp"
#include "input/kind.hpp"
#include "input/named.hpp"

namespace zs::comparison {

/// The task that the arguments ask for.
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

/// Whether it is a run; else it is tensors: a checkpoint, a file of them, a probe.
bool is_run(const input::Named& operand);

/// Throws zs::UsageError if both are the same run or tensors, or one is a run and the other is not.
void require_two(const input::Named& a, const input::Named& b);

}  // namespace zs::comparison
