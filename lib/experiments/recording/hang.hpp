// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a training are that prints nothing any more: their stacks, as Python's faulthandler and py-spy
// tell them (share/probe/site/sitecustomize.py), and the collectives that NCCL's Flight Recorder has.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace zs::recording {

/// Variables by which the processes of a command can be asked where they are: of Python's start, of the Flight
/// Recorder. They name files in `folder`, the run's. Those that the user has set stay.
std::vector<std::pair<std::string, std::string>> variables_to_ask(const std::string& folder);
/// The same for the probe alone: Python's start attaches it. Empty where $ZS_PROBE names no folder.
std::vector<std::pair<std::string, std::string>> variables_to_probe();

/// A rank, as it answered.
struct Where {
  int rank = -1;  ///< -1: it is not told
  int ranks = 0;  ///< of the training; 0: not told
  long process = 0;
  bool gone = false;         ///< its process has ended
  bool silent = false;       ///< it lives and does not answer
  char state = 'S';          ///< of the process, as /proc tells it; '?' on another host
  std::string collective{};  ///< that it waits in: "all_reduce", "backward"; or ""
  std::string place{};       ///< the innermost line of the training's own: "train.py:42 in load_batch"
};

/// The place of a stack that faulthandler wrote, whose main thread is told by its outermost frame.
void read_stack(const std::string& text, Where& where);
/// Which rank it is, where, and why that is thought.
std::string explain(const std::vector<Where>& ranks);

/// What the Flight Recorder's dumps of the run in `folder` say, which NCCL writes too where its own time limit ends a
/// training: which rank did not enter which collective; "" where there is none, or no rank is behind.
std::string said_by_dumps(const std::string& folder);

/// Asks all ranks of the command whose run is in `folder`; takes up to some ten seconds. What they answer is kept in
/// the folder as hang.txt. A sentence.
std::string why_it_hangs(const std::string& folder);

}  // namespace zs::recording
