// SPDX-License-Identifier: Apache-2.0
// The training engine: the one program with LibTorch and MPI. zs-train and zs-verify answer what needs neither, and
// become it where they train, so that help and refused arguments do not wait for LibTorch's libraries.
#pragma once
#include <string>

#include "cli/run.hpp"

namespace zs::cli {

/// Replaces this process by the engine, as the tool `name` with its arguments argv. Throws zs::Error where this
/// installation has none.
[[noreturn]] void become_engine(const std::string& name, char** argv);

/// The rank that a launcher gave this process, before MPI has started; 0 where there is none.
int launched_rank();

/// Of a tool that is started on many ranks: rank 0 tells an error first, and --version is the engine's to answer.
Hooks engine_hooks(const std::string& name, char** argv);

}  // namespace zs::cli
