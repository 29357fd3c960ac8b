// SPDX-License-Identifier: Apache-2.0
// Other processes: started, given their input, waited for. What they print goes through memory files, so that nobody
// waits for a pipe to be emptied.
#pragma once
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace zs {

/// A program to run.
struct Program {
  std::vector<std::string> words;              ///< its name, which is looked up on PATH, and its arguments
  std::function<void(std::FILE*)> input = {};  ///< writes what the program reads from stdin; none: it reads ours
  std::string folder{};                        ///< the program starts in it; "": in ours
  bool captured = false;                       ///< stdout and stderr come back; else the program has ours
  double seconds = 0;                          ///< the program is killed after so long; 0: never
};

/// How a process ended.
struct Ended {
  int status = 0;  ///< as a shell's: 127 no such program, 126 it cannot start, 124 killed after `seconds`, 128 + signal
  std::string output{}, errors{};
};

/// Runs the program and waits for its end. Throws Error where this process can start nothing.
Ended run(const Program& program);

/// Runs `work` in a copy of this process, for code that may crash or never end. `work` writes to the file what comes
/// back as the output. The status is 0 where `work` returns, 1 where it throws. No exit handler runs in the copy.
/// REQUIRES: no other thread holds a lock that `work` needs.
Ended run_copy(const std::function<void(int file)>& work);

}  // namespace zs
