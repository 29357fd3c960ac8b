// SPDX-License-Identifier: Apache-2.0
// Another program, started so that what it prints can be read and everything else stays as it is: it has our stdin,
// our terminal, our process group; where ours is a terminal, its output is one.
#pragma once
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zs::recording {

/// The file that a shell would start for `name`; "" where there is none.
std::string program_path(const std::string& name);

class Command {
 public:
  /// What it writes to one descriptor of its own.
  struct Stream {
    int from = -1;  ///< we read it here; does not wait
    int to = -1;    ///< where it would have gone: STDOUT_FILENO or STDERR_FILENO
  };

  /// Starts `words` with `variables` added to the environment (without a value: taken away) and with the signals in
  /// `blocked` blocked. Throws Error where it cannot be started.
  /// REQUIRES: called by the thread that lives longest: the command is sent SIGTERM when that ends.
  Command(std::vector<std::string> words, const std::vector<std::pair<std::string, std::string>>& variables,
          const sigset_t& blocked);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t process() const { return process_; }
  /// Becomes readable when the command has ended.
  int ended() const { return ended_; }
  /// One where stdout and stderr are the same place, so that the order of lines stays; else two.
  const std::vector<Stream>& streams() const { return streams_; }
  /// Our terminal has another size now.
  void resize() const;
  void send(int signal) const;
  /// To those of its processes that do something about the signal, the outermost of each line; where none does, to
  /// itself. A shell or a launcher that would only die of it is passed by.
  void warn(int signal) const;
  /// How it ended, as a shell says it (128 + signal), and what it used. REQUIRES: it has ended.
  struct End {
    int status = 0;
    double processor_seconds = 0;      ///< of all its processes that were waited for
    std::int64_t largest_process = 0;  ///< bytes of memory of the largest of them
  };
  End wait() const;

 private:
  std::vector<Stream> streams_;
  std::vector<int> terminals_;
  pid_t process_ = -1;
  int ended_ = -1;
};

}  // namespace zs::recording
