// SPDX-License-Identifier: Apache-2.0
// The one place where a tool prints its errors and chooses its exit status.
#pragma once
#include <functional>

#include "cli/command.hpp"

namespace zs::cli {

/// What a tool does, given its checked arguments.
using Body = std::function<Status(const Args&)>;

/// Parses argv, answers --help and --version, runs `body`, prints what it throws to stderr as
/// "NAME: message", checks that stdout was written, and returns the exit status.
/// `on_failure` runs after an error was printed: an MPI tool aborts its job there.
int run(const Command& command, int argc, char** argv, const Body& body, const std::function<void()>& on_failure = {});

/// A sink that prints each fault to stderr as "NAME: path:line: what" and counts it in `count`.
FaultSink fault_printer(const Command& command, std::int64_t& count);

/// Prints "NAME: warning: text" to stderr.
void warn(const Command& command, const std::string& text);

/// The version, as --version prints it.
const char* version();

}  // namespace zs::cli
