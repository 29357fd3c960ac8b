// SPDX-License-Identifier: Apache-2.0
// Prints a tool's errors and chooses its exit status: the only place that does.
#pragma once
#include <functional>

#include "cli/command.hpp"

namespace zs::cli {

/// The work of a tool, given its checked arguments.
using Body = std::function<Status(const Args&)>;

/// The addition to a failure by a tool that runs on many processes.
struct Hooks {
  std::function<std::string()> place{};  ///< before the message: "rank 3 on node07: "
  std::function<void()> after{};         ///< called after the message: an MPI tool aborts its job
  std::function<std::string()> build{};  ///< what --version adds about this build: "with CUDA"
};

/// Parses argv, answers --help and --version, runs `body`, prints an exception to stderr as "NAME: message", checks
/// that stdout was written, and returns the exit status.
int run(const Command& command, int argc, char** argv, const Body& body, const Hooks& hooks = {});

/// A sink that prints each fault to stderr as "NAME: path:line: what" and counts it in `count`.
FaultSink fault_printer(const Command& command, std::int64_t& count);

/// Prints "NAME: text" to stderr as one line; names and values in it cannot control the terminal or fake a line.
void tell(const Command& command, const std::string& text);

/// Prints "NAME: warning: text" to stderr.
void warn(const Command& command, const std::string& text);

/// The version, as --version prints it.
const char* version();

}  // namespace zs::cli
