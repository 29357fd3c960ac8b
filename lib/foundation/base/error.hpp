// SPDX-License-Identifier: Apache-2.0
// Errors and faults: an error ends the work, a fault is a defect in the input.
#pragma once
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace zs {

/// Exit status of every tool: a verdict, as in grep and diff.
enum class Status : int {
  done = 0,          ///< done; if a question was asked, the answer is yes
  no = 1,            ///< done, and the answer is no: divergence, regression, faults in the input
  failed = 2,        ///< could not: usage, I/O, device, MPI
  inconclusive = 3,  ///< a comparison that the data cannot decide
  try_again = 75,    ///< stopped by a signal with everything saved: resume it (EX_TEMPFAIL of sysexits.h)
};

/// The work cannot be done (status 2). The text is lower case, has no period, begins with its place ("run.log:42: ...")
/// and names the remedy if one is known. cli::run prints it once.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// An error at a line of a file. `line` counts from 1; 0 means the whole file.
  Error(std::string_view path, std::int64_t line, std::string_view what);
};

/// The command line is wrong (status 2); cli::run adds where to find help.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// The request needs data that the inputs do not have (status 3): a log without losses has no loss curve.
class NoData : public Error {
 public:
  using Error::Error;
};

/// A defect in the input that does not stop the work (status 1 at the end).
struct Fault {
  std::string path;
  std::int64_t line = 0;  ///< from 1; 0 means the whole file
  std::string what;
};
using FaultSink = std::function<void(const Fault&)>;

/// "path:line: what", without the line if it is 0.
std::string located(std::string_view path, std::int64_t line, std::string_view what);

/// strerror(errno) as a string. REQUIRES: called right after the failed call.
std::string errno_text();

}  // namespace zs
