// SPDX-License-Identifier: Apache-2.0
// Where gradients are: the gradients.pt of a run's checkpoints, of single checkpoints, or named by themselves.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "input/named.hpp"

namespace zs::gradient {

struct Source {
  std::string path;                  ///< of the file
  std::string checkpoint;            ///< "checkpoint_100", as its folder is called
  std::optional<std::int64_t> step;  ///< steps done; nothing where neither state.json nor the folder's name says it
};

struct Sources {
  std::vector<Source> found;         ///< as asked for; those of a run by step
  std::vector<std::string> without;  ///< paths of a run's checkpoints that have no gradients
  std::string subject;               ///< what they are of: the run's name, or the first checkpoint's path
};

/// The gradients of runs, of checkpoints, and files of them. Throws Error, located, where there are none, saying why.
/// REQUIRES: kinds of gradients.
Sources find(const std::vector<input::Named>& named);

}  // namespace zs::gradient
