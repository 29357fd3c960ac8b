// SPDX-License-Identifier: Apache-2.0
// Finds where the ranks of a training hang: from their stacks, by Python's faulthandler and py-spy
// (share/probe/site/sitecustomize.py), and their collectives, by NCCL's Flight Recorder.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace zs::recording {

/// Environment variables that make a command's processes able to report where they are: for Python's start and the
/// Flight Recorder. They name files in `folder`, the run's. Variables set by the user are kept.
std::vector<std::pair<std::string, std::string>> variables_to_ask(const std::string& folder);
/// The same for the probe only: Python's start attaches it. Empty if $ZS_PROBE names no folder.
std::vector<std::pair<std::string, std::string>> variables_to_probe();

/// The answer of a rank.
struct Where {
  int rank = -1;  ///< -1: unknown
  int ranks = 0;  ///< of the training; 0: unknown
  long process = 0;
  bool gone = false;         ///< its process has ended
  bool silent = false;       ///< it is alive but does not answer
  char state = 'S';          ///< of the process, from /proc; '?' on another host
  std::string collective{};  ///< the one it waits in: "all_reduce", "backward"; or ""
  std::string place{};       ///< the innermost line of the training's code: "train.py:42 in load_batch"
};

/// Parses a stack of faulthandler; the main thread is the one with its outermost frame in the module.
void read_stack(const std::string& text, Where& where);
/// The rank that causes the hang, its position, and the reason.
std::string explain(const std::vector<Where>& ranks);

/// The conclusion from the Flight Recorder's dumps of the run in `folder`, which NCCL also writes when its time limit
/// ends a training: which rank did not enter which collective; "" if there is none, or no rank is behind.
std::string said_by_dumps(const std::string& folder);

/// Asks all ranks of the command whose run is in `folder`; takes up to about ten seconds. Saves the answers as hang.txt
/// in the folder. Returns a sentence.
std::string why_it_hangs(const std::string& folder);

}  // namespace zs::recording
