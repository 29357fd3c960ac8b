// SPDX-License-Identifier: Apache-2.0
// The training engine: the one program that links LibTorch and MPI. zs-train and zs-verify start it only to train, so
// that help and refused arguments do not wait until LibTorch is loaded.
#pragma once
#include <string>

#include "cli/run.hpp"

namespace zs::cli {

/// Replaces this process by the engine (exec), as the tool `name` with its arguments argv. Throws zs::Error if this
/// installation has no engine.
[[noreturn]] void become_engine(const std::string& name, char** argv);

/// Flushes the output and ends the engine after main's objects are destroyed. The rest is left to the system: to
/// clear LibTorch's tables of operators takes half as long as to fill them.
[[noreturn]] void leave_engine(int status);

/// The rank that a launcher gave this process, before MPI has started; 0 without a launcher.
int launched_rank();

/// Hooks of a tool that runs on many ranks: rank 0 prints an error first, and --version says what the engine computes
/// with.
Hooks engine_hooks();

}  // namespace zs::cli
