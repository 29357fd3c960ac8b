// SPDX-License-Identifier: Apache-2.0
// The body of zs-verify where it compares what was recorded, by zs or by anyone: neither LibTorch nor MPI is needed.
#pragma once
#include "cli/command.hpp"

namespace zs::comparison {

/// Whether the arguments ask for a training of zs beside its reference or its repetition, which verify::Session runs.
bool trains(const cli::Args& args);

/// Recorded runs, checkpoints or probes; or trainings of --resume, which are anyone's. REQUIRES: !trains(args).
Status compare(const cli::Args& args);

}  // namespace zs::comparison
