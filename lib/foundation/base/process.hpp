// SPDX-License-Identifier: Apache-2.0
// Runs other programs, gives them input and waits for them. Their output goes through memory files, so that no one
// waits for a pipe to be drained.
#pragma once
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace zs {

/// A program to run.
struct Program {
  std::vector<std::string> words;              ///< its name, looked up on PATH, and its arguments
  std::function<void(std::FILE*)> input = {};  ///< writes the program's stdin; if empty, the program reads ours
  std::string folder{};                        ///< its working directory; "": ours
  bool captured = false;                       ///< return stdout and stderr; else the program writes to ours
  double seconds = 0;                          ///< kill the program after this time; 0: never
};

/// The file that a shell would run for `name`; "" if there is none.
std::string program_path(const std::string& name);

/// The result of a process.
struct Ended {
  int status = 0;  ///< as in a shell: 127 no such program, 126 cannot start, 124 killed after `seconds`, 128 + signal
  std::string output{}, errors{};
};

/// Runs the program and waits until it ends. Throws Error if this process cannot start any program.
Ended run(const Program& program);

/// Runs `work` in a forked copy of this process, for code that may crash or never end. The output is the text that
/// `work` writes to the file. The status is 0 if `work` returns, 1 if it throws. The copy runs no exit handlers.
/// REQUIRES: no other thread holds a lock that `work` needs.
Ended run_copy(const std::function<void(int file)>& work);

}  // namespace zs
