// SPDX-License-Identifier: Apache-2.0
// The body of zs-verify for recorded trainings, of zs or of any program: needs neither LibTorch nor MPI.
#pragma once
#include "cli/command.hpp"

namespace zs::comparison {

/// Whether the arguments ask for a training of zs with a reference or repetitions, which verify::Session runs.
bool trains(const cli::Args& args);

/// Compares recorded runs, checkpoints or probes; or runs the trainings of --resume. REQUIRES: !trains(args).
Status compare(const cli::Args& args);

}  // namespace zs::comparison
