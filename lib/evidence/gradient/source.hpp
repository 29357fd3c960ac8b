// SPDX-License-Identifier: Apache-2.0
// Finds gradients: the gradients.pt of a run's checkpoints, of single checkpoints, or named directly.
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
  std::string checkpoint;            ///< "checkpoint_100", its folder's name
  std::optional<std::int64_t> step;  ///< steps done; nothing if neither state.json nor the folder's name has it
};

struct Sources {
  std::vector<Source> found;         ///< in the order of the operands; a run's checkpoints by step
  std::vector<std::string> without;  ///< paths of a run's checkpoints without gradients
  std::string subject;               ///< the run's name, or the first checkpoint's path
};

/// The gradients of runs, of checkpoints, and files of them. Throws Error, located, with the reason, if there are none.
/// REQUIRES: kinds of gradients.
Sources find(const std::vector<input::Named>& named);

}  // namespace zs::gradient
