// SPDX-License-Identifier: Apache-2.0
// Reads a recording: a file of JSON lines per rank, joined. Checks every line; one that is incomplete, missing,
// duplicated or of another recording is reported with its place.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "probefile/run.hpp"

namespace zs::probefile {

/// Throws Error, located, if a line is damaged, is of another rank or has an unknown field, if a rank is missing, or if
/// ranks disagree on a shape. Defects that make a proof impossible are in `faults`: no end, an end by an exception,
/// lines that are cut or missing, steps of no stride, ranks that repeat one thing and differ. Skips steps up to
/// `after`; the training begins with their result.
Run read(const std::string& folder, std::int64_t after = 0);

/// The first row of the first rank that has a file. Reads no more than that. Throws Error, located, if there is none.
HeadRow head_of(const std::string& folder);

/// Where a recording was computed, as its first row says: {"torch": "2.11.0", "instruction set": "AVX512"}.
using Environment = std::map<std::string, std::string>;
Environment environment_of(const HeadRow& head);
/// "torch 2.10.0 -> 2.11.0": what differs.
std::vector<std::string> changes(const Environment& from, const Environment& to);

/// A recording that is still being written. read() reads the lines that were added since the last call and returns
/// everything; an incomplete last line waits, and a step waits for all ranks. Throws Error as the function does, and
/// continues there at the next call.
class Growing {
 public:
  class Reader;
  explicit Growing(const std::string& folder);
  ~Growing();
  Run& read();
  /// Adds the faults of a recording that is complete. Once.
  void settle();

 private:
  std::unique_ptr<Reader> reader_;
};

}  // namespace zs::probefile
