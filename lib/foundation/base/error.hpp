// SPDX-License-Identifier: Apache-2.0
// What goes wrong, and how a tool says so: errors end the work, faults are defects in the input.
#pragma once
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace zs {

/// Exit status of every tool: a verdict, as in grep and diff.
enum class Status : int {
  done = 0,          ///< done; where something was asked, the answer is yes
  no = 1,            ///< done, and the answer is no: divergence, regression, faults in the input
  failed = 2,        ///< could not: usage, I/O, device, MPI
  inconclusive = 3,  ///< a comparison that the data cannot decide
  try_again = 75,    ///< stopped by a signal with everything saved: resume it (EX_TEMPFAIL of sysexits.h)
};

/// The work cannot be done (status 2). The text is lower case, has no period, leads with its place
/// ("run.log:42: ...") and names the remedy where one is known. Printed once, by cli::run.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// An error at a line of a file. `line` counts from 1; 0 means the file as a whole.
  Error(std::string_view path, std::int64_t line, std::string_view what);
};

/// The command line is wrong (status 2): cli::run adds where to find help.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A defect in the input that does not stop the work (status 1 at the end).
struct Fault {
  std::string path;
  std::int64_t line = 0;  ///< from 1; 0 means the file as a whole
  std::string what;
};
using FaultSink = std::function<void(const Fault&)>;

/// "path:line: what", without the line where it is 0.
std::string located(std::string_view path, std::int64_t line, std::string_view what);

/// strerror(errno) as a string, for messages built right after a failed call.
std::string errno_text();

}  // namespace zs
