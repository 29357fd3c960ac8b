// SPDX-License-Identifier: Apache-2.0
// Runs another program so that its output can be read and nothing else changes: it gets our stdin, our terminal and our
// process group; if our output is a terminal, so is its output.
#pragma once
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"

namespace zs::recording {

/// The output of a program without an input and without its last line ends; "" if it fails or takes longer.
std::string printed_by(const std::vector<std::string>& words, double seconds);

class Command {
 public:
  /// The program's output to one of its descriptors.
  struct Stream {
    int from = -1;  ///< we read it here; non-blocking
    int to = -1;    ///< the original destination: STDOUT_FILENO or STDERR_FILENO
  };

  /// Starts `words` with `variables` added to the environment (without a value: removed) and with the signals in
  /// `blocked` blocked. Throws Error if it cannot be started. REQUIRES: called by the thread that lives longest: the
  /// command gets SIGTERM when that thread ends.
  Command(std::vector<std::string> words, const std::vector<std::pair<std::string, std::string>>& variables,
          const sigset_t& blocked);
  ~Command();

  pid_t process() const { return process_; }
  /// Becomes readable when the command has ended.
  int ended() const { return ended_; }
  /// One if stdout and stderr are the same file, so that the order of lines is kept; else two.
  const std::vector<Stream>& streams() const { return streams_; }
  /// Passes the new size of our terminal on.
  void resize() const;
  void send(int signal) const;
  /// Sends the signal to the outermost process of each branch that handles it; if none does, to the command itself.
  /// Skips shells and launchers, which the signal would kill.
  void warn(int signal) const;
  /// Its exit status as in a shell (128 + signal), and its resources. REQUIRES: it has ended.
  struct End {
    int status = 0;
    double processor_seconds = 0;      ///< of all its processes that were waited for
    std::int64_t largest_process = 0;  ///< bytes of memory of the largest process
  };
  End wait() const;

 private:
  std::vector<Stream> streams_;
  std::vector<int> terminals_;
  pid_t process_ = -1;
  Descriptor ended_;
};

/// The live children of a process, as far as /proc shows them.
std::vector<pid_t> children(pid_t process);

/// A process and its live descendants, as far as /proc shows them.
std::vector<pid_t> family(pid_t process);

/// Files of W&B and TensorBoard that these processes have open.
std::vector<std::string> open_tracker_files(const std::vector<pid_t>& processes);

}  // namespace zs::recording
